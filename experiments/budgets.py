"""Token limits against the obvious: `python -m experiments.budgets`.

The obvious is the order of `select(k=…)`, from which passages that do not fit are skipped. The
constant of the search (how much the length of a passage counts) is chosen on the training parts of
the sets, leaving one set out at a time; what is reported are the dev parts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.evaluation.metrics import paired_comparison
from dgn.selector import Limits, Selector
from dgn.selector import search as searching
from experiments.domains import english_sets, read_domain
from experiments.made import made_by

BUDGETS = (50, 100, 200, 400, 800)
FACTORS = (0.0, 0.04, 0.06, 0.08, 0.1, 0.12)
SEVEN = ("contractnli", "entailmentbank", "evinf", "politihop", "qmsum", "selqa", "tatqa")

Recalls = NDArray[np.float64]
"""[rows, budgets]."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the choice of the constant, and the recall by budget."""
    parser = argparse.ArgumentParser(prog="python -m experiments.budgets", description=__doc__)
    parser.add_argument("--train", type=int, default=60, help="training rows per set")
    parser.add_argument("--dev", type=int, default=100, help="dev rows per set")
    options = parser.parse_args(arguments)
    print(made_by("experiments/budgets.py", "facets"))
    selector = Selector.from_pretrained()
    names = english_sets()
    domains = {name: read_domain(name) for name in names}
    train = {name: domains[name].train[: options.train] for name in names}
    shipped = searching._LENGTH_EXPONENT  # pyright: ignore[reportPrivateUsage]
    by_factor: dict[float, dict[str, float]] = {}
    for factor in FACTORS:
        searching._LENGTH_EXPONENT = factor  # pyright: ignore[reportPrivateUsage]
        by_factor[factor] = {
            name: float(_limited(selector, own).mean()) for name, own in train.items()
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
    limited: dict[str, Recalls] = {}
    ordered: dict[str, Recalls] = {}
    for name in names:
        rows = domains[name].dev[: options.dev]
        limited[name], ordered[name] = _limited(selector, rows), _ordered(selector, rows)
    print(f"\ndev parts, {sum(map(len, limited.values()))} rows; max_tokens / the order of k")
    print(f"{'tokens':<16}" + "".join(f"{budget:>16}" for budget in BUDGETS) + f"{'p':>8}")
    for name in names:
        ours, theirs = limited[name], ordered[name]
        p = paired_comparison(ours.mean(axis=1), theirs.mean(axis=1), seed=0).p_value
        print(_line(name, ours.mean(axis=0), theirs.mean(axis=0)) + f"{p:>8.3f}")
    for title, some in (("mean of 32", names), ("mean of seven", SEVEN)):
        means = [np.mean([one[n].mean(axis=0) for n in some], axis=0) for one in (limited, ordered)]
        print(_line(title, *means))
    return 0


def _line(title: str, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> str:
    cells = (f"{a:.3f} / {b:.3f}" for a, b in zip(ours, theirs, strict=True))
    return f"{title:<16}" + "".join(f"{cell:>16}" for cell in cells)


def _limited(selector: Selector, examples: Sequence[Example]) -> Recalls:
    """The recall within each budget by `max_tokens`."""
    found = np.zeros((len(examples), len(BUDGETS)))
    for column, budget in enumerate(BUDGETS):
        queries = [example.query for example in examples]
        for start in range(0, len(queries), 64):
            part = selector.select_queries(queries[start : start + 64], Limits(max_tokens=budget))
            for row, selection in enumerate(part, start):
                found[row, column] = _recall(examples[row], selection.indices)
    return found


def _ordered(selector: Selector, examples: Sequence[Example]) -> Recalls:
    """The recall within each budget by the order of `select(k=…)`, skipping what does not fit."""
    found = np.zeros((len(examples), len(BUDGETS)))
    for row, example in enumerate(examples):
        everything = Limits(k=len(example.query.passages))
        (selection,) = selector.select_queries([example.query], everything)
        tokens = selector.encoder.count_tokens(example.query.texts)
        for column, budget in enumerate(BUDGETS):
            left, kept = budget, list[int]()
            for index in selection.indices:
                if max(1, tokens[index]) <= left:
                    kept.append(index)
                    left -= max(1, tokens[index])
            found[row, column] = _recall(example, kept)
    return found


def _recall(example: Example, indices: Sequence[int]) -> float:
    return sum(example.gold[index] for index in indices) / sum(example.gold)


if __name__ == "__main__":
    sys.exit(main())
