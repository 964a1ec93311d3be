import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.errors import InvalidInput
from dgn.maximizers import budgeted_greedy
from dgn.objectives import FeatureCoverage, Items
from instances import Instance, instances


def best_within(instance: Instance, costs: np.ndarray, budget: float) -> float:
    sets = itertools.chain.from_iterable(
        itertools.combinations(range(instance.size), count) for count in range(instance.size + 1)
    )
    return max(instance.value(s) for s in sets if costs[list(s)].sum() <= budget)


@settings(max_examples=200)
@given(instances(largest=7), st.integers(0, 10**6), st.floats(0.3, 6.0))
def test_fits_the_budget_and_reaches_its_share(
    instance: Instance, seed: int, budget: float
) -> None:
    costs = np.random.default_rng(seed).uniform(0.2, 3.0, instance.size)
    picked = budgeted_greedy(instance.objective, instance.features, costs, budget)[0]
    assert costs[list(picked.indices)].sum() <= budget
    assert len(set(picked.indices)) == len(picked)
    best = best_within(instance, costs, budget)
    reached = picked.values[-1] if len(picked) else 0.0
    assert reached == pytest.approx(instance.value(picked.indices), abs=1e-9)
    assert reached >= (1 - 1 / math.e) / 2 * best - 1e-9
    assert picked.certificate.bound >= best - 1e-9


def test_one_large_item_may_be_worth_more_than_many_cheap_ones() -> None:
    features = np.array([[1.0, 0.0], [0.0, 9.0]])
    picked = budgeted_greedy(FeatureCoverage(), features, np.array([0.1, 10.0]), 10.0)[0]
    assert picked.indices == (1,)
    assert picked.values == pytest.approx([math.log(10)])


def test_nothing_is_paid_for_what_adds_nothing() -> None:
    features = np.array([[1.0, 0.0], [0.0, 0.0]])
    picked = budgeted_greedy(FeatureCoverage(), features, np.ones(2), 5.0)[0]
    assert picked.indices == (0,)


def test_where_nothing_fits_nothing_is_picked() -> None:
    features = np.ones((2, 2, 2))
    costs = np.array([[5.0, 6.0], [1.0, 1.0]])
    picked = budgeted_greedy(FeatureCoverage(), features, costs, np.array([2.0, 1.0]))
    assert [len(one) for one in picked] == [0, 1]
    assert picked[0].certificate.ratio == 1.0
    assert picked.ratios[0] == 1.0


def test_a_batch_gives_what_its_sets_give_alone_and_torch_too() -> None:
    random = np.random.default_rng(0)
    features, costs = random.random((5, 9, 4)), random.uniform(0.5, 2.0, (5, 9))
    mask = random.random((5, 9)) < 0.8
    mask[:, 0] = True
    together = budgeted_greedy(FeatureCoverage(), Items(features, mask), costs, 4.0)
    by_torch = budgeted_greedy(
        FeatureCoverage(),
        Items(torch.from_numpy(features), torch.from_numpy(mask)),
        torch.from_numpy(costs),
        4.0,
    )
    for row, picked in enumerate(together):
        kept = np.flatnonzero(mask[row])
        alone = budgeted_greedy(FeatureCoverage(), features[row, kept], costs[row, kept], 4.0)[0]
        assert picked.indices == tuple(int(kept[i]) for i in alone.indices)
        assert picked.certificate.ratio == pytest.approx(alone.certificate.ratio)
        assert by_torch[row].indices == picked.indices


@pytest.mark.parametrize(
    ("costs", "budget", "message"),
    [
        (np.array([1.0, 0.0, 1.0]), 2.0, r"costs: found 0 at \[0, 1\]; allowed: finite numbers"),
        (np.array([1.0, -1.0, 1.0]), 2.0, "costs: found -1"),
        (np.array([1.0, np.nan, 1.0]), 2.0, "costs: found nan"),
        (np.ones(2), 2.0, r"costs: found shape \(1, 2\); allowed: \(1, 3\)"),
        (np.ones(3), 0.0, r"budget: found 0 at \[0\]"),
        (np.ones(3), np.ones(4), r"budget: found shape \(4,\)"),
    ],
)
def test_bad_costs_and_budgets_are_named(costs: object, budget: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        budgeted_greedy(FeatureCoverage(), np.ones((3, 2)), costs, budget)
