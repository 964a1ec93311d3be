"""One vocabulary for NumPy and torch."""

import numpy as np
import pytest
import torch

from dgn.core.arrays import cast_like, device_of, is_array, namespace, requires_gradient


def test_namespace_is_that_of_the_library() -> None:
    assert namespace(np.ones(1)) is np
    assert namespace(torch.ones(1)).__name__ == "array_api_compat.torch"
    assert namespace(torch.nn.Parameter(torch.ones(1))) is namespace(torch.ones(1))
    with pytest.raises(TypeError):
        namespace([1.0])


def test_is_array() -> None:
    assert is_array(np.ones(1))
    assert is_array(torch.ones(1))
    assert not is_array([1.0])


def test_device_of() -> None:
    assert device_of(torch.ones(1)) == torch.device("cpu")
    assert device_of(np.ones(1)) == "cpu"


@pytest.mark.parametrize("values", [[1, 2], 3, np.array([1.5, 2.5]), np.array([1, 2])])
@pytest.mark.parametrize(
    "like", [np.zeros(1, np.float32), torch.zeros(1), torch.zeros(1, dtype=torch.float64)]
)
def test_cast_like_has_the_library_and_dtype_of_the_other_array(
    values: object, like: object
) -> None:
    found = cast_like(values, like)
    assert type(found) is type(like)
    assert found.dtype == like.dtype
    assert found.tolist() == np.asarray(values).tolist()


def test_cast_like_keeps_gradients_and_does_not_copy() -> None:
    values = torch.ones(2, requires_grad=True)
    assert cast_like(values, torch.zeros(1)) is values
    assert cast_like(values, torch.zeros(1, dtype=torch.float64)).requires_grad


def test_requires_gradient() -> None:
    assert requires_gradient(torch.ones(1, requires_grad=True))
    assert not requires_gradient(torch.ones(1))
    assert not requires_gradient(np.ones(1))
