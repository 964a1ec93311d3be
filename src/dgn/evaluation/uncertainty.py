"""How sure are we of a mean over claims, and of the difference between two systems?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput

_RESAMPLES_AT_ONCE = 200


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
    """System A against system B on the same claims.

    difference: the mean of A − B with its interval. better, worse: on how many claims A is.
    p_value: how often a random swap of the two systems, claim by claim, differs as much or more.
    """

    difference: Interval
    better: int
    worse: int
    p_value: float


def bootstrap_interval(
    values: Any, *, seed: int, level: float = 0.95, resamples: int = 2000
) -> Interval:
    """The mean of one value a claim, and its percentile bootstrap interval."""
    checked = _checked(values, level)
    random = np.random.default_rng(seed)
    means = np.concatenate(
        [
            checked[random.integers(0, len(checked), (count, len(checked)))].mean(axis=1)
            for count in _pieces(resamples)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(checked.mean()), float(low), float(high))


def paired_comparison(
    ours: Any, theirs: Any, *, seed: int, level: float = 0.95, resamples: int = 2000
) -> PairedComparison:
    """Compare two systems by their values on the same claims, in the same order.

    The p-value is two-sided, from a paired permutation test: signs of the differences, at random.
    """
    first, second = _checked(ours, level), _checked(theirs, level)
    if first.shape != second.shape:
        raise InvalidInput(
            "theirs",
            found=f"{len(second)} values",
            allowed=f"{len(first)}, one for the same claims",
        )
    differences = first - second
    random = np.random.default_rng([seed, 1])
    observed = abs(float(differences.mean()))
    as_large = 0
    for count in _pieces(resamples):
        signs = random.choice([-1.0, 1.0], (count, len(differences)))
        as_large += int((np.abs((signs * differences).mean(axis=1)) >= observed - 1e-12).sum())
    return PairedComparison(
        difference=bootstrap_interval(differences, seed=seed, level=level, resamples=resamples),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
        # The observed order is one of the orders: a p-value is never 0.
        p_value=(as_large + 1) / (resamples + 1),
    )


def _pieces(resamples: int) -> list[int]:
    whole, rest = divmod(resamples, _RESAMPLES_AT_ONCE)
    return [_RESAMPLES_AT_ONCE] * whole + ([rest] if rest else [])


def _checked(values: Any, level: float) -> NDArray[np.float64]:
    if not 0 < level < 1:
        raise InvalidInput("level", found=f"{level}", allowed="a number between 0 and 1")
    checked = np.asarray(values, dtype=np.float64)
    if checked.ndim != 1 or not len(checked) or not np.isfinite(checked).all():
        raise InvalidInput(
            "values", found=f"shape {checked.shape}", allowed="finite numbers, one a claim"
        )
    return checked
