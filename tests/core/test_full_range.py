"""The certificate over the full range of floats: it never promises more than brute force finds.

Features and weights are drawn from the smallest subnormal to the largest number. A search may
refuse them (InvalidInput); what it answers must be true. The truth is computed in extended
precision, from the definitions.
"""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from dgn.core import greedy, lazy_greedy
from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    GraphCut,
    Log1p,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
)
from dgn.errors import InvalidInput

Exact = np.longdouble
SIZE, WIDTH, K = 5, 3, 2
CONCAVE: dict[str, tuple[Concave, Callable[[np.ndarray], np.ndarray]]] = {
    "log1p": (Log1p(), np.log1p),
    "sqrt": (Power(0.5), np.sqrt),
    "power": (Power(0.7), lambda x: x ** Exact(0.7)),
    "linear": (Power(1.0), lambda x: x),
    "one_minus_exp": (OneMinusExp(), lambda x: -np.expm1(-x)),
    "saturated": (Saturated(1e3), lambda x: np.minimum(x, Exact(1e3))),
}
KINDS = [*CONCAVE, "facility_location", "probabilistic"]
SEARCHES = {
    "greedy": lambda f, x: greedy(f, x, K),
    "lazy": lambda f, x: lazy_greedy(f, x, K),
    "budget": lambda f, x: greedy(f, x, costs=np.ones(len(x)), budget=float(K)),
}


def anywhere(random: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of a random size, all of about the same size or spread over many."""
    limits = np.finfo(dtype)
    low, high = float(np.log2(limits.smallest_subnormal)), float(np.log2(limits.max))
    middle = random.uniform(low, high)
    exponents = np.clip(random.normal(middle, random.choice([0.5, 3, 30]), shape), low, high)
    exponents = np.where(random.random(shape) < 0.05, high, exponents)
    numbers = np.exp2(exponents.astype(Exact))
    numbers = np.minimum(numbers, Exact(limits.max)).astype(dtype)
    return np.where(random.random(shape) < 0.2, dtype(0), numbers)


def value_of(kind: str, weights: np.ndarray, chosen: np.ndarray) -> np.longdouble:
    rows, by = chosen.astype(Exact), weights.astype(Exact)
    if kind == "facility_location":
        return (by * rows.max(axis=0)).sum()
    if kind == "probabilistic":
        return (by * (1 - np.prod(1 - rows, axis=0))).sum()
    return (by * CONCAVE[kind][1](rows.sum(axis=0))).sum()


def objective_of(kind: str, weights: np.ndarray) -> SetFunction:
    if kind == "facility_location":
        return FacilityLocation(weights)
    if kind == "probabilistic":
        return ProbabilisticCoverage(weights)
    return FeatureCoverage(weights, CONCAVE[kind][0])


def check(kind: str, dtype: type, search: str, seeds: range) -> int:
    """Check that what is answered is true; return how many instances were answered."""
    answered = 0
    # Half precision is computed in float32.
    eps = np.finfo(np.float32 if dtype is np.float16 else dtype).eps
    for seed in seeds:
        random = np.random.default_rng([seed, len(kind)])
        features = anywhere(random, dtype, (SIZE, WIDTH))
        if kind == "probabilistic":
            features = np.minimum(features, dtype(1))
        weights = anywhere(random, dtype, (WIDTH,)) if seed % 2 else np.ones(WIDTH, dtype)
        try:
            found = SEARCHES[search](objective_of(kind, weights), features)
        except InvalidInput:
            continue
        answered += 1
        best = max(
            value_of(kind, weights, features[list(chosen)])
            for chosen in itertools.combinations(range(SIZE), K)
        )
        reached = value_of(kind, weights, features[list(found.indices)]) if found.indices else 0
        promised = found.certificate.ratio * best
        assert promised <= reached * Exact(1 + 40 * eps), (seed, found, float(best))
        if search != "budget":
            assert len(found) == K
    return answered


@pytest.mark.skipif(np.finfo(Exact).maxexp <= 1024, reason="no extended precision here")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_holds_over_the_full_range(kind: str, dtype: type) -> None:
    assert check(kind, dtype, "greedy", range(100)) > 20
    for search in ("lazy", "budget"):
        check(kind, dtype, search, range(100, 125))


@pytest.mark.skipif(np.finfo(Exact).maxexp <= 1024, reason="no extended precision here")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("redundancy", [0.25, 0.5])
def test_the_certificate_of_a_graph_cut_holds_over_the_full_range(
    redundancy: float, dtype: type
) -> None:
    answered = 0
    eps = np.finfo(np.float32 if dtype is np.float16 else dtype).eps
    for seed in range(100):
        half = np.triu(anywhere(np.random.default_rng(seed), dtype, (SIZE, SIZE)))
        matrix = half + np.triu(half, 1).T
        try:
            found = greedy(GraphCut(redundancy), matrix, K)
        except InvalidInput:
            continue
        wide = matrix.astype(Exact)
        values = {
            chosen: wide[:, chosen].sum() - Exact(redundancy) * wide[np.ix_(chosen, chosen)].sum()
            for chosen in itertools.combinations(range(SIZE), K)
        }
        answered += 1
        reached = values[tuple(sorted(found.indices))]
        assert found.certificate.ratio * max(values.values()) <= reached * Exact(1 + 40 * eps)
        assert abs(found.values[-1] - reached) <= 40 * eps * reached
    assert answered > 20


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_holds_over_the_full_range_many_times(kind: str, search: str) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        check(kind, dtype, search, range(1000, 3000))
