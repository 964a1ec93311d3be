"""What outcomes teach a selector, and what other ways of learning from them do.

OMP_NUM_THREADS=1 python -m experiments.outcomes generated
OMP_NUM_THREADS=1 python -m experiments.outcomes counts
OMP_NUM_THREADS=1 python -m experiments.outcomes fever --data FEVER_ERASER --cache CACHE

The results are added to experiments/results/outcomes.json; what is there is not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dgn.apps.cli.options import positive
from experiments.outcomes.methods import METHODS
from experiments.outcomes.study import compare, markdown, table

RESULTS = Path(__file__).parents[1] / "results" / "outcomes.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one part of the study."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.outcomes", description="Learning from outcomes, measured."
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file of results")
    parts = parser.add_subparsers(dest="part", required=True)
    for name, text in (
        ("generated", "all methods on the generated problem"),
        ("counts", "recall by the number of outcomes and by their noise"),
        ("fever", "all methods on FEVER's verdicts"),
        ("table", "write the tables of the results as text"),
    ):
        part = parts.add_parser(name, help=text)
        part.add_argument("--trials", type=positive, default=1)
        part.add_argument("--seeds", type=positive, default=5)
        part.add_argument("--methods", nargs="*", default=[one.name for one in METHODS])
        if name == "fever":
            part.add_argument("--data", type=Path, required=True, help="the folder fever-eraser")
            part.add_argument("--cache", type=Path, required=True, help="where vectors are kept")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    methods = tuple(one for one in METHODS if one.name in options.methods)
    if options.part == "generated":
        from experiments.outcomes.generated import GeneratedProblem

        compare(GeneratedProblem(), options.out, options.trials, options.seeds, methods)
    elif options.part == "counts":
        from experiments.outcomes.counts import measure_counts

        measure_counts(options.out, seeds=options.seeds)
    elif options.part == "fever":
        from experiments.outcomes.fever import FeverProblem

        problem = FeverProblem.load(options.data, options.cache)
        compare(problem, options.out, options.trials, options.seeds, methods)
    results: dict[str, Any] = json.loads(options.out.read_text())
    tables = [table(name, one) for name, one in results.items() if "methods" in one]
    options.out.with_suffix(".txt").write_text("\n".join(tables))
    if options.part == "table":
        tables = [markdown(one) for one in results.values() if "methods" in one]
    print("\n".join(tables))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
