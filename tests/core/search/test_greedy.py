"""Forward greedy, and top-k."""

import numpy as np
import pytest
import torch

from dgn.core.functions import FeatureCoverage
from dgn.core import greedy, top_k
from dgn.errors import InvalidInput
from instances import Instance


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
