"""Train on 200 rows of sets that the start has not seen: `python -m experiments.own_labels`.

Of each set, some rows are drawn from its train part and trained on as `dgn train` does, without a
further setting. The model is measured on the set's dev part and on rows of the train part that were
not drawn and have no document in common with those, at most 300 in all. The settings of training
were chosen on other sets (TUNED_ON).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.evaluation.metrics import paired_comparison
from dgn.learn.rows import train_on_rows
from dgn.selector import Selector
from experiments.domains import FOLDS, read_domain
from experiments.made import made_by
from experiments.recall import KS, recalls

REPORTED = ("bc3", "codechange", "fetaqa", "friendsqa", "sosum")
TUNED_ON = ("bugreports", "dstc11", "exam", "iam", "irc", "manpages")
_MOST_MEASURED = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on rows of each set, and print the recall before and after."""
    parser = argparse.ArgumentParser(prog="python -m experiments.own_labels", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=REPORTED)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--start", default="default", help="what `dgn train --from` takes")
    parser.add_argument(
        "--left-out", type=Path, help="has FAMILY-N, the start of the sets of fold N, in its place"
    )
    parser.add_argument("--family", choices=("facets", "minilm"), default="facets")
    parser.add_argument("--seed", type=int, default=0, help="draws the rows")
    options = parser.parse_args(arguments)
    where = (
        f"a model ({options.family}) that has not seen the set"
        if options.left_out
        else options.start
    )
    print(made_by("experiments/own_labels.py", options.family))
    print(f"{options.rows} rows of each set, from {where}; recall at 1 / 3 / 5 / 7")
    print(f"{'':<14}{'rows':>5}{'start':>27}{'trained':>27}   difference at 5, p-value")
    before: list[NDArray[Any]] = []
    after: list[NDArray[Any]] = []
    for name in options.sets:
        train, test = drawn(name, options.rows, options.seed)
        model = options.start
        if options.left_out:
            fold = next(number for number, fold in enumerate(FOLDS) if name in fold)
            model = str(options.left_out / f"{options.family}-{fold}")
        start = Selector.from_pretrained(model)
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder, "rows.jsonl")
            rows.write_text("".join(json.dumps(row_of(one)) + "\n" for one in train), "utf-8")
            wall, cpu = time.monotonic(), time.process_time()
            result = train_on_rows([rows], Path(folder, "model"), start=model)
            wall, cpu = time.monotonic() - wall, time.process_time() - cpu
            trained = Selector.from_pretrained(Path(folder, "model"))
        then, now = recalls(start, test), recalls(trained, test)
        before.append(then.mean(axis=0))
        after.append(now.mean(axis=0))
        found = paired_comparison(now[:, KS.index(5)], then[:, KS.index(5)], seed=0)
        print(
            f"{name:<14}{len(test):>5}{_shown(before[-1]):>27}{_shown(after[-1]):>27}   "
            f"{found.difference.mean:+.3f} [{found.difference.low:+.3f}, "
            f"{found.difference.high:+.3f}] {found.p_value:.3f}; epoch {result.best_epoch} of "
            f"{len(result.epochs) - 1}, estimated "
            f"{result.table[0].gains[KS.index(5)].mean:+.3f}; {wall:.0f} s, {cpu:.0f} s of CPU",
            flush=True,
        )
    means = np.mean(before, axis=0), np.mean(after, axis=0)
    gain = (means[1] - means[0])[KS.index(5)]
    print(f"{'mean':<14}{'':>5}{_shown(means[0]):>27}{_shown(means[1]):>27}   {gain:+.3f}")
    return 0


def drawn(name: str, count: int, seed: int) -> tuple[list[Example], list[Example]]:
    """Rows to learn from, and rows about other documents to measure on."""
    domain = read_domain(name)
    order: list[int] = np.random.default_rng(seed).permutation(len(domain.train)).tolist()
    train = [domain.train[place] for place in order[:count]]
    seen = {text for one in train for text in _documents(one)}
    rest = [domain.train[place] for place in order[count:]]
    others = [one for one in (*domain.dev, *rest) if not seen & _documents(one)]
    return train, others[:_MOST_MEASURED]


def row_of(example: Example) -> dict[str, Any]:
    """The example as a row of our format."""
    passages, gold = example.query.passages, np.flatnonzero(example.gold).tolist()
    if passages[0].document is None:
        texts = [one.text for one in passages]
        titles = [one.title for one in passages]
        row = {"query": example.query.text, "passages": texts, "titles": titles}
        return {**row, "evidence": [gold]}
    documents: list[dict[str, Any]] = []
    place: list[list[int]] = []
    last: int | None = None
    for one in passages:
        if one.document != last:
            documents.append({"title": one.title, "sentences": []})
            last = one.document
        sentences = documents[-1]["sentences"]
        # Blank sentences were left out; positions stay what they were.
        sentences += [""] * ((one.position or 0) - len(sentences))
        place.append([len(documents) - 1, len(sentences)])
        sentences.append(one.text)
    evidence = [[place[index] for index in gold]]
    return {"query": example.query.text, "documents": documents, "evidence": evidence}


def _documents(example: Example) -> set[str]:
    texts: dict[int | None, list[str]] = {}
    for passage in example.query.passages:
        texts.setdefault(passage.document, []).append(passage.text)
    return {"\n".join(sorted(some)) for some in texts.values()}


def _shown(means: NDArray[Any]) -> str:
    return " / ".join(f"{mean:.3f}".removeprefix("0") for mean in means)


if __name__ == "__main__":
    sys.exit(main())
