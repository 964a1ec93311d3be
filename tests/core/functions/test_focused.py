"""Conditional gain and mutual information of every function, and the forms that submodlib names."""

import itertools

import numpy as np
import pytest
import torch

from dgn.core.functions import (
    ConditionalGain,
    DeepSubmodular,
    FacilityLocation,
    FeatureCoverage,
    GraphCut,
    Items,
    LogDeterminant,
    Mixture,
    MutualInformation,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    Sqrt,
    State,
)
from dgn.core import exact, greedy, lazy_greedy
from dgn.errors import InvalidInput

SIZE = 8
QUERY = (6, 7)
FUNCTIONS: dict[str, SetFunction] = {
    "log1p": FeatureCoverage(),
    "sqrt": FeatureCoverage(None, Sqrt()),
    "power": FeatureCoverage(None, Power(0.7)),
    "exp": FeatureCoverage(None, OneMinusExp()),
    "saturated": FeatureCoverage(None, Saturated(1.0)),
    "location": FacilityLocation(),
    "probabilistic": ProbabilisticCoverage(),
    "mixture": Mixture((FeatureCoverage(), FacilityLocation()), np.array([1.0, 0.5])),
    "deep": DeepSubmodular((np.random.default_rng(0).random((3, 8)),)),
    "cut": GraphCut(0.5),
    "determinant": LogDeterminant(),
}
NOT_SUBMODULAR = {"saturated", "deep", "determinant"}


def features_of(name: str, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).random((SIZE, 3)) ** 2
    return points @ points.T / (1 if name in {"cut", "determinant"} else 3)


def value_of(f: SetFunction, items: Items, chosen: tuple[int, ...]) -> float:
    return f.value(state_of(f, items, chosen)).item()


def state_of(f: SetFunction, items: Items, chosen: tuple[int, ...]) -> State:
    """Of parts of the whole set, so that a matrix keeps its columns."""
    if not chosen:
        return f.empty(items)
    part = items.gather(np.asarray([chosen], dtype=np.int64))
    return f.add(part, f.empty(part), np.ones((1, len(chosen))))


def information(f: SetFunction, items: Items, chosen: tuple[int, ...]) -> float:
    joint = value_of(f, items, (*chosen, *QUERY))
    return value_of(f, items, chosen) + value_of(f, items, QUERY) - joint


@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_what_they_say(name: str) -> None:
    f, whole = FUNCTIONS[name], Items(features_of(name, 0))
    mutual = MutualInformation(f, state_of(f, whole, QUERY))
    conditional = ConditionalGain(f, state_of(f, whole, QUERY))
    items = whole.slice(0, 6)
    assert mutual.monotone is True
    assert (conditional.monotone, conditional.submodular) == (f.monotone, f.submodular)
    for count in range(4):
        for chosen in itertools.combinations(range(6), count):
            member = np.isin(np.arange(6), chosen)[None].astype(float)
            shared = mutual.add(items, mutual.empty(items), member)
            new = conditional.add(items, conditional.empty(items), member)
            expected = information(f, whole, chosen)
            given = value_of(f, whole, (*chosen, *QUERY)) - value_of(f, whole, QUERY)
            assert mutual.value(shared)[0] == pytest.approx(expected, abs=1e-12)
            assert conditional.value(new)[0] == pytest.approx(given, abs=1e-12)
            for item in set(range(6)) - set(chosen):
                grown = information(f, whole, (*chosen, item)) - expected
                assert mutual.gains(items, shared)[0, item] == pytest.approx(grown, abs=1e-12)
            by_feature = mutual.contributions(items, shared).sum(axis=-1)
            np.testing.assert_allclose(by_feature, mutual.gains(items, shared), atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_known_where_mutual_information_is_submodular(name: str) -> None:
    f, grows = FUNCTIONS[name], False
    for seed in range(25):
        # Far below and far above what saturates.
        whole = Items(features_of(name, seed) * (0.2, 1.0, 3.0)[seed % 3])
        if name == "probabilistic":
            whole = Items(np.minimum(whole.features[0], 1.0))
        mutual = MutualInformation(f, state_of(f, whole, QUERY))
        items = whole.slice(0, 6)

        def gains(chosen: tuple[int, ...], items: Items = items, f: SetFunction = mutual) -> object:
            member = np.isin(np.arange(6), chosen)[None].astype(float)
            return f.gains(items, f.add(items, f.empty(items), member))[0]

        for smaller, larger in (((), (0,)), ((0,), (0, 1)), ((1,), (1, 2, 3)), ((), (4, 5))):
            outside = [item for item in range(6) if item not in larger]
            grows |= bool((gains(larger)[outside] > gains(smaller)[outside] + 1e-12).any())
    assert mutual.submodular is (name not in NOT_SUBMODULAR)
    assert not (grows and mutual.submodular)
    assert grows or name not in {"saturated", "determinant"}


def test_conditional_gain_is_a_search_with_a_context() -> None:
    features = np.random.default_rng(0).random((12, 5))
    f, items = FeatureCoverage(), Items(features)
    private = state_of(f, items, (0, 3))
    wrapped = greedy(ConditionalGain(f, private), features, 4)
    assert wrapped.indices == greedy(f, features, 4, context=private).indices
    assert lazy_greedy(ConditionalGain(f, private), features, 4).indices == wrapped.indices
    given = greedy(f, features[1:], 4, given=[2], context=state_of(f, items, (0,)))
    without = [one for one in wrapped.indices if one not in {0, 3}]
    assert [one + 1 for one in given.indices][: len(without)] == without


def test_a_query_per_set_and_parts_of_a_set() -> None:
    random = np.random.default_rng(1)
    features, asked = random.random((3, 9, 4)), Items(random.random((3, 2, 4)))
    f = FacilityLocation(random.random((3, 4)))
    query = f.add(asked, f.empty(asked), np.ones((3, 2)))
    mutual = MutualInformation(f, query)
    together = greedy(mutual, features, 3)
    for row in range(3):
        alone = greedy(mutual.of_set(row), features[row], 3)
        assert together[row].indices == alone.indices
        assert lazy_greedy(mutual, features, 3)[row].indices == alone.indices
        assert exact(mutual, features, 3)[row].values[-1] >= alone.values[-1] - 1e-12
    conditional = ConditionalGain(f, query)
    assert (
        lazy_greedy(conditional, features, 3)[1].indices
        == greedy(conditional.of_set(1), features[1], 3).indices
    )


def test_towards_a_query_and_away_from_what_is_private() -> None:
    f, whole = FeatureCoverage(None, Sqrt()), Items(features_of("sqrt", 3))
    outer = ConditionalGain(f, state_of(f, whole, (5,)))
    asked = whole.gather(np.array([QUERY]))
    both = MutualInformation(outer, outer.add(asked, outer.empty(asked), np.ones((1, 2))))
    items, chosen = whole.slice(0, 5), (1, 4)
    member = np.isin(np.arange(5), chosen)[None].astype(float)

    def given(sets: tuple[int, ...]) -> float:
        return value_of(f, whole, (*sets, 5)) - value_of(f, whole, (5,))

    expected = given(chosen) + given(QUERY) - given((*chosen, *QUERY))
    found = both.value(both.add(items, both.empty(items), member))
    assert found[0] == pytest.approx(expected, abs=1e-12)
    assert both.submodular


def test_gradients_reach_items_and_query() -> None:
    torch.manual_seed(0)
    features = torch.rand(1, 4, 3, dtype=torch.float64, requires_grad=True)
    asked = torch.rand(1, 2, 3, dtype=torch.float64, requires_grad=True)

    def everything(features: torch.Tensor, asked: torch.Tensor) -> tuple:
        f, query, items = FeatureCoverage(), Items(asked), Items(features)
        mutual = MutualInformation(f, f.add(query, f.empty(query), torch.ones(1, 2).double()))
        state = mutual.add(items, mutual.empty(items), torch.full((1, 4), 0.3).double())
        return mutual.gains(items, state), mutual.value(state)

    assert torch.autograd.gradcheck(everything, (features, asked))


def test_states_of_other_functions_are_refused() -> None:
    f, items = FacilityLocation(), Items(np.ones((2, 3)))
    mutual = MutualInformation(f, f.empty(items))
    with pytest.raises(InvalidInput, match="a state that MutualInformation made"):
        mutual.value(f.empty(items))
    with pytest.raises(InvalidInput, match="a state that FeatureCoverage made"):
        greedy(MutualInformation(FeatureCoverage(), f.empty(items)), np.ones((2, 3)), 1)
