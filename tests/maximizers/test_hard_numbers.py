"""Numbers that break careless arithmetic: large contexts, narrow dtypes, costs beyond float32."""

import itertools

import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.maximizers import budgeted_greedy, exact, greedy, lazy_greedy, stochastic_greedy
from dgn.objectives import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Mixture,
    Power,
    ProbabilisticCoverage,
    SetFunction,
    Sqrt,
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
def test_a_large_context_falsifies_no_certificate(seed: int) -> None:
    features = np.random.default_rng(seed).random((7, 6)).astype(np.float32)
    level = np.zeros(6, dtype=np.float32)
    level[0] = 2.0**24
    objective = FacilityLocation()
    context = context_of(objective, level)
    best = best_given(features.astype(np.float64), level.astype(np.float64), K)
    for picked in (
        greedy(objective, features, K, context=context)[0],
        lazy_greedy(objective, features, K, context=context),
        stochastic_greedy(objective, features, K, seed=0, context=context),
        budgeted_greedy(objective, features, np.ones(7), float(K), context=context)[0],
        exact(objective, features, K, context=context),
    ):
        assert picked.certificate.bound >= best * (1 - 1e-6)
        assert picked.certificate.value <= best * (1 + 1e-6)
    assert exact(objective, features, K, context=context).values[-1] == pytest.approx(best)


BAD_CONTEXTS = [
    (FeatureCoverage(), np.array([np.nan, 0.0]), "context: found nan"),
    (FeatureCoverage(), np.array([-1.0, 0.0]), "context: found -1"),
    (ProbabilisticCoverage(), np.array([1.5, 1.0]), "context: found 1.5"),
]


@pytest.mark.parametrize(("objective", "level", "message"), BAD_CONTEXTS)
@pytest.mark.parametrize("search", [greedy, lazy_greedy, exact])
def test_a_context_is_checked_before_it_is_believed(
    search: object, objective: SetFunction, level: np.ndarray, message: str
) -> None:
    context = State(level[None], np.ones((1, 1)), maker=type(objective).__name__)
    with pytest.raises(InvalidInput, match=message):
        search(objective, np.ones((3, 2)), 2, context=context)


@pytest.mark.parametrize(
    ("objective", "other"),
    [
        (ProbabilisticCoverage(), FacilityLocation()),
        (FeatureCoverage(), Mixture((FeatureCoverage(),), np.ones(1))),
        (Mixture((FeatureCoverage(),), np.ones(1)), FeatureCoverage()),
    ],
)
def test_the_state_of_another_function_is_no_context(
    objective: SetFunction, other: SetFunction
) -> None:
    context = other.empty(Items(np.ones((3, 2))))
    with pytest.raises(InvalidInput, match="state: found a state of"):
        greedy(objective, np.ones((3, 2)), 2, context=context)


@pytest.mark.parametrize(
    "features", [np.full((4, 1), 40_000, np.float16), np.full((4, 1), 3e38, np.float32)]
)
def test_what_would_overflow_is_refused(features: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="may add up to more than"):
        greedy(FeatureCoverage(concave=Sqrt()), features, 3)


def test_a_power_keeps_small_increases() -> None:
    level = np.array([1e7], dtype=np.float32)
    steps = np.array([[0.3], [0.5], [0.9], [0.7]], dtype=np.float32)
    by_power = FeatureCoverage(concave=Power(0.5))
    by_root = FeatureCoverage(concave=Sqrt())
    ours = greedy(by_power, steps, 2, context=context_of(by_power, level))[0]
    theirs = greedy(by_root, steps, 2, context=context_of(by_root, level))[0]
    assert ours.indices == theirs.indices == (2, 3)
    assert ours.values == pytest.approx(theirs.values, rel=1e-5)


def test_costs_are_not_rounded_into_the_budget() -> None:
    features = np.ones((2, 1), dtype=np.float32)
    picked = budgeted_greedy(FeatureCoverage(), features, np.array([16777217, 5e7]), 16777216)
    assert len(picked[0]) == 0
    thirds = np.full(10, 1 / 3)
    many = np.eye(10, dtype=np.float32)
    picked = budgeted_greedy(FeatureCoverage(), many, thirds, 10 / 3 - 1e-9)
    assert len(picked[0]) == 9


def test_lazy_stops_where_greedy_stops() -> None:
    features = np.diag([1.0, 0.7, 0.7]).astype(np.float32)
    plain = greedy(FacilityLocation(), features, 3, stop_share=0.7)[0]
    assert lazy_greedy(FacilityLocation(), features, 3, stop_share=0.7).indices == plain.indices


def test_what_is_no_set_function_is_named() -> None:
    with pytest.raises(InvalidInput, match="objective: found NoneType; allowed: a set function"):
        greedy.__wrapped__(None, np.ones((2, 2)), 1)
