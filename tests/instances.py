"""Random instances of every set function, and their definitions once more, in plain Python.

The definitions here share nothing with the library: they are what the library is checked against.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dgn.objectives import (
    FacilityLocation,
    FeatureCoverage,
    Mixture,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    Sqrt,
)

FEATURES = 5


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of set function: how to build it, and what it is by definition."""

    build: Callable[[np.ndarray], SetFunction]
    define: Callable[[np.ndarray, np.ndarray], float]


def _summed(phi: Callable[[float], float]) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda w, chosen: sum(w[u] * phi(sum(row[u] for row in chosen)) for u in range(len(w)))


def _best(w: np.ndarray, chosen: np.ndarray) -> float:
    return sum(w[u] * max((row[u] for row in chosen), default=0.0) for u in range(len(w)))


def _hit(w: np.ndarray, chosen: np.ndarray) -> float:
    return sum(w[u] * (1 - math.prod(1 - row[u] for row in chosen)) for u in range(len(w)))


def _mixed(w: np.ndarray, chosen: np.ndarray) -> float:
    log_coverage = sum(math.log1p(sum(row[u] for row in chosen)) for u in range(len(w)))
    return w[0] * log_coverage + w[1] * _hit(w, chosen)


def _mixed_by_columns(w: np.ndarray, chosen: np.ndarray) -> float:
    left, right = chosen[:, :2], chosen[:, 2:]
    best = sum(max((row[u] for row in left), default=0.0) for u in range(2))
    return w[0] * best + w[1] * _summed(math.sqrt)(w[2:], right)


KINDS = {
    "log1p": Kind(FeatureCoverage, _summed(math.log1p)),
    "sqrt": Kind(lambda w: FeatureCoverage(w, Sqrt()), _summed(math.sqrt)),
    "power": Kind(lambda w: FeatureCoverage(w, Power(0.7)), _summed(lambda x: x**0.7)),
    "one_minus_exp": Kind(
        lambda w: FeatureCoverage(w, OneMinusExp()), _summed(lambda x: 1 - math.exp(-x))
    ),
    "saturated": Kind(lambda w: FeatureCoverage(w, Saturated(1.2)), _summed(lambda x: min(x, 1.2))),
    "facility_location": Kind(FacilityLocation, _best),
    "probabilistic": Kind(ProbabilisticCoverage, _hit),
    "mixture": Kind(
        lambda w: Mixture((FeatureCoverage(), ProbabilisticCoverage(w)), w[:2]), _mixed
    ),
    "mixture_by_columns": Kind(
        lambda w: Mixture(
            (FacilityLocation(), FeatureCoverage(w[2:], Sqrt())),
            w[:2],
            (slice(0, 2), slice(2, None)),
        ),
        _mixed_by_columns,
    ),
}


@dataclass(frozen=True, eq=False)
class Instance:
    """One set function with one ground set."""

    kind: str
    features: np.ndarray
    weights: np.ndarray

    @property
    def objective(self) -> SetFunction:
        return KINDS[self.kind].build(self.weights)

    @property
    def size(self) -> int:
        return len(self.features)

    def value(self, chosen: tuple[int, ...]) -> float:
        """f by definition."""
        return float(KINDS[self.kind].define(self.weights, self.features[list(chosen)]))

    def best_value(self, k: int) -> float:
        """The best f over all sets of k items, by trying them all."""
        sets = itertools.combinations(range(self.size), min(k, self.size))
        return max(self.value(chosen) for chosen in sets)


def random_instance(kind: str, seed: int, size: int, features: int = FEATURES) -> Instance:
    """Features in [0, 1], some of them 0 and some 1, now and then a repeated item."""
    random = np.random.default_rng(seed)
    values = random.random((size, features))
    values[random.random(values.shape) < 0.2] = 0.0
    values[random.random(values.shape) < 0.05] = 1.0
    if size > 1 and seed % 3 == 0:
        values[-1] = values[0]
    weights = random.gamma(1.0, size=features)
    weights[random.random(features) < 0.1] = 0.0
    return Instance(kind, values, weights)


def instances(
    *, kinds: tuple[str, ...] = tuple(KINDS), smallest: int = 1, largest: int = 8
) -> st.SearchStrategy[Instance]:
    """Instances of all kinds."""
    return st.builds(
        random_instance,
        kind=st.sampled_from(kinds),
        seed=st.integers(0, 2**32 - 1),
        size=st.integers(smallest, largest),
    )


def members(chosen: tuple[int, ...], size: int) -> np.ndarray:
    """[1, size], 1 for the chosen."""
    member = np.zeros((1, size))
    member[0, list(chosen)] = 1.0
    return member
