import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.core.functions import FeatureCoverage, Items, State
from dgn.core import Selection, exact, greedy
from dgn.errors import InvalidInput, SearchTooLarge
from instances import Instance, OwnCoverage, instances, members


@settings(max_examples=300)
@given(instances(largest=9), st.integers(1, 5))
def test_exact_finds_the_best_of_all_sets(instance: Instance, k: int) -> None:
    found = exact(instance.objective, instance.features, k)
    assert found.values[-1] == pytest.approx(instance.best_value(k), rel=1e-12, abs=1e-12)
    assert instance.value(found.indices) == pytest.approx(found.values[-1], abs=1e-12)
    assert len(found) == min(k, instance.size)
    assert found.certificate.ratio == 1.0


def test_exact_beats_greedy_where_greedy_is_wrong() -> None:
    # The first item is the best by itself, and not part of the best pair.
    features = np.array([[1.0, 1.0, 0.0, 0.0], [1.2, 0.0, 0.7, 0.0], [0.0, 1.2, 0.0, 0.7]])
    by_greedy = greedy(FeatureCoverage(), features, 2)
    best = exact(FeatureCoverage(), features, 2)
    assert set(best.indices) == {1, 2}
    assert best.values[-1] > by_greedy.values[-1]


def test_thirty_items_and_k_of_seven() -> None:
    features = np.random.default_rng(0).random((30, 24))
    best = exact(FeatureCoverage(), features, 7)
    by_greedy = greedy(FeatureCoverage(), features, 7)
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


def test_search_that_is_too_large_raises() -> None:
    features = np.random.default_rng(0).random((40, 30))
    with pytest.raises(SearchTooLarge, match=r"within 50 partial sets \(40 items, k = 8\)"):
        exact(FeatureCoverage(), features, 8, max_nodes=50)


def test_batch_equals_single_searches() -> None:
    random = np.random.default_rng(7)
    features, weights = random.random((4, 8, 3)), random.random((4, 3))
    mask = random.random((4, 8)) < 0.7
    mask[:, 1] = True
    together = exact(FeatureCoverage(weights), Items(features, mask), 3)
    for row, found in enumerate(together):
        one = Items(features[row], mask[row])
        alone = exact(FeatureCoverage(weights[row]), one, 3)
        assert isinstance(alone, Selection)
        assert found == alone


def test_function_that_contradicts_itself_is_refused() -> None:
    class Drifting(OwnCoverage):
        """Passes the check of the first items, and has other gains on the whole set."""

        def gains(self, items: Items, state: State) -> np.ndarray:
            return super().gains(items, state) * (1.0 if items.size < 40 else 0.9)

    features = np.random.default_rng(0).random((40, 4))
    with pytest.raises(
        InvalidInput, match=r"cannot be evaluated on a part of the items.*use greedy"
    ):
        exact(Drifting(), features, 3)
