"""In a pass of their own, the shapes in signatures are checked: DGN_CHECK_SHAPES=1."""

import os

import numpy as np
import pytest

from dgn.core.plain import one_hot


@pytest.mark.skipif(not os.environ.get("DGN_CHECK_SHAPES"), reason="shapes are not checked here")
def test_shape_checks_are_on_in_their_pass() -> None:
    from jaxtyping import TypeCheckError

    with pytest.raises(TypeCheckError):
        one_hot(np.ones((2, 2), dtype=int), 3)
