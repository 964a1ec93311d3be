import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.errors import InvalidInput, SearchTooLarge
from dgn.maximizers import exact, greedy
from dgn.objectives import FeatureCoverage, Items
from instances import Instance, instances, members


@settings(max_examples=300)
@given(instances(largest=9), st.integers(1, 5))
def test_exact_finds_the_best_of_all_sets(instance: Instance, k: int) -> None:
    picked = exact(instance.objective, instance.features, k)
    assert picked.values[-1] == pytest.approx(instance.best_value(k), rel=1e-12, abs=1e-12)
    assert instance.value(picked.indices) == pytest.approx(picked.values[-1], abs=1e-12)
    assert len(picked) == min(k, instance.size)
    assert picked.certificate.ratio == 1.0


def test_exact_beats_greedy_where_greedy_is_wrong() -> None:
    # The first item is the best by itself, and in the way of the best pair.
    features = np.array([[1.0, 1.0, 0.0, 0.0], [1.2, 0.0, 0.7, 0.0], [0.0, 1.2, 0.0, 0.7]])
    by_greedy = greedy(FeatureCoverage(), features, 2)[0]
    best = exact(FeatureCoverage(), features, 2)
    assert set(best.indices) == {1, 2}
    assert best.values[-1] > by_greedy.values[-1]


def test_thirty_items_and_seven_picks() -> None:
    features = np.random.default_rng(0).random((30, 24))
    best = exact(FeatureCoverage(), features, 7)
    by_greedy = greedy(FeatureCoverage(), features, 7)[0]
    assert best.values[-1] >= by_greedy.values[-1]
    assert by_greedy.certificate.bound >= best.values[-1]


def test_torch_finds_the_same_set() -> None:
    features = np.random.default_rng(2).random((12, 5))
    ours = exact(FeatureCoverage(), features, 4)
    assert exact(FeatureCoverage(), torch.from_numpy(features), 4).indices == ours.indices


def test_padding_and_context_are_respected() -> None:
    features = np.random.default_rng(4).random((8, 4))
    mask = np.array([True] * 6 + [False] * 2)
    assert max(exact(FeatureCoverage(), Items(features, mask), 3).indices) < 6
    assert sorted(exact(FeatureCoverage(), Items(features, mask), 7).indices) == list(range(6))
    f, items = FeatureCoverage(), Items(features)
    context = f.add(items, f.empty(items), members((0,), 8))
    given_more = exact(f, items, 3, context=context)
    assert given_more.values[-1] < exact(f, items, 3).values[-1]


def test_a_search_that_is_too_large_says_so() -> None:
    features = np.random.default_rng(0).random((40, 30))
    with pytest.raises(SearchTooLarge, match="no proof after 50 partial sets of 40 items, k = 8"):
        exact(FeatureCoverage(), features, 8, max_nodes=50)


def test_a_batch_is_refused() -> None:
    with pytest.raises(InvalidInput, match="items: found a batch of 2 sets; allowed: one set"):
        exact(FeatureCoverage(), np.ones((2, 3, 3)), 2)
