import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.core.functions import FeatureCoverage, Items
from dgn.core import budgeted_greedy, greedy
from dgn.errors import InvalidInput
from instances import KINDS, Instance, instances, random_instance


@settings(max_examples=200)
@given(instances(largest=7), st.integers(0, 10**6), st.floats(0.3, 6.0))
def test_fits_the_budget_and_reaches_its_share(
    instance: Instance, seed: int, budget: float
) -> None:
    costs = np.random.default_rng(seed).uniform(0.2, 3.0, instance.size)
    found = budgeted_greedy(instance.objective, instance.features, costs, budget)
    assert costs[list(found.indices)].sum() <= budget
    assert len(set(found.indices)) == len(found)
    best = instance.best_within(costs, budget)
    reached = found.values[-1] if len(found) else 0.0
    assert reached == pytest.approx(instance.value(found.indices), abs=1e-9)
    assert reached >= (1 - 1 / math.e) / 2 * best - 1e-9
    assert found.certificate.bound >= best - 1e-9


def test_one_expensive_item_may_be_worth_more_than_cheap_ones() -> None:
    features = np.array([[1.0, 0.0], [0.0, 9.0]])
    found = budgeted_greedy(FeatureCoverage(), features, np.array([0.1, 10.0]), 10.0)
    assert found.indices == (1,)
    assert found.values == pytest.approx([math.log(10)])


def test_item_without_a_gain_is_not_selected() -> None:
    features = np.array([[1.0, 0.0], [0.0, 0.0]])
    found = budgeted_greedy(FeatureCoverage(), features, np.ones(2), 5.0)
    assert found.indices == (0,)


def test_nothing_is_selected_where_nothing_fits() -> None:
    features = np.ones((2, 2, 2))
    costs = np.array([[5.0, 6.0], [1.0, 1.0]])
    found = budgeted_greedy(FeatureCoverage(), features, costs, np.array([2.0, 1.0]))
    assert [len(one) for one in found] == [0, 1]
    assert found[0].certificate.ratio == 1.0
    assert found.ratios[0] == 1.0


def test_batch_equals_single_searches_and_torch_agrees() -> None:
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
    for row, found in enumerate(together):
        kept = np.flatnonzero(mask[row])
        alone = budgeted_greedy(FeatureCoverage(), features[row, kept], costs[row, kept], 4.0)
        assert found.indices == tuple(int(kept[i]) for i in alone.indices)
        assert found.certificate.ratio == pytest.approx(alone.certificate.ratio)
        assert by_torch[row].indices == found.indices


@settings(max_examples=300)
@given(instances(largest=7), st.integers(0, 10**6), st.floats(0.3, 8.0), st.integers(1, 5))
def test_k_and_budget_are_both_kept_and_the_certificate_holds(
    instance: Instance, seed: int, budget: float, k: int
) -> None:
    costs = np.random.default_rng(seed).uniform(0.2, 3.0, instance.size)
    found = budgeted_greedy(instance.objective, instance.features, costs, budget, k=k)
    assert len(found) <= k
    assert len(set(found.indices)) == len(found)
    assert costs[list(found.indices)].sum() <= budget
    best = instance.best_within(costs, budget, k)
    reached = found.values[-1] if len(found) else 0.0
    assert reached == pytest.approx(instance.value(found.indices), abs=1e-9)
    assert found.certificate.bound >= best - 1e-9
    assert found.certificate.ratio * best <= reached + 1e-9


def test_k_of_one_is_the_best_item_that_fits() -> None:
    features = np.array([[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    found = budgeted_greedy(FeatureCoverage(), features, np.array([0.1, 1.0, 5.0]), 2.0, k=1)
    assert found.indices == (1,)


def test_large_budget_is_limited_by_k() -> None:
    features = np.random.default_rng(0).random((9, 4))
    both = budgeted_greedy(FeatureCoverage(), features, np.ones(9), 100.0, k=3)
    plain = greedy(FeatureCoverage(), features, 3)
    assert both.indices == plain.indices
    assert both.certificate.bound == pytest.approx(plain.certificate.bound)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer of at least 1; got 0"),
        ({"k": True}, "k must be an integer of at least 1; got True"),
    ],
)
def test_limits_that_are_not_allowed(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        budgeted_greedy(FeatureCoverage(), np.ones((3, 2)), np.ones(3), 2.0, **options)


@pytest.mark.parametrize(
    ("costs", "budget", "message"),
    [
        (
            np.array([1.0, 0.0, 1.0]),
            2.0,
            r"costs must be finite and greater than 0; got 0 at \[0, 1\]",
        ),
        (np.array([1.0, -1.0, 1.0]), 2.0, "costs must be .*; got -1"),
        (np.array([1.0, np.nan, 1.0]), 2.0, "costs must be .*; got nan"),
        (np.ones(2), 2.0, r"costs must be an array of shape \(1, 3\), .*; got shape \(1, 2\)"),
        (np.ones(3), 0.0, r"budget must be finite and greater than 0; got 0 at \[0\]"),
        (["a", "b", "c"], 2.0, "costs and budget must be numbers"),
        (np.ones(3), np.ones(4), r"budget must be one number, or .*; got shape \(4,\)"),
    ],
)
def test_costs_and_budgets_that_are_not_allowed(
    costs: object, budget: object, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        budgeted_greedy(FeatureCoverage(), np.ones((3, 2)), costs, budget)


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
        found = budgeted_greedy(
            instance.objective,
            instance.features,
            costs,
            budget,
            cost_exponents=(np.array([exponent]),),
            skipped_cover=True,
        )
        reached = found.values[-1] if len(found) else 0.0
        assert reached == pytest.approx(instance.value(found.indices), abs=1e-9)
        assert found.certificate.bound >= instance.best_within(costs, budget) - 1e-9
        wanted = skipping(instance, costs, budget, exponent)
        shared = [one for one, other in zip(found.indices, wanted, strict=False) if one == other]
        rest = found.indices[len(shared) :]
        # Where what was skipped covers everything, the search goes on without it.
        assert not rest or is_covered(instance, costs, exponent, shared), seed
        fits = [i for i in range(instance.size) if i not in found.indices]
        fits = [i for i in fits if costs[[*found.indices, i]].sum() <= budget]
        values = [instance.value((*found.indices, item)) for item in fits]
        assert max(values, default=0.0) <= reached + 1e-9, "nothing else would add anything"


def test_a_part_of_a_long_item_is_not_selected_in_its_place() -> None:
    features = np.array([[9.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    costs = np.array([10.0, 3.0, 3.0])
    found = {
        covers: budgeted_greedy(
            FeatureCoverage(), features, costs, 4.0, cost_exponents=(0,), skipped_cover=covers
        ).indices
        for covers in (False, True)
    }
    assert found == {False: (1,), True: (2,)}
