from dataclasses import replace

import numpy as np
import pytest

from dgn.encoders.facets.weights import (
    FacetSizes,
    FacetWeights,
    shapes_of,
    start_weights,
    untrained_weights,
)

SIZES = FacetSizes(dimension=12, projection=2, hidden=5)


@pytest.mark.parametrize("sizes", [SIZES, FacetSizes(), FacetSizes(256, 0, 0, 0)])
def test_sizes_are_those_of_the_weights(sizes: FacetSizes) -> None:
    weights = start_weights(sizes, seed=0)
    assert weights.sizes == sizes
    assert shapes_of(sizes) == {name: w.shape for name, w in vars(weights).items()}
    assert {w.dtype for w in vars(weights).values()} == {np.dtype(np.float32)}


def same(one: FacetWeights, other: FacetWeights) -> bool:
    return all(np.array_equal(w, getattr(other, name)) for name, w in vars(one).items())


def test_start_depends_on_the_seed() -> None:
    assert same(start_weights(SIZES, 0), start_weights(SIZES, 0))
    assert not same(start_weights(SIZES, 0), start_weights(SIZES, 1))


def test_untrained_weights_have_no_network() -> None:
    weights = untrained_weights()
    assert weights.sizes == FacetSizes(256, 0, 0, 0)
    assert replace(weights).sizes == weights.sizes
    assert not weights.word_weight[:256].any(), "no word is treated by its vector"
