"""One vocabulary for NumPy and torch arrays: their namespace, and the names of their shapes.

The mathematics of dgn is written once against the Python array API standard. `namespace` finds
the functions that fit an array (NumPy's or torch's); `Float[Array, "batch items"]` says in a
signature what an array holds. Shapes are checked at run time where the environment variable
DGN_CHECK_SHAPES is set (the tests set it), and cost nothing elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import array_api_compat

# Its own types name libraries that need not be installed (CuPy, JAX).
_compat: Any = array_api_compat

Array: TypeAlias = Any
"""A NumPy array, a torch tensor, or any other array that follows the array API standard."""

if TYPE_CHECKING or os.environ.get("DGN_CHECK_SHAPES"):
    from jaxtyping import Bool, Float, Int
else:

    class _Unchecked:
        """Stands in for jaxtyping's names, so that production needs no jaxtyping."""

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
    "is_learning",
    "namespace",
]


def is_array(value: object) -> bool:
    """Whether this is an array of a library that follows the array API standard."""
    return _compat.is_array_api_obj(value)


def device_of(array: Array) -> Any:
    """Where the array lies, as its library's functions take it."""
    return _compat.device(array)


def namespace(array: Array) -> Any:
    """The array API functions that work on this array."""
    return _namespace_of(array.__class__) or _compat.array_namespace(array)


@functools.cache
def _namespace_of(kind: type) -> Any:
    # Looking the namespace up costs microseconds, many times a search. NumPy's and torch's depend
    # on nothing but the type; others are looked up array by array.
    package = kind.__module__.partition(".")[0]
    if package not in {"numpy", "torch"}:
        return None
    return importlib.import_module(f"array_api_compat.{package}")


def cast_like(values: Any, like: Array) -> Array:
    """`values` (an array, a list or a number) with the type, dtype and device of `like`.

    Mixed dtypes would promote a whole batch to float64 behind the user's back.
    """
    xp = namespace(like)
    if is_array(values) and namespace(values) is xp:
        return values if values.dtype == like.dtype else xp.astype(values, like.dtype)
    return xp.asarray(values, dtype=like.dtype, device=device_of(like))


def is_learning(array: Array) -> bool:
    """Whether a gradient will be asked of this array: a soft search, in training."""
    return bool(getattr(array, "requires_grad", False))
