"""No certificate is ever false: a negative gain is refused, or expected if f says so."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from dgn.core.functions import (
    DisparityMin,
    DisparitySum,
    FeatureCoverage,
    GraphCut,
    Items,
    Log1p,
    Mixture,
    SetFunction,
    State,
)
from dgn.core import (
    Selection,
    _checks,
    budgeted_greedy,
    double_greedy,
    exact,
    greedy,
    lazy_greedy,
    random_greedy,
    stochastic_greedy,
)
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Cut(SetFunction):
    """The cut of a graph, which is submodular and not monotone; features are rows of the graph."""

    graph: np.ndarray
    claims: bool | None = None

    @property
    def monotone(self) -> bool | None:
        return self.claims

    def empty(self, items: Items, context: State | None = None) -> State:
        level = np.zeros((items.batch, items.size)) if context is None else context.level
        return State(level, np.ones((items.batch, items.size)), maker="Cut")

    def gains(self, items: Items, state: State) -> np.ndarray:
        del items
        inside = 1 - state.outside
        to_inside = inside @ self.graph
        return state.outside * (self.graph.sum(axis=0) - 2 * to_inside)

    def add(self, items: Items, state: State, member: np.ndarray) -> State:
        del items
        return State(state.level, state.outside * (1 - member), maker="Cut")

    def value(self, state: State) -> np.ndarray:
        inside = 1 - state.outside
        return ((inside @ self.graph) * state.outside).sum(axis=1)


def random_graph(seed: int, size: int = 7) -> np.ndarray:
    random = np.random.default_rng(seed)
    graph = np.triu(random.random((size, size)) * (random.random((size, size)) < 0.5), 1)
    return graph + graph.T


def best_cut(graph: np.ndarray, k: int) -> float:
    size, best = len(graph), 0.0
    for count in range(1, k + 1):
        for chosen in itertools.combinations(range(size), count):
            inside = np.isin(np.arange(size), chosen)
            best = max(best, graph[inside][:, ~inside].sum())
    return float(best)


def test_no_certificate_of_a_cut_is_false() -> None:
    refused = 0
    for seed in range(300):
        graph, k = random_graph(seed), 1 + seed % 5
        try:
            selection = greedy(Cut(graph), np.ones((len(graph), 1)), k)
        except InvalidInput as error:
            assert "not monotone" in str(error)  # noqa: PT017
            refused += 1
            continue
        assert isinstance(selection, Selection)
        reached = selection.certificate.value / (best_cut(graph, k) or 1.0)
        assert selection.certificate.ratio <= reached + 1e-9
    assert refused > 250


@pytest.mark.parametrize(
    "search",
    [greedy, lambda f, x, k: budgeted_greedy(f, x, np.ones(len(x)), float(k))],
    ids=["greedy", "budgeted"],
)
def test_a_negative_gain_is_refused_and_named(search) -> None:
    graph = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidInput, match=r"not monotone: item 0 of set 0 has the gain -1\b"):
        search(Cut(graph), np.ones((2, 1)), 2)


@pytest.mark.parametrize("search", [stochastic_greedy, exact])
def test_a_function_that_says_that_it_is_not_monotone_is_refused(search) -> None:
    with pytest.raises(InvalidInput, match="Cut says that it is not monotone, and this search"):
        search(Cut(np.zeros((3, 3)), claims=False), np.ones((3, 1)), 2)


def by_budget(f: SetFunction, features: np.ndarray, k: int) -> Selection:
    return budgeted_greedy(f, features, np.ones(len(features)), float(k))


def in_groups(f: SetFunction, features: np.ndarray, k: int) -> Selection:
    return greedy(f, features, k, groups=np.zeros(len(features), int), max_per_group=k)


@pytest.mark.parametrize("search", [greedy, lazy_greedy, by_budget, in_groups])
def test_searches_stop_where_nothing_is_gained(search) -> None:
    stopped = 0
    for seed in range(150):
        graph, k = random_graph(seed), 1 + seed % 6
        found = search(GraphCut(1.0), graph, k)
        assert all(gain > 0 for gain in found.gains)
        inside = np.isin(np.arange(len(graph)), found.indices)
        assert found.certificate.value == pytest.approx(graph[inside][:, ~inside].sum())
        best = best_cut(graph, k)
        assert found.certificate.bound >= best - 1e-9
        assert found.certificate.ratio * best <= found.certificate.value + 1e-9
        stopped += len(found) < k
        if search is lazy_greedy:
            assert found.indices == greedy(GraphCut(1.0), graph, k).indices
    assert stopped > 20


def test_pinned_items_may_cost_something() -> None:
    graph = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    found = greedy(GraphCut(1.0), graph, 3, pinned=[0, 1, 2])
    assert found.gains == pytest.approx([2.0, 0.0, -2.0])
    assert str(found) == "selected 0 (+2), 1 (+0), 2 (-2): 100% of the best possible set"
    worse = greedy(GraphCut(2.0), graph, 2, pinned=[0, 1])
    assert worse.values[-1] == 0.0


@pytest.mark.parametrize(
    "search",
    [
        lazy_greedy,
        stochastic_greedy,
        exact,
        by_budget,
        random_greedy,
        lambda f, x, _: double_greedy(f, x),
    ],
)
def test_a_function_that_is_not_submodular_is_refused(search) -> None:
    with pytest.raises(InvalidInput, match=r"DisparitySum is not submodular, .*; use greedy"):
        search(DisparitySum(), 1 - np.eye(4), 2)


@pytest.mark.parametrize("f", [DisparitySum(), DisparityMin()])
def test_greedy_promises_nothing_for_a_function_that_is_not_submodular(f: SetFunction) -> None:
    for options in ({}, {"pinned": [1]}):
        found = greedy(f, 1 - np.eye(4), 3, **options)
        assert len(found) == 3
        assert found.certificate.ratio == 0.0
        assert "no bound of the best possible set is known" in str(found)


def test_large_sets_are_checked_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks, "_LARGEST_PROBE", 0)
    graph = np.ones((6, 6)) - np.eye(6)
    with pytest.raises(InvalidInput, match="not monotone"):
        greedy(Cut(graph), np.ones((6, 1)), 5)


def test_mixtures_are_monotone_if_their_parts_are() -> None:
    known, unknown = FeatureCoverage(), Cut(np.zeros((2, 2)))
    opposite = Cut(np.zeros((2, 2)), claims=False)
    assert Mixture((known, known), np.ones(2)).monotone is True
    assert Mixture((known, unknown), np.ones(2)).monotone is None
    assert Mixture((known, unknown, opposite), np.ones(3)).monotone is False


def test_a_concave_function_of_the_user_is_checked() -> None:
    class Falling(Log1p.__base__):
        def of(self, x):
            return x - 0.3 * x**2

        def increase(self, x, step):
            return self.of(x + step) - self.of(x)

    f = FeatureCoverage(np.ones(2), Falling())
    assert f.monotone is None
    with pytest.raises(InvalidInput, match="not monotone"):
        greedy(f, np.ones((3, 2)), 2)
