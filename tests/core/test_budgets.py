"""Costs and a budget: what fits, the guarantee, exponents of costs, and items that are skipped."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.core import greedy
from dgn.core.functions import FeatureCoverage, Items
from dgn.errors import InvalidInput
from instances import KINDS, Instance, instances, random_instance


@settings(max_examples=100)
@given(
    instances(largest=7),
    st.integers(0, 10**6),
    st.floats(0.3, 8.0),
    st.none() | st.integers(1, 5),
)
def test_fits_the_budget_and_reaches_its_share(
    instance: Instance, seed: int, budget: float, k: int | None
) -> None:
    costs = np.random.default_rng(seed).uniform(0.2, 3.0, instance.size)
    found = greedy(instance.objective, instance.features, k, costs=costs, budget=budget)
    assert costs[list(found.indices)].sum() <= budget
    assert len(set(found.indices)) == len(found) <= (k or instance.size)
    best = instance.best_within(costs, budget, k)
    reached = found.values[-1] if len(found) else 0.0
    assert reached == pytest.approx(instance.value(found.indices), abs=1e-9)
    if k is None:
        assert reached >= (1 - 1 / math.e) / 2 * best - 1e-9
    assert found.certificate.bound >= best - 1e-9
    assert found.certificate.ratio * best <= reached + 1e-9


def test_one_expensive_item_may_be_worth_more_than_cheap_ones() -> None:
    features = np.array([[1.0, 0.0], [0.0, 9.0]])
    found = greedy(FeatureCoverage(), features, costs=np.array([0.1, 10.0]), budget=10.0)
    assert found.indices == (1,)
    assert found.values == pytest.approx([math.log(10)])


def test_item_without_a_gain_is_not_selected() -> None:
    features = np.array([[1.0, 0.0], [0.0, 0.0]])
    found = greedy(FeatureCoverage(), features, costs=np.ones(2), budget=5.0)
    assert found.indices == (0,)


def test_nothing_is_selected_where_nothing_fits() -> None:
    features = np.ones((2, 2, 2))
    costs = np.array([[5.0, 6.0], [1.0, 1.0]])
    found = greedy(FeatureCoverage(), features, costs=costs, budget=np.array([2.0, 1.0]))
    assert [len(one) for one in found] == [0, 1]
    assert found[0].certificate.ratio == 1.0
    assert found.ratios[0] == 1.0


def test_batch_equals_single_searches_and_torch_agrees() -> None:
    random = np.random.default_rng(0)
    features, costs = random.random((5, 9, 4)), random.uniform(0.5, 2.0, (5, 9))
    mask = random.random((5, 9)) < 0.8
    mask[:, 0] = True
    together = greedy(FeatureCoverage(), Items(features, mask), costs=costs, budget=4.0)
    items = Items(torch.from_numpy(features), torch.from_numpy(mask))
    by_torch = greedy(FeatureCoverage(), items, costs=torch.from_numpy(costs), budget=4.0)
    for row, found in enumerate(together):
        kept = np.flatnonzero(mask[row])
        alone = greedy(FeatureCoverage(), features[row, kept], costs=costs[row, kept], budget=4.0)
        assert found.indices == tuple(int(kept[i]) for i in alone.indices)
        assert found.certificate.ratio == pytest.approx(alone.certificate.ratio)
        assert by_torch[row].indices == found.indices


def test_k_of_one_is_the_best_item_that_fits() -> None:
    features, costs = np.array([[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]), np.array([0.1, 1.0, 5.0])
    assert greedy(FeatureCoverage(), features, 1, costs=costs, budget=2.0).indices == (1,)


def test_large_budget_is_limited_by_k() -> None:
    features = np.random.default_rng(0).random((9, 4))
    both = greedy(FeatureCoverage(), features, 3, costs=np.ones(9), budget=100.0)
    plain = greedy(FeatureCoverage(), features, 3)
    assert both.indices == plain.indices
    assert both.certificate.bound == pytest.approx(plain.certificate.bound)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"costs": np.array([1.0, 0.0, 1.0])},
            r"costs must be finite and greater than 0; got 0 at \[0, 1\]",
        ),
        ({"costs": np.array([1.0, -1.0, 1.0])}, "costs must be .*; got -1"),
        ({"costs": np.array([1.0, np.nan, 1.0])}, "costs must be .*; got nan"),
        (
            {"costs": np.ones(2)},
            r"costs must be an array of shape \(1, 3\), .*; got shape \(1, 2\)",
        ),
        ({"costs": ["a", "b", "c"]}, "costs must be numbers"),
        ({"budget": 0.0}, r"budget must be finite and greater than 0; got 0 at \[0\]"),
        ({"budget": np.ones(4)}, r"budget must be one number, or .*; got shape \(4,\)"),
        ({"budget": "much"}, "budget must be numbers; got 'much'"),
        ({"budget": None}, "costs was passed without budget; pass both or neither"),
        ({"costs": None}, "budget was passed without costs; pass both or neither"),
        ({"k": 0}, "k must be an integer of at least 1; got 0"),
        ({"k": True}, "k must be an integer of at least 1; got True"),
        ({"cost_exponent": 2.0}, "cost_exponent must be a number from 0 to 1"),
        ({"cost_exponent": -0.5}, "cost_exponent must be a number from 0 to 1"),
        ({"cost_exponent": float("nan")}, "cost_exponent must be a number from 0 to 1"),
        ({"cost_exponent": "half"}, "cost_exponent must be a number from 0 to 1"),
        ({"cost_exponent": [0.5, 0.5]}, "cost_exponent must be a number from 0 to 1"),
    ],
)
def test_costs_and_budgets_that_are_not_allowed(changes: dict, message: str) -> None:
    arguments = {"costs": np.ones(3), "budget": 2.0} | changes
    with pytest.raises(InvalidInput, match=message):
        greedy(FeatureCoverage(), np.ones((3, 2)), **arguments)


def skipping(instance: Instance, costs: np.ndarray, budget: float, exponent: float) -> list[int]:
    """Take items in the order of a search without a budget, and skip those that do not fit."""
    order: list[int] = []
    while len(order) < instance.size:
        others = [item for item in range(instance.size) if item not in order]
        before = instance.value(tuple(order))
        gains = {i: instance.value((*order, i)) - before for i in others}
        order.append(max(others, key=lambda i: (gains[i] / costs[i] ** exponent, -i)))
    kept: list[int] = []
    for item in order:
        if costs[[*kept, item]].sum() <= budget:
            kept.append(item)
    return kept


def is_covered(instance: Instance, costs: np.ndarray, exponent: float, kept: list[int]) -> bool:
    """Whether, when these were selected, no item added anything to them and to those skipped."""
    order = skipping(instance, costs, math.inf, exponent)
    passed: list[int] = []
    for item in order:
        if instance.value((*passed, item)) - instance.value(tuple(passed)) <= 1e-12:
            return set(kept) <= set(passed)
        passed.append(item)
    return False


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("exponent", [0.0, 0.3])
def test_skipped_items_cover(kind: str, exponent: float) -> None:
    for seed in range(20):
        instance = random_instance(kind, seed, 2 + seed % 7)
        random = np.random.default_rng(seed)
        costs, budget = random.uniform(0.2, 3.0, instance.size), random.uniform(0.3, 6.0)
        limits = {"costs": costs, "budget": budget, "cost_exponent": exponent}
        found = greedy(instance.objective, instance.features, **limits, skipped_cover=True)
        reached = found.values[-1] if len(found) else 0.0
        assert reached == pytest.approx(instance.value(found.indices), abs=1e-9)
        assert found.certificate.bound >= instance.best_within(costs, budget) - 1e-9
        wanted = skipping(instance, costs, budget, exponent)
        shared = [one for one, other in zip(found.indices, wanted, strict=False) if one == other]
        rest = found.indices[len(shared) :]
        # Where what was skipped covers everything, what follows is decided by rounding.
        is_whole = not rest and len(found) == len(wanted)
        assert is_whole or is_covered(instance, costs, exponent, shared), seed


def test_a_part_of_a_long_item_is_not_selected_in_its_place() -> None:
    features = np.array([[9.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    limits = {"costs": np.array([10.0, 3.0, 3.0]), "budget": 4.0, "cost_exponent": 0}
    found = {
        covers: greedy(FeatureCoverage(), features, **limits, skipped_cover=covers).indices
        for covers in (False, True)
    }
    assert found == {False: (1,), True: (2,)}


def test_an_exponent_decides_between_gain_and_gain_per_cost() -> None:
    features, costs = np.array([[4.0], [3.0], [1.0]]), np.array([3.0, 3.0, 1.0])
    found = greedy(FeatureCoverage(), features, costs=costs, budget=4.0, cost_exponent=0.0)
    assert found.indices == (0, 2), "an item that does not fit is skipped"
    costs = np.array([[2.0, 1.0], [2.0, 1.0]])
    batch = np.array([[[4.0, 0.0], [0.0, 3.0]]] * 2)
    found = greedy(FeatureCoverage(), batch, 1, costs=costs, budget=2.0, cost_exponent=[0.0, 1.0])
    assert [one.indices for one in found] == [(0,), (1,)] or found[1].indices == (0,)


def test_a_pinned_item_and_what_fits_exactly() -> None:
    features, costs = np.eye(3), np.array([0.1, 0.2, 0.3])
    found = greedy(FeatureCoverage(), features, costs=costs, budget=0.6, pinned=[2, 0])
    assert found.indices == (2, 0)  # 0.1 + 0.2 + 0.3 > 0.6 in binary numbers
    found = greedy(FeatureCoverage(), features, costs=10 * costs, budget=6.0, pinned=[2, 0])
    assert found.indices == (2, 0, 1)
