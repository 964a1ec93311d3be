"""Forward greedy, and top-k."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.errors import InvalidInput
from dgn.maximizers import greedy, top_k
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
def test_greedy_equals_its_definition(instance: Instance, k: int) -> None:
    found = greedy(instance.objective, instance.features, k)
    assert len(set(found.indices)) == len(found) == min(k, instance.size)
    # Rounding may swap items of equal value, but not change the value.
    expected = greedy_by_definition(instance, k)
    for count in range(1, len(found) + 1):
        assert found.values[count - 1] == pytest.approx(
            instance.value(tuple(expected[:count])), rel=1e-9, abs=1e-9
        )
    assert found.gains == pytest.approx(np.diff([0.0, *found.values]), abs=1e-9)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_ties_go_to_the_lowest_index(library: object) -> None:
    features = library(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    assert greedy(FeatureCoverage(), features, 4).indices == (0, 1, 2, 3)


def test_set_with_fewer_than_k_items_returns_all_of_them() -> None:
    features = np.random.default_rng(0).random((2, 5, 3))
    mask = np.array([[True] * 5, [False, True, False, True, False]])
    found = greedy(FeatureCoverage(), Items(features, mask), 4)
    assert len(found[0]) == 4
    assert sorted(found[1].indices) == [1, 3]
    assert found[1].certificate.ratio == pytest.approx(1.0)
    assert found.indices[1].tolist()[2:] == [-1, -1]
    assert found.counts.tolist() == [4, 2]


@given(st.sampled_from(sorted(KINDS)), st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_batch_equals_single_searches(kind: str, sizes: list[int]) -> None:
    f = random_instance(kind, 1, 1).objective
    sets = [random_instance(kind, seed, size).features for seed, size in enumerate(sizes)]
    features = np.full((len(sizes), max(sizes), sets[0].shape[1]), np.nan)
    mask = np.zeros(features.shape[:2], dtype=bool)
    for row, size in enumerate(sizes):
        features[row, :size], mask[row, :size] = sets[row], True
    together = greedy(f, Items(features, mask), 3)
    for row, found in enumerate(together):
        alone = greedy(f, sets[row], 3)
        assert found.indices == alone.indices
        assert found.values == pytest.approx(alone.values, rel=1e-12)
        assert found.certificate.ratio == pytest.approx(alone.certificate.ratio, rel=1e-12)


@given(instances(smallest=4))
def test_values_with_a_context_are_those_beyond_it(instance: Instance) -> None:
    f, items = instance.objective, Items(instance.features)
    context = f.add(items, f.empty(items), members((0, 1), instance.size))
    others = Items(instance.features, np.arange(instance.size) > 1)
    found = greedy(f, others, 2, context=context)
    for count in (1, 2):
        together = instance.value((0, 1, *found.indices[:count]))
        beyond = together - instance.value((0, 1))
        assert found.values[count - 1] == pytest.approx(beyond, abs=1e-9)


def test_stops_when_an_item_adds_too_little() -> None:
    features = np.array([[9.0, 0.0], [9.0, 0.0], [0.0, 0.5]])
    assert len(greedy(FeatureCoverage(), features, 3)) == 3
    assert greedy(FeatureCoverage(), features, 3, stop_share=0.2).indices == (0, 1)
    assert greedy(FeatureCoverage(), features, 3, stop_share=1.0).indices == (0,)


def test_torch_selects_the_same_as_numpy() -> None:
    features = np.random.default_rng(1).random((4, 12, 6)).astype(np.float32)
    ours = greedy(FeatureCoverage(), features, 5)
    theirs = greedy(FeatureCoverage(), torch.from_numpy(features), 5)
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5)
    np.testing.assert_allclose(ours.bounds, theirs.bounds, rtol=1e-5)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_top_k_selects_the_largest_scores_and_the_lowest_index_first(library: object) -> None:
    scores = library(np.array([[0.1, 0.9, -0.5, 0.9], [3.0, 1.0, 2.0, 9.0]]))
    mask = library(np.array([[True] * 4, [True, True, False, False]]))
    found = top_k(scores, 3, mask)
    assert found[0].indices == (1, 3, 0)
    assert found[1].indices == (0, 1)
    assert found[0].gains == pytest.approx([0.9, 0.9, 0.1])
    assert found[0].certificate.ratio == 1.0


def test_top_k_of_a_single_set_with_a_large_k() -> None:
    assert top_k(np.array([1.0, 2.0]), 5).indices == (1, 0)


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scores must be finite numbers; got a NaN"):
        top_k(np.array([1.0, np.nan]), 1)
