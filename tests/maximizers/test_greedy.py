from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.errors import InvalidInput
from dgn.maximizers import exact, greedy, lazy_greedy, stochastic_greedy
from dgn.objectives import FeatureCoverage, Items
from instances import KINDS, Instance, instances, members, random_instance


def greedy_by_definition(instance: Instance, k: int) -> list[int]:
    chosen: list[int] = []
    while len(chosen) < min(k, instance.size):
        values = {
            item: instance.value((*chosen, item))
            for item in range(instance.size)
            if item not in chosen
        }
        best = max(values.values())
        chosen.append(min(item for item, value in values.items() if value >= best - 1e-12))
    return chosen


@given(instances(largest=10), st.integers(1, 12))
def test_greedy_is_greedy(instance: Instance, k: int) -> None:
    picked = greedy(instance.objective, instance.features, k)[0]
    assert len(set(picked.indices)) == len(picked) == min(k, instance.size)
    # Rounding may swap picks that are worth the same; what they are worth may not differ.
    expected = greedy_by_definition(instance, k)
    for count in range(1, len(picked) + 1):
        assert picked.values[count - 1] == pytest.approx(
            instance.value(tuple(expected[:count])), rel=1e-9, abs=1e-9
        )
    assert picked.gains == pytest.approx(np.diff([0.0, *picked.values]), abs=1e-9)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_ties_go_to_the_lowest_index(library: object) -> None:
    features = library(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert greedy(FeatureCoverage(), features, 4)[0].indices == (0, 1, 2, 3)


def test_fewer_candidates_than_k_gives_all_of_them() -> None:
    features = np.random.default_rng(0).random((2, 5, 3))
    mask = np.array([[True] * 5, [False, True, False, True, False]])
    picked = greedy(FeatureCoverage(), Items(features, mask), 4)
    assert len(picked[0]) == 4
    assert sorted(picked[1].indices) == [1, 3]
    assert picked[1].certificate.ratio == pytest.approx(1.0)
    assert picked.indices[1].tolist()[2:] == [-1, -1]
    assert picked.counts.tolist() == [4, 2]


@given(st.sampled_from(sorted(KINDS)), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_one_set_of_a_batch_gives_what_it_gives_alone(kind: str, sizes: list[int]) -> None:
    f = random_instance(kind, 1, 1).objective
    sets = [random_instance(kind, seed, size).features for seed, size in enumerate(sizes)]
    features = np.full((len(sizes), max(sizes), sets[0].shape[1]), np.nan)
    mask = np.zeros(features.shape[:2], dtype=bool)
    for row, size in enumerate(sizes):
        features[row, :size], mask[row, :size] = sets[row], True
    together = greedy(f, Items(features, mask), 3)
    for row, picked in enumerate(together):
        alone = greedy(f, sets[row], 3)[0]
        assert picked.indices == alone.indices
        assert picked.values == pytest.approx(alone.values, rel=1e-12)
        assert picked.certificate.ratio == pytest.approx(alone.certificate.ratio, rel=1e-12)


@given(instances(smallest=4))
def test_with_a_context_the_values_are_those_beyond_it(instance: Instance) -> None:
    f, items = instance.objective, Items(instance.features)
    context = f.add(items, f.empty(items), members((0, 1), instance.size))
    others = Items(instance.features, np.arange(instance.size) > 1)
    picked = greedy(f, others, 2, context=context)[0]
    for count in (1, 2):
        together = instance.value((0, 1, *picked.indices[:count]))
        beyond = together - instance.value((0, 1))
        assert picked.values[count - 1] == pytest.approx(beyond, abs=1e-9)


def test_stops_when_a_pick_adds_too_little() -> None:
    features = np.array([[9.0, 0.0], [9.0, 0.0], [0.0, 0.5]])
    assert len(greedy(FeatureCoverage(), features, 3)[0]) == 3
    assert greedy(FeatureCoverage(), features, 3, stop_share=0.2)[0].indices == (0, 1)
    assert greedy(FeatureCoverage(), features, 3, stop_share=1.0)[0].indices == (0,)


def test_torch_picks_what_numpy_picks() -> None:
    features = np.random.default_rng(1).random((4, 12, 6)).astype(np.float32)
    ours = greedy(FeatureCoverage(), features, 5)
    theirs = greedy(FeatureCoverage(), torch.from_numpy(features), 5)
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5)
    np.testing.assert_allclose(ours.bounds, theirs.bounds, rtol=1e-5)


@pytest.mark.parametrize("search", [greedy, lazy_greedy, exact, partial(stochastic_greedy, seed=0)])
def test_tensors_with_gradients_are_searched_without_a_warning(search: object) -> None:
    features = torch.rand(6, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.ones(3, requires_grad=True)
    search(FeatureCoverage(weights), features, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k: found 0; allowed: a whole number of at least 1"),
        ({"k": -3}, "k: found -3"),
        ({"k": 2.5}, "k: found 2.5"),
        ({"stop_share": 1.5}, "stop_share: found 1.5; allowed: a number from 0 to 1"),
        ({"items": np.zeros((0, 3))}, "features: found shape"),
        (
            {"items": Items(np.ones((2, 2, 2)), np.array([[True, True], [False, False]]))},
            "mask: found no item in set 1; allowed: at least one item in every set",
        ),
        ({"items": np.array([[1.0, np.nan]])}, "features: found nan"),
        ({"items": np.array([[1.0, -1.0]])}, "features: found -1"),
    ],
)
def test_bad_input_is_named(changes: dict, message: str) -> None:
    arguments = {"items": np.ones((3, 2)), "k": 2} | changes
    with pytest.raises(InvalidInput, match=message):
        greedy.__wrapped__(FeatureCoverage(), **arguments)
