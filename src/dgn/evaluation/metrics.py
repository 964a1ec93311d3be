"""How good is a selection? Recall and precision at k, and intervals.

The paper's scores count gold sentences. Macro is the mean over queries; micro counts all sentences
of all queries together, so that queries with much gold weigh more. FEVER's official scores, which
count complete groups of evidence, are different ones.

Which comparison is for which statement:

    paired_comparison(ours, theirs), [queries]      "of these two models, the first is better"
    the same with [seeds, queries]                  "trained again, this method would be better"
    holm_p_values(p_values)                         several baselines, several k: one table
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput

_RESAMPLES_PER_CHUNK = 200


@dataclass(frozen=True)
class Scores:
    """Recall and precision, both macro or both micro."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        return _harmonic_mean(self.recall, self.precision)


@dataclass(frozen=True, eq=False)
class Hits:
    """What the first k selected items found, query by query; queries without gold are left out.

    Attributes:
        hits: [queries], the number of gold items among the selected ones.
        wanted: [queries], the number of all gold items.
        selected: [queries], the number of selected items.
    """

    hits: NDArray[np.int64]
    wanted: NDArray[np.int64]
    selected: NDArray[np.int64]

    @property
    def recalls(self) -> NDArray[np.float64]:
        """[queries], the recall of each."""
        return self.hits / self.wanted

    @property
    def precisions(self) -> NDArray[np.float64]:
        """[queries], the precision of each; 0 where nothing was selected."""
        return self.hits / np.maximum(self.selected, 1)

    @property
    def macro(self) -> Scores:
        """The means over queries."""
        return Scores(float(self.recalls.mean()), float(self.precisions.mean()))

    @property
    def micro(self) -> Scores:
        """The scores over all items together."""
        hits, selected = float(self.hits.sum()), float(self.selected.sum())
        return Scores(hits / float(self.wanted.sum()), hits / max(1.0, selected))


def hits_at(k: int, indices: Any, gold: Any, missing: Any = 0) -> Hits:
    """What the first k selected items found.

    Args:
        k: How many of the selected items count.
        indices: [queries, selected], in the order of selection, −1 for none.
        gold: [queries, items], True for gold items.
        missing: [queries], the number of gold items that are not among the items at all; nobody
            can find them, and they count.
    """
    if k < 1:
        raise InvalidInput("k", found=str(k), allowed="at least 1")
    chosen: NDArray[np.int64] = np.asarray(indices)[:, :k]
    truth: NDArray[np.bool_] = np.asarray(gold)
    selected = chosen >= 0
    hits = np.take_along_axis(truth, np.where(selected, chosen, 0), axis=1) & selected
    wanted = truth.sum(axis=1) + np.asarray(missing)
    has_gold = wanted > 0
    if not has_gold.any():
        raise InvalidInput("gold", message="No set has a gold item; there is nothing to find.")
    return Hits(hits.sum(axis=1)[has_gold], wanted[has_gold], selected.sum(axis=1)[has_gold])


def scores_at(k: int, indices: Any, gold: Any) -> Scores:
    """The macro scores of the first k selected items; see `hits_at`."""
    return hits_at(k, indices, gold).macro


def aspect_hits_at(k: int, indices: Any, aspects: Sequence[Sequence[Sequence[int]]]) -> Hits:
    """What the first k selected items found of the aspects of each query.

    An aspect is found when one of its items is selected. At most k can be, so that recall divides
    by k where there are more of them.

    Args:
        k: How many of the selected items count.
        indices: [queries, selected], in the order of selection, −1 for none.
        aspects: For each query, groups of items that say the same; without any, it is left out.
    """
    chosen = [set(row[:k]) - {-1} for row in np.asarray(indices).tolist()]
    pairs = [(row, groups) for row, groups in zip(chosen, aspects, strict=True) if groups]
    if not pairs:
        raise InvalidInput("aspects", message="No set has an aspect; there is nothing to find.")
    hits = [sum(not row.isdisjoint(group) for group in groups) for row, groups in pairs]
    wanted = [min(k, len(groups)) for _, groups in pairs]
    return Hits(np.array(hits), np.array(wanted), np.array([len(row) for row, _ in pairs]))


def alpha_ndcg_at(
    k: int, indices: Any, aspects: Sequence[Sequence[Sequence[int]]], alpha: float = 0.5
) -> NDArray[np.float64]:
    """[queries with aspects], α-nDCG (Clarke et al., 2008): ranked gain of aspects, from 0 to 1.

    An aspect that was found n times before counts (1 − α)ⁿ. The ideal ranking is found greedily.

    Args:
        k: How many of the selected items count.
        indices: [queries, selected], in the order of selection, −1 for none.
        aspects: For each query, groups of items that say the same.
        alpha: How much less an aspect counts each time it is found again.
    """
    values: list[float] = []
    for row, groups in zip(np.asarray(indices).tolist(), aspects, strict=True):
        if not groups:
            continue
        of_item: dict[int, list[int]] = {}
        for number, group in enumerate(groups):
            for item in group:
                of_item.setdefault(item, []).append(number)
        ranked = [of_item.get(item, []) for item in row[:k] if item >= 0]
        reached = _discounted(_gains_of(ranked, alpha))
        values.append(reached / _discounted(_ideal_gains(list(of_item.values()), k, alpha)))
    return np.array(values)


def _gains_of(ranked: Sequence[Sequence[int]], alpha: float) -> list[float]:
    """What each item adds, given the aspects of the items in order."""
    seen: Counter[int] = Counter()
    gains: list[float] = []
    for aspects in ranked:
        gains.append(sum((1 - alpha) ** seen[aspect] for aspect in aspects))
        seen.update(aspects)
    return gains


def _ideal_gains(items: list[list[int]], k: int, alpha: float) -> list[float]:
    """What the items add in the best order, found greedily."""
    ranked: list[list[int]] = []
    while items and len(ranked) < k:
        best = max(items, key=lambda item: _gains_of([*ranked, item], alpha)[-1])
        items.remove(best)
        ranked.append(best)
    return _gains_of(ranked, alpha)


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


@dataclass(frozen=True)
class Interval:
    """A mean with its bootstrap confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class PairedComparison:
    """Two systems on the same queries.

    Attributes:
        difference: The mean of the differences with its interval.
        better: The number of queries on which the first system is better.
        worse: The number of queries on which it is worse.
        p_value: How often a random swap of the two systems, query by query, gives a difference
            that is at least as large; over seeds, see `paired_comparison`.
        holm_p_value: The p-value corrected for all tests of the same table by `holm_p_values`;
            None if nobody corrected it.
    """

    difference: Interval
    better: int
    worse: int
    p_value: float
    holm_p_value: float | None = None


def bootstrap_interval(
    values: Any, *, seed: int, level: float = 0.95, resamples: int = 2000
) -> Interval:
    """The mean of one value per query, and its percentile bootstrap interval."""
    checked = _checked(values, level)
    random = np.random.default_rng(seed)
    means = np.concatenate(
        [
            checked[random.integers(0, len(checked), (count, len(checked)))].mean(axis=1)
            for count in _chunks(resamples)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(checked.mean()), float(low), float(high))


def paired_comparison(
    ours: Any, theirs: Any, *, seed: int, level: float = 0.95, resamples: int = 2000
) -> PairedComparison:
    """Compare two systems by their values on the same queries, in the same order.

    The p-value is two-sided. With one value per query, it is that of a paired permutation test
    (random signs of the differences), and the interval is a bootstrap over queries: a statement
    about these two models on new queries.

    With [seeds, queries], it is a statement about two methods on new queries **and** new seeds.
    The differences are those of the means over seeds. What another draw of n seeds would change is
    a t-distributed number with n − 1 degrees of freedom, times the standard error of the mean over
    seeds; it is added to every permutation and every resample, for each system that has several
    seeds (the test of Behrens and Fisher). The seeds of the two systems are taken to be
    independent, and their variation per query counts twice, so that the test is conservative. With
    two seeds nearly nothing is significant; take five. A system without randomness has one row.

    Args:
        ours: [queries], or [seeds, queries].
        theirs: The same queries; the number of seeds may differ.
        seed: The seed of permutations and resamples.
        level: The level of the interval.
        resamples: How many permutations and resamples; the p-value is at least 1 / (1 + resamples).
    """
    first, second = _by_seed(ours, level), _by_seed(theirs, level)
    if first.shape[1] != second.shape[1]:
        raise InvalidInput(
            "theirs",
            message=f"theirs has {second.shape[1]} values and ours has {first.shape[1]}; pass one "
            "value for each query to both.",
        )
    differences = first.mean(axis=0) - second.mean(axis=0)
    random = np.random.default_rng([seed, 1])
    mean = float(differences.mean())
    as_large = 0
    for count in _chunks(resamples):
        signs = random.choice([-1.0, 1.0], (count, len(differences)))
        swapped = (signs * differences).mean(axis=1) + _of_other_seeds(first, second, count, random)
        as_large += int((np.abs(swapped) >= abs(mean) - 1e-12).sum())
    return PairedComparison(
        difference=_interval(differences, first, second, seed, level, resamples),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
        # The observed order is one of the orders: a p-value is never 0.
        p_value=(as_large + 1) / (resamples + 1),
    )


def holm_p_values(p_values: Any) -> NDArray[np.float64]:
    """The p-values of several tests, corrected by Holm's method.

    Among the tests with a corrected value below .05, one or more are wrong in at most 5% of all
    cases, whatever the tests have to do with each other. Correct all tests that a table shows.

    Args:
        p_values: Of any shape; the order does not matter.
    """
    given = np.asarray(p_values, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise InvalidInput("p_values", found=f"{given}", allowed="numbers from 0 to 1")
    flat = given.ravel()
    order = np.argsort(flat, kind="stable")
    larger = np.maximum.accumulate(flat[order] * np.arange(len(flat), 0, -1)).clip(max=1.0)
    corrected = np.empty_like(flat)
    corrected[order] = larger
    return corrected.reshape(given.shape)


def _interval(
    differences: NDArray[np.float64],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    seed: int,
    level: float,
    resamples: int,
) -> Interval:
    """The interval of a mean difference, over queries and over the seeds of both systems."""
    if len(first) == len(second) == 1:
        return bootstrap_interval(differences, seed=seed, level=level, resamples=resamples)
    random = np.random.default_rng(seed)
    means = np.concatenate(
        [
            differences[random.integers(0, len(differences), (count, len(differences)))].mean(1)
            + _of_other_seeds(first, second, count, random)
            for count in _chunks(resamples)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(differences.mean()), float(low), float(high))


def _of_other_seeds(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    count: int,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """[count], what other seeds could have changed about the mean difference."""
    changed = np.zeros(count)
    for system in (first, second):
        seeds = len(system)
        if seeds > 1:
            error = float(system.mean(axis=1).std(ddof=1)) / math.sqrt(seeds)
            changed += error * random.standard_t(seeds - 1, count)
    return changed


def _chunks(resamples: int) -> list[int]:
    whole, rest = divmod(resamples, _RESAMPLES_PER_CHUNK)
    return [_RESAMPLES_PER_CHUNK] * whole + ([rest] if rest else [])


def _checked(values: Any, level: float) -> NDArray[np.float64]:
    checked = np.asarray(values, dtype=np.float64)
    if checked.ndim != 1:
        raise InvalidInput(
            "values",
            found=f"shape {checked.shape}",
            allowed="finite numbers, one for each query",
        )
    return _by_seed(checked, level)[0]


def _by_seed(values: Any, level: float) -> NDArray[np.float64]:
    """[seeds, queries]; one row if there is no axis of seeds."""
    if not 0 < level < 1:
        raise InvalidInput("level", found=f"{level}", allowed="a number between 0 and 1")
    checked = np.asarray(values, dtype=np.float64)
    if checked.ndim not in (1, 2) or not checked.size or not np.isfinite(checked).all():
        raise InvalidInput(
            "values", found=f"shape {checked.shape}", allowed="finite numbers, one for each query"
        )
    return np.atleast_2d(checked)


def _harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0
