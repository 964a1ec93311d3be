import numpy as np
import pytest
import torch

from dgn.errors import InvalidInput
from dgn.maximizers import top_k


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_picks_the_largest_scores_and_the_lowest_index_first(library: object) -> None:
    scores = library(np.array([[0.1, 0.9, -0.5, 0.9], [3.0, 1.0, 2.0, 9.0]]))
    mask = library(np.array([[True] * 4, [True, True, False, False]]))
    picked = top_k(scores, 3, mask)
    assert picked[0].indices == (1, 3, 0)
    assert picked[1].indices == (0, 1)
    assert picked[0].gains == pytest.approx([0.9, 0.9, 0.1])
    assert picked[0].certificate.ratio == 1.0


def test_a_single_set_and_a_large_k() -> None:
    assert top_k(np.array([1.0, 2.0]), 5)[0].indices == (1, 0)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scores: found a NaN"):
        top_k(np.array([1.0, np.nan]), 1)
