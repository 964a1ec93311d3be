"""Context, pinned items, groups and budgets: every search against brute force, and mistakes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given as given_examples
from hypothesis import settings
from hypothesis import strategies as st

from compiled import native_greedy, needs_kernels
from dgn.core import Selection, greedy, lazy_greedy, native
from dgn.core.constraints import Constraints
from dgn.core.functions import FeatureCoverage, Items
from dgn.errors import InvalidInput
from instances import (
    KINDS,
    Constrained,
    MatrixCoverage,
    OwnCoverage,
    constrained_instance,
    subsets,
)

EXPONENTS = [1.0, 0.0, 0.5]


def by_greedy(problem: Constrained, items: object, seed: int) -> Selection:
    del seed
    return greedy(problem.instance.objective, items, problem.k, **problem.options)


def by_lazy(problem: Constrained, items: object, seed: int) -> Selection:
    del seed
    return lazy_greedy(problem.instance.objective, items, problem.k, **problem.options)


def by_budget(problem: Constrained, items: object, seed: int) -> Selection:
    options = problem.options | {"costs": problem.costs, "budget": problem.budget}
    options["cost_exponent"] = EXPONENTS[seed % len(EXPONENTS)]
    k = None if seed % 2 else problem.k
    return greedy(problem.instance.objective, items, k, **options)


SEARCHES = {"greedy": by_greedy, "lazy": by_lazy, "budget": by_budget}


def check(search: str, kind: str, seed: int, dtype: type = np.float64) -> float:
    """One search against brute force; returns the share of the best value that it reached."""
    problem = constrained_instance(kind, seed, 2 + seed % 6)
    has_budget = search == "budget"
    found = SEARCHES[search](problem, problem.instance.features.astype(dtype), seed)
    if has_budget and seed % 2:  # without k
        problem = replace(problem, k=problem.instance.size)
    assert problem.allows(found.indices, budget=has_budget)
    pinned = tuple(problem.pinned or ())
    assert found.indices[: len(pinned)] == pinned
    best = problem.best_value(budget=has_budget)
    reached = found.values[-1] if len(found) else 0.0
    slack = (1e-9 if dtype is np.float64 else 1e-5) * (1 + best)
    assert reached == pytest.approx(problem.value(found.indices), abs=slack)
    assert found.gains == pytest.approx(np.diff([0.0, *found.values]), abs=slack)
    assert found.certificate.bound >= best - slack
    assert found.certificate.ratio * best <= reached + slack
    if not has_budget:
        share = 1 / 2 if problem.groups else 1 - 1 / math.e
        assert reached >= share * best - slack
    elif seed % 6 == 3 and not problem.groups:  # with an exponent of 1, and without k
        assert reached >= (1 - 1 / math.e) / 2 * best - slack
    if search == "lazy" and dtype is np.float64:
        wanted = by_greedy(problem, problem.instance.features, seed)
        assert found.indices == wanted.indices
    return 1.0 if best <= 0 else reached / best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_against_brute_force(search: str, kind: str) -> None:
    shares = [check(search, kind, seed) for seed in range(100)]
    assert min(shares) < 1, "no instance was hard"
    for seed in range(6):
        check(search, kind, seed, np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_against_brute_force_many_times(search: str, kind: str) -> None:
    for seed in range(1000, 3000):
        check(search, kind, seed)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["log1p", "facility_location", "mixture", "mixture_by_slices"])
def test_a_ragged_batch_is_its_sets_one_by_one(
    search: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(10):
        check_batch(search, kind, seed)
    monkeypatch.setattr(native, "is_available", lambda: False)
    for seed in range(4):
        check_batch(search, kind, seed)


def check_batch(search: str, kind: str, seed: int) -> None:
    """Sets of different sizes, with padding between their items."""
    random = np.random.default_rng(seed)
    problems = [
        constrained_instance(kind, 5 * seed + row, int(random.integers(1, 7))) for row in range(3)
    ]
    objective, k = problems[0].instance.objective, max(one.k for one in problems)
    quotas, width = [1, 2, 2], problems[0].instance.features.shape[1]
    features, mask = random.random((3, 9, width)), np.zeros((3, 9), np.bool_)
    groups, costs = np.zeros((3, 9), np.int64), np.ones((3, 9))
    there, pinned, places, budgets = np.zeros((3, 9), np.bool_), [], [], []
    for row, one in enumerate(problems):
        size = one.instance.size
        place = np.sort(random.permutation(9)[:size])
        mask[row, place], features[row, place] = True, one.instance.features
        groups[row, place], costs[row, place] = one.groups or [-1] * size, one.costs
        there[row, place[one.context or []]] = True
        pinned.append(place[(one.pinned or [])[:1]].tolist())
        places.append(place)
        budgets.append(one.budget)

    def run(x: object, cost: np.ndarray, budget: object, limits: dict) -> object:
        limits = limits | {"max_per_group": quotas}
        if search == "budget":
            return greedy(objective, x, k, costs=cost, budget=budget, cost_exponent=0.5, **limits)
        return {"greedy": greedy, "lazy": lazy_greedy}[search](objective, x, k, **limits)

    try:
        limits = {"context": there, "pinned": pinned, "groups": groups}
        together = run(Items(features, mask), costs, np.array(budgets), limits)
    except InvalidInput as error:
        assert "max_per_group allows" in str(error)  # noqa: PT017
        return
    for row, place in enumerate(places):
        limits = {
            "context": np.flatnonzero(there[row, place]),
            "pinned": np.searchsorted(place, pinned[row]),
            "groups": groups[row, place],
        }
        alone = run(features[row, place], costs[row, place], budgets[row], limits)
        found = together[row]
        assert found.indices == tuple(place[list(alone.indices)].tolist())
        if kind != "mixture" and search != "lazy":
            assert found.gains == alone.gains
        assert found.gains == pytest.approx(alone.gains, abs=1e-12)
        if search == "lazy":  # its certificate is that of fewer prefixes
            assert found.certificate.bound <= alone.certificate.bound * (1 + 1e-12)
        else:
            assert found.certificate.bound == pytest.approx(alone.certificate.bound, rel=1e-12)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["log1p", "saturated", "mixture"])
def test_torch_finds_the_same(search: str, kind: str) -> None:
    for seed in range(20):
        problem = constrained_instance(kind, seed, 7)
        wanted = SEARCHES[search](problem, problem.instance.features, seed)
        found = SEARCHES[search](problem, torch.from_numpy(problem.instance.features), seed)
        assert found.indices == wanted.indices
        assert found.gains == pytest.approx(wanted.gains, abs=1e-12)
        if search == "lazy":  # greedy searches tensors; its certificate is that of more prefixes
            assert found.certificate.bound <= wanted.certificate.bound * (1 + 1e-9)
        else:
            assert found.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-9)


@needs_kernels
@pytest.mark.parametrize("kind", ["log1p", "facility_location", "probabilistic"])
def test_sparse_rows_are_searched_like_dense_ones(kind: str) -> None:
    for seed in range(24):
        problem = constrained_instance(kind, seed, 7)
        f, x, k = problem.instance.objective, problem.instance.features, problem.k
        wanted = lazy_greedy(f, x, k, **problem.options)
        found = lazy_greedy(f, scipy.sparse.csr_array(x), k, **problem.options)
        assert found.indices == wanted.indices
        assert found.gains == pytest.approx(wanted.gains, abs=1e-12)
        assert found.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-9)


def test_a_large_set_with_groups_is_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    features, groups = random.gamma(0.3, size=(30_000, 6)), random.integers(-1, 5, 30_000)
    monkeypatch.setattr(native_greedy, "_WORK_PER_THREAD", 1000)
    options = {"context": range(50), "pinned": [70, 60], "groups": groups, "max_per_group": 3}
    f = FeatureCoverage()
    found = lazy_greedy(f, features, 25, **options)
    monkeypatch.setattr(native, "is_available", lambda: False)
    plain = greedy(f, features, 25, **options)
    assert found.indices == plain.indices == lazy_greedy(f, features, 25, **options).indices
    assert np.bincount(groups[list(found.indices)] + 1)[1:].max() == 3
    assert found.certificate.bound >= plain.certificate.bound * (1 - 1e-9)


def test_items_that_are_there_are_a_context_and_are_not_selected() -> None:
    f, features = FeatureCoverage(), np.random.default_rng(0).random((8, 5))
    items = Items(features)
    context = f.add(items, f.empty(items), np.isin(np.arange(8), [2, 5])[None].astype(float))
    rest = [0, 1, 3, 4, 6, 7]
    wanted = greedy(f, features[rest], 3, context=context)
    found = greedy(f, features, 3, context=[5, 2, 5])
    assert found.indices == tuple(rest[i] for i in wanted.indices)
    assert found.gains == pytest.approx(wanted.gains, rel=1e-12)
    everything = greedy(f, features, 3, context=range(8))
    assert len(everything) == 0
    assert everything.certificate.ratio == 1


@pytest.mark.parametrize("search", [greedy, lazy_greedy])
def test_pinned_items_alone_are_the_best_set_that_contains_them(search: object) -> None:
    features = np.random.default_rng(0).random((6, 4))
    found = search(FeatureCoverage(), features, 2, pinned=[4, 1])
    assert found.indices == (4, 1)
    assert found.certificate.ratio == 1
    assert found.certificate.value == sum(found.gains)


def test_ties_go_to_the_lowest_index_that_is_allowed() -> None:
    features = np.ones((6, 2))
    options = {"context": [0], "groups": [0, 1, 1, 1, 2, 2], "max_per_group": [1, 1, 9]}
    for search in (greedy, lazy_greedy):
        assert search(FeatureCoverage(), features, 4, **options).indices == (1, 4, 5)
    zeros = greedy(FeatureCoverage(), np.zeros((3, 2)), 3, groups=[0, 0, 1], max_per_group=1)
    assert zeros.indices == (0, 2)


def test_functions_with_data_of_their_own_take_constraints() -> None:
    random = np.random.default_rng(0)
    similarity, features = random.random((6, 6)), random.random((6, 3))
    options = {"context": [1], "pinned": [3], "groups": [0, 0, 0, 1, 1, 1], "max_per_group": 2}
    for f in (MatrixCoverage(similarity), OwnCoverage()):
        found = greedy(f, features, 4, **options)
        assert found.indices[0] == 3
        assert len(found) == 4
        assert len(greedy(f, features, costs=np.ones(6), budget=2.0, **options)) == 2


@settings(max_examples=100)
@given_examples(st.integers(0, 2**32 - 1), st.booleans())
def test_the_largest_gain_of_an_allowed_set_against_brute_force(seed: int, has_costs: bool) -> None:
    """The bound of certificates: exact within k and groups, and not below it within a budget."""
    random = np.random.default_rng(seed)
    mask = random.random((2, 7)) < 0.8
    mask[:, 6] = True
    pinned = [np.flatnonzero(row)[:1].tolist() for row in mask]
    groups, quotas = random.integers(-2, 3, (2, 7)), [1, 2, 1]
    gains = random.integers(0, 4, (2, 7)) * mask / 2
    costs, budget = random.integers(1, 5, (2, 7)).astype(float), np.array([5.0, 8.0])
    k = int(random.integers(1, 6))
    paid = {"costs": costs, "budget": budget} if has_costs else {}
    constraints = Constraints.of_sets(
        mask, k, single=False, pinned=pinned, groups=groups, max_per_group=quotas, **paid
    )
    for row, one in enumerate(constraints):
        sets = subsets(7)
        good = (sets.sum(axis=1) <= k) & sets[:, pinned[row]].all(axis=1)
        good &= ~sets[:, ~mask[row]].any(axis=1)
        for group, quota in enumerate(quotas):
            good &= sets[:, groups[row] == group].sum(axis=1) <= quota
        if has_costs:
            good &= sets @ costs[row] <= budget[row]
        best = (sets[good] @ gains[row]).max() - gains[row, pinned[row]].sum()
        found = one.after_pinned().largest_gain(gains[row])
        assert found >= best if has_costs else found == best


def test_groups_are_numbered_by_callers_as_they_like() -> None:
    features = np.random.default_rng(0).random((6, 4))
    ids = np.array([10**12, 7, 7, -5, 10**12, -5])
    wanted = greedy(FeatureCoverage(), features, 4, groups=[1, 0, 0, -1, 1, -1], max_per_group=1)
    assert greedy(FeatureCoverage(), features, 4, groups=ids, max_per_group=1) == wanted
    free = greedy(FeatureCoverage(), features, 4, groups=[-1] * 6, max_per_group=1)
    assert free.indices == greedy(FeatureCoverage(), features, 4).indices


@settings(max_examples=100)
@given_examples(st.integers(0, 2**32 - 1), st.sampled_from(list(KINDS)))
def test_arrays_of_every_kind_mean_the_same(seed: int, kind: str) -> None:
    problem = constrained_instance(kind, seed, 6)
    f, x, k = problem.instance.objective, problem.instance.features, problem.k
    there, pinned = np.zeros(6, np.bool_), sorted(problem.pinned or [])
    there[problem.context or []] = True
    is_pinned = np.zeros(6, np.bool_)
    is_pinned[pinned] = True
    limits = {"groups": problem.groups, "max_per_group": problem.max_per_group}
    wanted = greedy(f, x, k, context=problem.context, pinned=pinned, **limits)
    assert greedy(f, x, k, context=there, pinned=is_pinned, **limits) == wanted
    assert greedy(f, x, k, context=there.tolist(), pinned=tuple(pinned), **limits) == wanted
    assert greedy(f, x[None], k, context=[there], pinned=[pinned], **limits)[0] == wanted
    if problem.groups is not None:
        limits["groups"] = torch.tensor(problem.groups)
    by_torch = greedy(
        f,
        torch.from_numpy(x),
        k,
        context=torch.from_numpy(there),
        pinned=torch.tensor(pinned, dtype=torch.int64),
        **limits,
    )
    assert by_torch.indices == wanted.indices
    assert by_torch.gains == pytest.approx(wanted.gains, abs=1e-12)
    assert by_torch.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": [3]}, "context must be indices from 0 to 2; got 3"),
        ({"context": [-1]}, "context must be indices from 0 to 2; got -1"),
        (
            {"context": [0.5]},
            "context must be the indices of items, or 3 booleans; got dtype float64",
        ),
        ({"context": 1}, "context must be the indices of items"),
        ({"context": [True, False]}, r"context must be .* got dtype bool and shape \(2,\)"),
        ({"context": [[0], [1]]}, r"context must be .* got dtype int64 and shape \(2, 1\)"),
        ({"context": "a"}, "context must be the indices of items"),
        ({"pinned": [1, 1]}, "pinned contains item 1 more than once"),
        ({"pinned": [1], "context": [1]}, "Item 1 is in both context and pinned"),
        ({"pinned": [0, 1, 2]}, "3 items are pinned, more than k, which is 2"),
        ({"groups": [0, 0, 0]}, "groups was passed without max_per_group; pass both or neither"),
        ({"max_per_group": 1}, "max_per_group was passed without groups; pass both or neither"),
        ({"groups": [0, 0], "max_per_group": 1}, r"groups must be integers of shape \(3,\)"),
        ({"groups": [0.0, 0, 1], "max_per_group": 1}, "groups must be integers"),
        ({"groups": [0, 0, 1], "max_per_group": 0}, "max_per_group must be an integer of at least"),
        ({"groups": [0, 0, 1], "max_per_group": True}, "max_per_group must be an integer"),
        ({"groups": [0, 0, 1], "max_per_group": [1, -1]}, "max_per_group must be an integer"),
        ({"groups": [0, 0, 1], "max_per_group": [1.0]}, "max_per_group must be an integer"),
        ({"groups": [0, 0, 1], "max_per_group": [1]}, "has 1 quotas, and groups contains 1"),
        (
            {"groups": [0, 0, 1], "max_per_group": 1, "pinned": [0, 1]},
            "The pinned items are more of one group than max_per_group allows",
        ),
    ],
)
def test_constraints_that_are_not_allowed(options: dict, message: str) -> None:
    f, features = FeatureCoverage(), np.ones((3, 2))
    for search in (greedy, lazy_greedy):
        with pytest.raises(InvalidInput, match=message):
            search(f, features, 2, **options)
    with pytest.raises(InvalidInput, match=message):
        greedy(f, features, 2, costs=np.ones(3), budget=9.0, **options)


def test_constraints_of_a_batch_that_are_not_allowed() -> None:
    items = Items(np.ones((2, 3, 2)), np.array([[True] * 3, [True, False, True]]))
    f = FeatureCoverage()
    with pytest.raises(InvalidInput, match="pinned contains item 1 in set 1, which is padding"):
        greedy(f, items, 2, pinned=[[0], [1]])
    with pytest.raises(InvalidInput, match=r"context must be booleans of shape \(2, 3\)"):
        greedy(f, items, 2, context=[True, False, True])
    with pytest.raises(InvalidInput, match="Item 2 of set 1 is in both context and pinned"):
        greedy(f, items, 2, context=[[], [2]], pinned=[[2], [2]])
    with pytest.raises(InvalidInput, match="pinned items of set 1 cost 2, more than the budget, 1"):
        greedy(f, items, costs=np.ones((2, 3)), budget=1.0, pinned=[[0], [0, 2]])
