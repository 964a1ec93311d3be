"""Numbers at the limits of a dtype: large contexts, small increases, costs beyond float32."""

import itertools

import numpy as np
import pytest

from dgn.core import greedy, lazy_greedy
from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Power,
    SetFunction,
    State,
)

K = 3


def context_of(objective: SetFunction, level: np.ndarray) -> State:
    items = Items(level[None, None, :])
    return objective.add(items, objective.empty(items), np.ones((1, 1), level.dtype))


def best_given(features: np.ndarray, level: np.ndarray, k: int) -> float:
    """The best f(A | context) of facility location, in float64, by trying all sets."""

    def value(chosen: tuple[int, ...]) -> float:
        return float(np.maximum(level, features[list(chosen)].max(axis=0)).sum() - level.sum())

    return max(value(chosen) for chosen in itertools.combinations(range(len(features)), k))


@pytest.mark.parametrize("seed", range(5))
def test_certificates_hold_next_to_a_large_context(seed: int) -> None:
    features = np.random.default_rng(seed).random((7, 6)).astype(np.float32)
    level = np.zeros(6, dtype=np.float32)
    level[0] = 2.0**24
    objective = FacilityLocation()
    context = context_of(objective, level)
    best = best_given(features.astype(np.float64), level.astype(np.float64), K)
    for found in (
        greedy(objective, features, K, context=context),
        lazy_greedy(objective, features, K, context=context),
        greedy(objective, features, costs=np.ones(7), budget=float(K), context=context),
    ):
        assert found.certificate.bound >= best * (1 - 1e-6)
        assert found.certificate.value <= best * (1 + 1e-6)


def test_small_increases_of_a_power_are_kept() -> None:
    level = np.array([1e7], dtype=np.float32)
    steps = np.array([[0.3], [0.5], [0.9], [0.7]], dtype=np.float32)
    for exponent in (0.5, 0.501):
        f = FeatureCoverage(concave=Power(exponent))
        found = greedy(f, steps, 2, context=context_of(f, level))
        x = level[0] + np.cumsum([0.0, 0.9, 0.7])
        assert found.indices == (2, 3)
        assert found.gains == pytest.approx(np.diff(x**exponent), rel=1e-3)


def test_costs_are_not_rounded_into_the_budget() -> None:
    features = np.ones((2, 1), dtype=np.float32)
    costs = np.array([16777217, 5e7])
    found = greedy(FeatureCoverage(), features, costs=costs, budget=16777216)
    assert len(found) == 0
    thirds = np.full(10, 1 / 3)
    many = np.eye(10, dtype=np.float32)
    found = greedy(FeatureCoverage(), many, costs=thirds, budget=10 / 3 - 1e-9)
    assert len(found) == 9
