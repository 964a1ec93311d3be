"""This tree and an earlier commit on the same dev queries, query by query.

    git worktree add ../earlier d973326 && (cd ../earlier && python src/dgn/core/native/build.py)
    python -m experiments.paired select default OUT.json --breadth 0
    python experiments/paired.py select default EARLIER.json --tree ../earlier
    python -m experiments.paired compare EARLIER.json OUT.json

`select` writes the recall at 1, 3, 5 and 7 of every dev query of the 35 kinds of text; `compare`
prints the means of both, and the difference with its 95% interval over queries, resampled within
each kind. `--tree` takes the library and its readers of data from another checkout.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

KS, _RESAMPLES = (1, 3, 5, 7), 2000


def select(model: str, out: Path, breadth: float | None) -> None:
    """Write the recalls of a model of the tree that is imported."""
    from dgn.selector import Limits, Selector
    from experiments.domains import FOLDS, read_domain

    selector = Selector.from_pretrained(model)
    more: dict[str, Any] = {} if breadth is None else {"breadth": breadth}
    found: dict[str, list[list[float]]] = {}
    for kind in sorted(name for fold in FOLDS for name in fold):
        found[kind] = []
        for example in read_domain(kind).dev:
            (one,) = selector.select_queries([example.query], Limits(k=max(KS), **more))
            gold = np.array(example.gold)
            hits = np.cumsum([*gold[list(one.indices)], *[0] * (max(KS) - len(one.indices))])
            found[kind].append([float(hits[k - 1] / gold.sum()) for k in KS])
    out.write_text(json.dumps(found), encoding="utf-8")


def compare(first: Path, second: Path) -> None:
    """Print the means of two files, and their difference."""
    from experiments.made import made_by

    files = [json.loads(path.read_text(encoding="utf-8")) for path in (first, second)]
    arrays = [{kind: np.array(own) for kind, own in one.items()} for one in files]
    print(made_by("experiments/paired.py"))
    print(f"{sum(map(len, files[0].values())):,} queries; recall at {KS}, mean of the kinds")
    for path, one in zip((first, second), arrays, strict=True):
        means = np.mean([own.mean(axis=0) for own in one.values()], axis=0)
        print(f"{path.stem:<24}" + "".join(f"{share:>9.4f}" for share in means))
    differences = [arrays[1][kind] - arrays[0][kind] for kind in arrays[0]]
    random = np.random.default_rng(0)
    drawn = [
        np.mean([d[random.integers(0, len(d), len(d))].mean(axis=0) for d in differences], axis=0)
        for _ in range(_RESAMPLES)
    ]
    means = np.mean([d.mean(axis=0) for d in differences], axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    for name, row in (("difference", means), ("  from", low), ("  to", high)):
        print(f"{name:<24}" + "".join(f"{share:>+9.4f}" for share in row))


def main(arguments: Sequence[str] | None = None) -> int:
    """Select, or compare."""
    parser = argparse.ArgumentParser(prog="python -m experiments.paired", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    selecting, comparing = commands.add_parser("select"), commands.add_parser("compare")
    selecting.add_argument("model")
    selecting.add_argument("out", type=Path)
    selecting.add_argument("--breadth", type=float, help="earlier trees have none")
    selecting.add_argument("--tree", type=Path, help="another checkout")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "compare":
        compare(options.first, options.second)
        return 0
    if options.tree is not None:
        sys.path[:0] = [str(options.tree / "src"), str(options.tree)]
    select(options.model, options.out, options.breadth)
    return 0


if __name__ == "__main__":
    sys.exit(main())
