"""Token limits against the obvious: `python -m experiments.budgets`.

The obvious is the order of `select(k=…)`, from which passages that do not fit are skipped. The
constant of the search (how much the length of a passage counts) is chosen on the training parts of
the sets, leaving one set out at a time; what is reported are the dev parts: sentences, and chunks,
which are overlapping windows of four sentences.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.evaluation.metrics import paired_comparison
from dgn.selector import Limits, Selector
from dgn.selector import search as searching
from dgn.text.query import Query
from experiments.domains import english_sets, read_domain
from experiments.made import made_by
from experiments.recall import windows_of

BUDGETS = (50, 100, 200, 400, 800)
CHUNK_BUDGETS = (100, 200, 400, 800, 1600)
FACTORS = (0.0, 0.04, 0.06, 0.08, 0.1, 0.12)

Case = tuple[Query, list[NDArray[np.int64]], NDArray[np.bool_]]
"""A query, the sentences of each of its passages, and which sentences are gold."""

Recalls = NDArray[np.float64]
"""[rows, budgets]."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the choice of the constant, and the recall by budget."""
    parser = argparse.ArgumentParser(prog="python -m experiments.budgets", description=__doc__)
    parser.add_argument("--train", type=int, default=30, help="training rows per set")
    parser.add_argument("--dev", type=int, default=60, help="dev rows per set")
    options = parser.parse_args(arguments)
    print(made_by("experiments/budgets.py", "facets"))
    selector = Selector.from_pretrained()
    names = english_sets()
    domains = {name: read_domain(name) for name in names}
    train = {name: _sentences(domains[name].train[: options.train]) for name in names}
    shipped = searching._LENGTH_EXPONENT  # pyright: ignore[reportPrivateUsage]
    by_factor: dict[float, dict[str, float]] = {}
    for factor in FACTORS:
        searching._LENGTH_EXPONENT = factor  # pyright: ignore[reportPrivateUsage]
        by_factor[factor] = {
            name: float(_limited(selector, own, BUDGETS).mean()) for name, own in train.items()
        }
        mean = np.mean(list(by_factor[factor].values()))
        print(f"training parts, factor {factor:.2f}: mean recall of all budgets {mean:.4f}")
    left_out = [
        max(FACTORS, key=lambda one: np.mean([v for n, v in by_factor[one].items() if n != name]))
        for name in names
    ]
    counts = {factor: left_out.count(factor) for factor in FACTORS if factor in left_out}
    print(f"best factor when a set is left out (sets): {counts}; shipped: {shipped:.2f}")
    searching._LENGTH_EXPONENT = shipped  # pyright: ignore[reportPrivateUsage]
    for title, cases_of, budgets in (
        ("sentences", _sentences, BUDGETS),
        ("chunks", _chunks, CHUNK_BUDGETS),
    ):
        cases = {name: cases_of(domains[name].dev[: options.dev]) for name in names}
        _report(title, selector, {name: own for name, own in cases.items() if own}, budgets)
    return 0


def _report(
    title: str, selector: Selector, cases: Mapping[str, list[Case]], budgets: Sequence[int]
) -> None:
    count = sum(map(len, cases.values()))
    print(f"\n{title}, dev parts, {count} rows; max_tokens / the order of k; p not corrected")
    print(f"{'tokens':<16}" + "".join(f"{budget:>16}" for budget in budgets) + f"{'p':>8}")
    means: list[NDArray[np.float64]] = []
    for name, own in cases.items():
        ours, theirs = _limited(selector, own, budgets), _ordered(selector, own, budgets)
        p = paired_comparison(ours.mean(axis=1), theirs.mean(axis=1), seed=0).p_value
        means.append(np.stack([ours.mean(axis=0), theirs.mean(axis=0)]))
        print(_line(name, *means[-1]) + f"{p:>8.3f}", flush=True)
    print(_line(f"mean of {len(means)}", *np.mean(means, axis=0)))


def _sentences(examples: Sequence[Example]) -> list[Case]:
    return [
        (one.query, [np.array([place]) for place in range(len(one.gold))], np.array(one.gold))
        for one in examples
    ]


def _chunks(examples: Sequence[Example]) -> list[Case]:
    found = [(windows_of(one), np.array(one.gold)) for one in examples]
    return [(*windows, gold) for windows, gold in found if windows is not None]


def _line(title: str, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    cells = (f"{a:.3f} / {b:.3f}" for a, b in zip(ours, theirs, strict=True))
    return f"{title:<16}" + "".join(f"{cell:>16}" for cell in cells)


def _limited(selector: Selector, cases: Sequence[Case], budgets: Sequence[int]) -> Recalls:
    """The recall within each budget by `max_tokens`."""
    found = np.zeros((len(cases), len(budgets)))
    for column, budget in enumerate(budgets):
        for row, (query, places, gold) in enumerate(cases):
            (one,) = selector.select_queries([query], Limits(max_tokens=budget))
            found[row, column] = _recall(places, gold, one.indices)
    return found


def _ordered(selector: Selector, cases: Sequence[Case], budgets: Sequence[int]) -> Recalls:
    """The recall within each budget by the order of `select(k=…)`, skipping what does not fit."""
    found = np.zeros((len(cases), len(budgets)))
    for row, (query, places, gold) in enumerate(cases):
        (selection,) = selector.select_queries([query], Limits(k=len(query.passages)))
        tokens = selector.encoder.count_tokens(query.texts)
        for column, budget in enumerate(budgets):
            left, kept = budget, list[int]()
            for index in selection.indices:
                if max(1, tokens[index]) <= left:
                    kept.append(index)
                    left -= max(1, tokens[index])
            found[row, column] = _recall(places, gold, kept)
    return found


def _recall(
    places: list[NDArray[np.int64]], gold: NDArray[np.bool_], indices: Sequence[int]
) -> float:
    if not indices:
        return 0.0
    seen = np.unique(np.concatenate([places[index] for index in indices]))
    return float(gold[seen].sum() / gold.sum())


if __name__ == "__main__":
    sys.exit(main())
