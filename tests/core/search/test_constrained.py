"""Given and pinned items, groups and cost exponents: every search against brute force."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch

from compiled import needs_kernels
from dgn.core import native
from dgn.core.functions import FeatureCoverage, Items
from dgn.core import (
    Selection,
    budgeted_greedy,
    exact,
    greedy,
    lazy_greedy,
    stochastic_greedy,
)
from dgn.errors import InvalidInput
from instances import KINDS, Constrained, MatrixCoverage, OwnCoverage, constrained_instance

EXPONENTS = [(1.0,), (0.0, 1.0), (0.5,), (0.0, 0.3, 1.0)]


def by_budget(problem: Constrained, items: object, seed: int) -> Selection:
    f, x, k = problem.instance.objective, items, None if seed % 2 else problem.k
    exponents = EXPONENTS[seed % len(EXPONENTS)]
    costs, budget = problem.costs, problem.budget
    return budgeted_greedy(f, x, costs, budget, k=k, cost_exponents=exponents, **problem.options)


def by_samples(problem: Constrained, items: object, seed: int) -> Selection:
    options = {"given": problem.given, "pinned": problem.pinned}
    return stochastic_greedy(problem.instance.objective, items, problem.k, seed=seed, **options)


def by(search: object) -> object:
    return lambda problem, items, _: search(
        problem.instance.objective, items, problem.k, **problem.options
    )


SEARCHES = {
    "greedy": by(greedy),
    "lazy": by(lazy_greedy),
    "exact": by(exact),
    "stochastic": by_samples,
    "budgeted": by_budget,
}


def check(search: str, kind: str, seed: int, dtype: type = np.float64) -> float:
    """One search against brute force; returns the share of the best value that it reached."""
    without = "groups" if search == "stochastic" else ""
    problem = constrained_instance(kind, seed, 2 + seed % 6, without)
    is_budgeted = search == "budgeted"
    found = SEARCHES[search](problem, problem.instance.features.astype(dtype), seed)
    if is_budgeted and seed % 2:  # without k
        problem = Constrained(**{**vars(problem), "k": problem.instance.size})
    assert problem.allows(found.indices, budget=is_budgeted)
    pinned = tuple(problem.pinned or ())
    assert found.indices[: len(pinned)] == pinned
    best = problem.best_value(budget=is_budgeted)
    reached = found.values[-1] if len(found) else 0.0
    slack = (1e-9 if dtype is np.float64 else 1e-5) * (1 + best)
    assert reached == pytest.approx(problem.value(found.indices), abs=slack)
    assert found.gains == pytest.approx(np.diff([0.0, *found.values]), abs=slack)
    assert found.certificate.bound >= best - slack
    assert found.certificate.ratio * best <= reached + slack
    if search == "exact":
        assert reached == pytest.approx(best, abs=slack)
        assert found.certificate.ratio == 1
    if search in {"greedy", "lazy"}:
        share = 1 / 2 if problem.groups else 1 - 1 / math.e
        assert reached >= share * best - slack
    if is_budgeted and seed % 2 and not problem.groups:  # with an exponent of 1, and without k
        assert reached >= (1 - 1 / math.e) / 2 * best - slack
    if search == "lazy" and dtype is np.float64:
        wanted = SEARCHES["greedy"](problem, problem.instance.features, seed)
        assert found.indices == wanted.indices
    return 1.0 if best <= 0 else reached / best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_against_brute_force(search: str, kind: str) -> None:
    shares = [check(search, kind, seed) for seed in range(24)]
    assert search == "exact" or min(shares) < 1, "no instance was hard"
    for seed in range(6):
        check(search, kind, seed, np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_against_brute_force_many_times(search: str, kind: str) -> None:
    for seed in range(1000, 3000):
        check(search, kind, seed)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["log1p", "facility_location", "mixture"])
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
    without = "groups" if search == "stochastic" else ""
    one_by_one = [
        constrained_instance(kind, 5 * seed + row, int(random.integers(1, 7)), without)
        for row in range(3)
    ]
    objective, k = one_by_one[0].instance.objective, max(one.k for one in one_by_one)
    quotas, width = [1, 2, 2], one_by_one[0].instance.features.shape[1]
    features, mask = random.random((3, 9, width)), np.zeros((3, 9), np.bool_)
    groups, costs = np.zeros((3, 9), np.int64), np.ones((3, 9))
    given, pinned, places, budgets = np.zeros((3, 9), np.bool_), [], [], []
    for row, one in enumerate(one_by_one):
        size = one.instance.size
        place = np.sort(random.permutation(9)[:size])
        mask[row, place], features[row, place] = True, one.instance.features
        groups[row, place], costs[row, place] = one.groups or [-1] * size, one.costs
        given[row, place[one.given or []]] = True
        pinned.append(place[(one.pinned or [])[:1]].tolist())
        places.append(place)
        budgets.append(one.budget)
    options = {"given": given, "pinned": pinned}
    if not without:
        options |= {"groups": groups, "max_per_group": quotas}
    items, name = Items(features, mask), search

    def run(x: object, cost: np.ndarray, budget: object, limits: dict) -> object:
        if name == "budgeted":
            exponents = (0.0, 0.5, 1.0)
            return budgeted_greedy(
                objective, x, cost, budget, k=k, cost_exponents=exponents, **limits
            )
        searches = {"greedy": greedy, "lazy": lazy_greedy, "exact": exact}
        return searches.get(name, stochastic_greedy)(objective, x, k, **limits)

    try:
        together = run(items, costs, np.array(budgets), options)
    except InvalidInput as error:
        assert "max_per_group allows" in str(error)  # noqa: PT017
        return
    for row, place in enumerate(places):
        alone_limits = {
            "given": np.flatnonzero(given[row, place]),
            "pinned": np.searchsorted(place, pinned[row]),
        }
        if not without:
            alone_limits |= {"groups": groups[row, place], "max_per_group": quotas}
        alone = run(features[row, place], costs[row, place], budgets[row], alone_limits)
        found = together[row]
        assert found.indices == tuple(place[list(alone.indices)].tolist())
        if kind != "mixture" and name != "stochastic":
            assert found.gains == alone.gains
        assert found.gains == pytest.approx(alone.gains, abs=1e-12)
        assert found.certificate.bound == pytest.approx(alone.certificate.bound, rel=1e-12)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["log1p", "saturated", "mixture"])
def test_torch_finds_the_same(search: str, kind: str) -> None:
    for seed in range(20):
        problem = constrained_instance(kind, seed, 7, "groups" if search == "stochastic" else "")
        wanted = SEARCHES[search](problem, problem.instance.features, seed)
        found = SEARCHES[search](problem, torch.from_numpy(problem.instance.features), seed)
        assert found.indices == wanted.indices
        assert found.gains == pytest.approx(wanted.gains, abs=1e-12)
        assert found.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-9)


@needs_kernels
@pytest.mark.parametrize("kind", ["log1p", "facility_location", "probabilistic"])
def test_sparse_rows_are_searched_like_dense_ones(kind: str) -> None:
    for seed in range(24):
        problem = constrained_instance(kind, seed, 7)
        f, x, k = problem.instance.objective, problem.instance.features, problem.k
        rows = scipy.sparse.csr_array(x)
        wanted = lazy_greedy(f, x, k, **problem.options)
        for search in (greedy, lazy_greedy):
            found = search(f, rows, k, **problem.options)
            assert found.indices == wanted.indices
            assert found.gains == pytest.approx(wanted.gains, abs=1e-12)
            assert found.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-9)
        limits = {"given": problem.given, "pinned": problem.pinned, "seed": seed}
        wanted = stochastic_greedy(f, x, k, **limits)
        found = stochastic_greedy(f, rows, k, **limits)
        assert found.indices == wanted.indices
        assert found.certificate.bound == pytest.approx(wanted.certificate.bound, rel=1e-9)


def test_a_large_set_with_groups_is_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    features, groups = random.gamma(0.3, size=(30_000, 6)), random.integers(-1, 5, 30_000)
    monkeypatch.setattr("dgn.core.native.greedy._WORK_PER_THREAD", 1000)
    options = {"given": range(50), "pinned": [70, 60], "groups": groups, "max_per_group": 3}
    f = FeatureCoverage()
    found = lazy_greedy(f, features, 25, **options)
    monkeypatch.setattr(native, "is_available", lambda: False)
    plain = lazy_greedy(f, features, 25, **options)
    assert found.indices == plain.indices == greedy(f, features, 25, **options).indices
    assert np.bincount(groups[list(found.indices)] + 1)[1:].max() == 3
    assert found.certificate.bound == pytest.approx(plain.certificate.bound, rel=1e-9)


def test_given_items_are_a_context_and_are_not_selected() -> None:
    f, features = FeatureCoverage(), np.random.default_rng(0).random((8, 5))
    items = Items(features)
    context = f.add(items, f.empty(items), np.isin(np.arange(8), [2, 5])[None].astype(float))
    rest = [0, 1, 3, 4, 6, 7]
    wanted = greedy(f, features[rest], 3, context=context)
    found = greedy(f, features, 3, given=[5, 2, 5])
    assert found.indices == tuple(rest[i] for i in wanted.indices)
    assert found.gains == pytest.approx(wanted.gains, rel=1e-12)
    everything = greedy(f, features, 3, given=range(8))
    assert len(everything) == 0
    assert everything.certificate.ratio == 1


@pytest.mark.parametrize("search", [greedy, lazy_greedy, exact, stochastic_greedy])
def test_pinned_items_alone_are_the_best_set_that_contains_them(search: object) -> None:
    features = np.random.default_rng(0).random((6, 4))
    found = search(FeatureCoverage(), features, 2, pinned=[4, 1])
    assert found.indices == (4, 1)
    assert found.certificate.ratio == 1
    assert found.certificate.value == sum(found.gains)


def test_ties_go_to_the_lowest_index_that_is_allowed() -> None:
    features = np.ones((6, 2))
    options = {"given": [0], "groups": [0, 1, 1, 1, 2, 2], "max_per_group": [1, 1, 9]}
    for search in (greedy, lazy_greedy):
        assert search(FeatureCoverage(), features, 4, **options).indices == (1, 4, 5)
    zeros = greedy(FeatureCoverage(), np.zeros((3, 2)), 3, groups=[0, 0, 1], max_per_group=1)
    assert zeros.indices == (0, 2)


def test_functions_with_data_of_their_own_take_constraints() -> None:
    random = np.random.default_rng(0)
    similarity, features = random.random((6, 6)), random.random((6, 3))
    options = {"given": [1], "pinned": [3], "groups": [0, 0, 0, 1, 1, 1], "max_per_group": 2}
    for f in (MatrixCoverage(similarity), OwnCoverage()):
        found = greedy(f, features, 4, **options)
        assert found.indices[0] == 3
        assert len(found) == 4
        paid = budgeted_greedy(f, features, np.ones(6), 2.0, **options)
        assert len(paid) == 2
    best = exact(OwnCoverage(), features, 4, **options)
    assert best.values[-1] >= greedy(OwnCoverage(), features, 4, **options).values[-1]


def test_more_exponents_are_never_worse() -> None:
    differs = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        features, costs = random.gamma(0.3, size=(12, 6)), random.uniform(0.1, 2, 12)
        f = FeatureCoverage()
        each = [
            budgeted_greedy(f, features, costs, 3.0, cost_exponents=(one,)) for one in (0, 0.5, 1)
        ]
        all_of_them = budgeted_greedy(f, features, costs, 3.0, cost_exponents=(0, 0.5, 1))
        best = max(one.values[-1] for one in each)
        assert all_of_them.values[-1] == pytest.approx(best, rel=1e-12)
        bounds = [one.certificate.bound for one in each]
        assert all_of_them.certificate.bound == pytest.approx(min(bounds), rel=1e-12)
        first = next(one for one in each if one.values[-1] > best * (1 - 1e-12))
        assert all_of_them.indices == first.indices
        differs += len({one.indices for one in each}) > 1
    assert differs > 20


def test_the_same_set_in_another_order_goes_to_the_first_exponent() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        features, costs = random.random((6, 5)).astype(np.float32), random.uniform(0.5, 2, 6)
        for exponents in ((0.0, 1.0), (1.0, 0.0)):
            first, both = (
                budgeted_greedy(FeatureCoverage(), features, costs, 12.0, cost_exponents=one)
                for one in (exponents[:1], exponents)
            )
            assert len(first) == 6
            assert both.indices == first.indices


def test_an_item_that_does_not_fit_is_skipped() -> None:
    features, costs = np.array([[4.0], [3.0], [1.0]]), np.array([3.0, 3.0, 1.0])
    found = budgeted_greedy(FeatureCoverage(), features, costs, 4.0, cost_exponents=(0.0,))
    assert found.indices == (0, 2)


def test_a_pinned_item_and_what_fits_exactly() -> None:
    features, costs = np.eye(3), np.array([0.1, 0.2, 0.3])
    found = budgeted_greedy(FeatureCoverage(), features, costs, 0.6, pinned=[2, 0])
    assert found.indices == (2, 0)  # 0.1 + 0.2 + 0.3 > 0.6 in binary numbers
    found = budgeted_greedy(FeatureCoverage(), features, 10 * costs, 6.0, pinned=[2, 0])
    assert found.indices == (2, 0, 1)


@pytest.mark.parametrize("exponents", [(), (2.0,), (-0.5, 1.0), (float("nan"),)])
def test_exponents_that_are_not_allowed(exponents: object) -> None:
    with pytest.raises(InvalidInput, match="cost_exponents must be at least one number"):
        budgeted_greedy(
            FeatureCoverage(), np.ones((2, 2)), np.ones(2), 1.0, cost_exponents=exponents
        )


def test_samples_do_not_take_groups() -> None:
    with pytest.raises(InvalidInput, match="stochastic_greedy has no guarantee for groups"):
        stochastic_greedy(FeatureCoverage(), np.ones((3, 2)), 2, groups=[0, 1, 1], max_per_group=1)
