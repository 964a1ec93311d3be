"""Attacks on the searches: batches and padding, broken matrices, extreme numbers, huge problems.

Every input gives a true result or one sentence that says what is wrong with it.
"""

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import dgn
from compiled import KINDS, function_of, needs_kernels
from dgn.core.functions import FeatureCoverage, Items, Power, ProbabilisticCoverage
from dgn.core.search import (
    Selection,
    budgeted_greedy,
    exact,
    greedy,
    lazy_greedy,
    stochastic_greedy,
    top_k,
)
from dgn.errors import InvalidInput, SearchTooLarge

CLAIMS = Path(__file__).parents[2] / "samples" / "claims.jsonl"

SEARCHES = {
    "greedy": lambda f, items, costs, k: greedy(f, items, k),
    "lazy": lambda f, items, costs, k: lazy_greedy(f, items, k),
    "stochastic": lambda f, items, costs, k: stochastic_greedy(f, items, k),
    "budgeted": lambda f, items, costs, k: budgeted_greedy(f, items, costs, 9.0),
    "budgeted, k": lambda f, items, costs, k: budgeted_greedy(f, items, costs, 9.0, k=k),
}


def ragged(seed: int, dtype: type) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Features, weights and costs of sets of different sizes."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(4):
        items, width = (int(random.integers(1, most)) for most in (60, 90))
        features = np.minimum(random.gamma(0.4, size=(items, width)), 1)
        features[random.random(features.shape) < 0.3] = 0
        features[0, 0] = 1
        weights = random.random(width) + 0.1
        costs = random.integers(1, 9, items).astype(float)
        found.append((features.astype(dtype), weights.astype(dtype), costs))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_a_set_alone_is_the_same_set_in_any_batch(
    kind: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, (more, wider, threads) in enumerate([(0, 30, 1), (40, 1, 3)]):
        monkeypatch.setattr("dgn.core.native.searches._WORK_PER_THREAD", 1)
        monkeypatch.setattr("dgn.core.native.searches.available_cores", lambda n=threads: n)
        sets = ragged(seed, dtype)
        items = max(len(one) for one, _, _ in sets) + more
        width = max(one.shape[1] for one, _, _ in sets) + wider
        features = np.zeros((len(sets), items, width), dtype)
        mask, costs = np.zeros((len(sets), items), bool), np.ones((len(sets), items))
        weights = np.zeros((len(sets), width), dtype)
        for row, (own, its_weights, its_costs) in enumerate(sets):
            features[row, : len(own), : own.shape[1]] = own
            mask[row, : len(own)] = True
            weights[row, : own.shape[1]] = its_weights
            costs[row, : len(own)] = its_costs
        batch = Items(features, mask)
        for name, search in SEARCHES.items():
            together = search(function_of(kind, weights), batch, costs, 7)
            for row, (own, its_weights, its_costs) in enumerate(sets):
                alone = search(function_of(kind, its_weights), own, its_costs, 7)
                assert together[row] == alone, name


def test_a_query_alone_is_the_same_query_in_any_batch() -> None:
    selector = dgn.Selector.from_pretrained()
    queries = []
    for line in CLAIMS.read_text(encoding="utf-8").splitlines():
        claim = json.loads(line)
        queries.append({"query": claim["claim"], "documents": claim["documents"]})
    for limits in ({"k": 5}, {"max_tokens": 90}, {"k": 20, "stop_at": 0.9}):
        alone = [selector.select(**query, **limits) for query in queries]
        together = selector.select_many(queries, batch_size=len(queries), **limits)
        for one, found in zip(alone, together, strict=True):
            assert found.certificate == one.certificate
            assert found.to_dict() == one.to_dict()


def full_range(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Features, costs from the smallest float to the largest one, and a budget among them."""
    random = np.random.default_rng(seed)
    items = int(random.integers(1, 6))
    low = int(random.integers(-1074, 1020))
    high = min(1023, low + int(random.choice([3, 30, 300, 2100])))
    costs = np.ldexp(1 + random.random(items), random.integers(low, high, items))
    some = random.random(items) < 0.6
    budget = float(costs[some].sum() if some.any() else costs.min() / 2)
    features = np.ldexp(random.integers(0, 8, (items, 3)), int(random.integers(-20, 18)))
    return features.astype(float), costs, min(max(budget, 5e-324), 1.7e308)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_budget_of_any_size_is_kept_and_its_certificate_holds(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr("dgn.core.native.is_available", lambda: False)
    f = FeatureCoverage(concave=Power(1.0))
    for seed in range(150):
        features, costs, budget = full_range(seed)
        found = budgeted_greedy(f, features, costs, budget)
        prices, worth = list(map(Fraction, costs)), [Fraction(row.sum()) for row in features]
        sets = [
            chosen
            for size in range(len(costs) + 1)
            for chosen in combinations(range(len(costs)), size)
            if sum(prices[i] for i in chosen) <= Fraction(budget)
        ]
        best = max(sum((worth[i] for i in chosen), Fraction(0)) for chosen in sets)
        assert tuple(sorted(found.indices)) in sets, seed
        reached = sum((worth[i] for i in found.indices), Fraction(0))
        assert reached >= best * Fraction(found.certificate.ratio) * (1 - Fraction(1, 10**12)), seed
        assert 3 * reached >= best, seed
