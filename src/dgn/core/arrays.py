"""One vocabulary for NumPy and torch arrays: their namespace, and the names of their shapes.

The mathematics of dgn is written once against the Python array API standard. `namespace` returns
the functions that work on an array (NumPy's or torch's); `Float[Array, "batch items"]` states the
shape of an array in a signature. Shapes are checked at run time when the environment variable
DGN_CHECK_SHAPES is set (the tests set it) and cost nothing otherwise.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import array_api_compat
import numpy as np

# Its own type hints name libraries that need not be installed (CuPy, JAX).
_compat: Any = array_api_compat

Array: TypeAlias = Any
"""A NumPy array, a torch tensor, or any other array that follows the array API standard."""

if TYPE_CHECKING or os.environ.get("DGN_CHECK_SHAPES"):
    from jaxtyping import Bool, Float, Int
else:

    class _Unchecked:
        """Stands in for jaxtyping's names, so that production does not need jaxtyping."""

        def __class_getitem__(cls, _: object) -> Any:
            return Any

    Bool = Float = Int = _Unchecked

__all__ = [
    "Array",
    "Bool",
    "Float",
    "Int",
    "cast_like",
    "device_of",
    "is_array",
    "namespace",
    "requires_gradient",
]

_NAMESPACES: dict[type, Any] = {}


def is_array(value: object) -> bool:
    """Whether this is an array of a library that follows the array API standard."""
    return value.__class__ in _NAMESPACES or _compat.is_array_api_obj(value)


def device_of(array: Array) -> Any:
    """The device of an array, as its library's functions take it."""
    return array.device if hasattr(array, "is_cuda") else _compat.device(array)


def namespace(array: Array) -> Any:
    """The array API functions that work on this array."""
    # A lookup by type, because it happens many times per search. It is a plain dictionary and not
    # a cached function so that torch.compile can trace through it.
    found = _NAMESPACES.get(array.__class__)
    return _find_namespace(array) if found is None else found


def _find_namespace(array: Array) -> Any:
    kind: type = array.__class__
    libraries = {base.__module__.partition(".")[0] for base in kind.__mro__}
    # Only for these two does the namespace depend on the type alone. NumPy follows the standard
    # since 2.1; the module of array_api_compat would import f2py and numpy.testing, 0.1 s.
    for package, module in (("numpy", "numpy"), ("torch", "array_api_compat.torch")):
        if package in libraries:
            _NAMESPACES[kind] = importlib.import_module(module)
            return _NAMESPACES[kind]
    return _compat.array_namespace(array)


def cast_like(values: Any, like: Array) -> Array:
    """`values` (an array, a list or a number) with the type, dtype and device of `like`.

    Mixed dtypes would silently promote a whole batch to float64.
    """
    xp = namespace(like)
    if is_array(values) and namespace(values) is xp:
        if values.dtype == like.dtype:
            return values
        with np.errstate(over="ignore"):  # checks find the infinity, and say where it is
            return xp.astype(values, like.dtype)
    return xp.asarray(values, dtype=like.dtype, device=device_of(like))


def requires_gradient(array: Array) -> bool:
    """Whether a gradient will flow through this array: a soft search during training."""
    return bool(getattr(array, "requires_grad", False))
