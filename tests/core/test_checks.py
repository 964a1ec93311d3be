"""What every search checks: arguments, the range of numbers, and that f is monotone."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from dgn.core import Selection, Selections, checks, explain, greedy, lazy_greedy, top_k
from dgn.core.checks import checked_items
from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Items,
    Mixture,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    State,
)
from dgn.errors import InvalidInput
from instances import MatrixCoverage, OwnCoverage

SEARCHES = [greedy, lazy_greedy]


def by_budget(objective: SetFunction, items: object, k: int) -> Selection | Selections:
    shape = items.features.shape[:2] if isinstance(items, Items) else items.shape[:-1]
    return greedy(objective, items, costs=np.ones(shape), budget=float(k))


def by_top_k(_: SetFunction, items: np.ndarray, k: int) -> Selection | Selections:
    return top_k(items[..., 0], k)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("search", [*SEARCHES, by_budget, by_top_k])
def test_one_set_gives_a_selection_and_a_batch_gives_selections(
    search: object, library: object
) -> None:
    features = np.random.default_rng(0).random((3, 6, 4))
    one = search(FeatureCoverage(), library(features[0]), 2)
    assert type(one) is Selection
    for batch in (features, features[:1]):
        found = search(FeatureCoverage(), library(batch), 2)
        assert type(found) is Selections
        assert len(found) == len(batch)
        assert found.indices.shape == (len(batch), 2)
        assert found[0].indices == one.indices


@pytest.mark.parametrize("search", SEARCHES)
def test_items_remember_whether_they_were_one_set(search: object) -> None:
    features, mask = np.ones((3, 2)), np.array([True, True, False])
    assert type(search(FeatureCoverage(), Items(features, mask), 3)) is Selection
    assert type(search(FeatureCoverage(), Items(features[None], mask[None]), 3)) is Selections


@pytest.mark.parametrize("search", SEARCHES)
def test_tensors_with_gradients_are_searched_without_a_warning(search: object) -> None:
    features = torch.rand(6, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.ones(3, requires_grad=True)
    search(FeatureCoverage(weights), features, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k must be an integer of at least 1; got 0"),
        ({"k": -3}, "k must be an integer of at least 1; got -3"),
        ({"k": 2.5}, "k must be an integer of at least 1; got 2.5"),
        ({"k": True}, "k must be an integer of at least 1; got True"),
        ({"items": np.zeros((0, 3))}, "features has the shape"),
        (
            {"items": Items(np.ones((2, 2, 2)), np.array([[True, True], [False, False]]))},
            "Set 1 has no item; every set needs at least one real item",
        ),
        ({"items": np.array([[1.0, np.nan]])}, "features must be .*; got nan"),
        ({"items": np.array([[1.0, -1.0]])}, "features must be .*; got -1"),
    ],
)
@pytest.mark.parametrize("search", SEARCHES)
def test_arguments_that_are_not_allowed(search: object, changes: dict, message: str) -> None:
    arguments = {"items": np.ones((3, 2)), "k": 2} | changes
    with pytest.raises(InvalidInput, match=message):
        search(FeatureCoverage(), **arguments)


@pytest.mark.parametrize("search", SEARCHES)
def test_objective_must_be_a_set_function(search: object) -> None:
    with pytest.raises(InvalidInput, match=r"objective must be a set function .*; got a NoneType"):
        search(None, np.ones((2, 2)), 1)


@pytest.mark.parametrize(
    ("objective", "level", "message"),
    [
        (FeatureCoverage(), np.array([np.nan, 0.0]), "context must be .*; got nan"),
        (FeatureCoverage(), np.array([-1.0, 0.0]), "context must be .*; got -1"),
        (ProbabilisticCoverage(), np.array([1.5, 1.0]), r"context must be .*; got 1\.5"),
    ],
)
@pytest.mark.parametrize("search", SEARCHES)
def test_context_is_checked(
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
def test_state_of_another_function_is_refused_as_context(
    objective: SetFunction, other: SetFunction
) -> None:
    context = other.empty(Items(np.ones((3, 2))))
    with pytest.raises(InvalidInput, match=r"state must be a state that .*; got a state of"):
        greedy(objective, np.ones((3, 2)), 2, context=context)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_would_overflow_are_refused(dtype: type) -> None:
    features = np.full((4, 1), 0.7 * np.finfo(dtype).max, dtype)
    with pytest.raises(InvalidInput, match="may add up to more than"):
        greedy(FeatureCoverage(), features, 3)
    with pytest.raises(InvalidInput, match="values of set 0 are too large for float"):
        greedy(FacilityLocation(), np.full((4, 3), np.finfo(dtype).max, dtype), 2)
    with pytest.raises(InvalidInput, match="may add up to more than"):
        top_k(features[:, 0], 3)


def test_values_that_would_underflow_are_refused() -> None:
    weights, features = np.full(2, 1e-25, np.float32), np.full((3, 2), 1e-30, np.float32)
    with pytest.raises(InvalidInput, match="values of set 0 are too small for float32"):
        greedy(FeatureCoverage(weights), features, 2)
    mixture = Mixture((FeatureCoverage(), FacilityLocation()), np.full(2, 1e-25, np.float32))
    with pytest.raises(InvalidInput, match="too small"):
        greedy(mixture, features, 2)
    assert len(greedy(FeatureCoverage(), np.zeros((3, 2), np.float32), 2)) == 2
    assert len(greedy(FeatureCoverage(weights.astype(np.float64)), features.astype(float), 2)) == 2


def test_one_set_of_a_batch_may_be_too_small() -> None:
    small = np.array([[1, 0], [2, 0], [0, 3]], np.float32) * np.float32(1.4e-45)
    batch = np.stack([np.ones((3, 2), np.float32), small])
    f = FacilityLocation(np.array([0.4, 0.4], np.float32))
    with pytest.raises(InvalidInput, match="values of set 1 are too small"):
        greedy(f, batch, 1)
    batch[1] = 0
    assert len(greedy(f, batch, 1)) == 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(0)
    features = torch.rand(20, 200, generator=random).to(dtype)
    found = greedy(FeatureCoverage(), features, 5)
    assert found == greedy(FeatureCoverage(), features.float(), 5)
    assert top_k(features[:, 0], 3) == top_k(features[:, 0].float(), 3)


def test_a_context_next_to_a_cap_must_leave_room_that_can_be_seen() -> None:
    objective = FeatureCoverage(concave=Saturated(1e8))
    for dtype in (np.float32, np.float64):
        features = np.random.default_rng(0).random((6, 2)).astype(dtype) * 4
        level = Items(np.full((1, 2), 1e8 - 8, dtype))
        context = objective.add(level, objective.empty(level), np.ones((1, 1), dtype))
        if dtype is np.float32:
            with pytest.raises(InvalidInput, match="next to which float32 rounds"):
                greedy(objective, features, 3, context=context)
        else:
            assert greedy(objective, features, 3, context=context).values[-1] <= 16


def test_greedy_accepts_a_function_with_data_per_item() -> None:
    similarity = np.random.default_rng(0).random((50, 50))
    own = greedy(MatrixCoverage(similarity), np.ones((50, 1)), 5)
    ours = greedy(FacilityLocation(), similarity, 5)
    assert own.indices == ours.indices
    assert own.values == pytest.approx(ours.values)


@pytest.mark.parametrize("size", [1, 2, 7, 50])
@pytest.mark.parametrize("search", [*SEARCHES, by_budget])
def test_function_with_four_methods_is_enough(search: object, size: int) -> None:
    features = np.random.default_rng(1).random((size, 4))
    found = search(OwnCoverage(), features, 3)
    assert len(found) == min(3, size)
    expected = np.sqrt(features[list(found.indices)].sum(axis=0)).sum()
    assert found.values[-1] == pytest.approx(expected)


def test_four_methods_are_enough_to_explain() -> None:
    features = np.random.default_rng(1).random((6, 4))
    found = greedy(OwnCoverage(), features, 3)
    steps = explain(OwnCoverage(), features, found)
    assert [step.index for step in steps] == list(found.indices)
    assert [step.contributions for step in steps] == [(step.gain,) for step in steps]


def test_four_methods_are_enough_for_a_batch() -> None:
    features = np.random.default_rng(1).random((3, 7, 4))
    together = greedy(OwnCoverage(), features, 3)
    assert lazy_greedy(OwnCoverage(), features, 3).indices.tolist() == together.indices.tolist()


def test_errors_of_a_function_are_not_hidden() -> None:
    class Broken(OwnCoverage):
        def gains(self, *_: object) -> np.ndarray:
            raise ZeroDivisionError("a mistake of the user")

    for search in (greedy, lazy_greedy):
        with pytest.raises(ZeroDivisionError, match="a mistake of the user"):
            search(Broken(), np.ones((3, 2)), 2)


def test_checked_items_takes_a_plain_array() -> None:
    assert checked_items(FeatureCoverage(), np.ones((3, 2)), None).single


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


@pytest.mark.parametrize("search", [*SEARCHES, by_budget])
def test_a_negative_gain_is_refused_and_named(search) -> None:
    graph = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidInput, match=r"not monotone: item 0 of set 0 has the gain -1\b"):
        search(Cut(graph), np.ones((2, 1)), 2)


@pytest.mark.parametrize("search", [*SEARCHES, by_budget])
def test_a_function_that_says_that_it_is_not_monotone_is_refused(search) -> None:
    with pytest.raises(InvalidInput, match="Cut says that it is not monotone"):
        search(Cut(np.zeros((3, 3)), claims=False), np.ones((3, 1)), 2)


def test_large_sets_are_checked_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_LARGEST_PROBE", 0)
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
    class Falling(Concave):
        def of(self, x):
            return x - 0.3 * x**2

        def increase(self, x, step):
            return self.of(x + step) - self.of(x)

    f = FeatureCoverage(np.ones(2), Falling())
    assert f.monotone is None
    with pytest.raises(InvalidInput, match="not monotone"):
        greedy(f, np.ones((3, 2)), 2)
