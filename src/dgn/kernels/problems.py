"""What the compiled searches are given and what they return, in Python and as C knows it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgn.threads import available_cores

FORMS = {
    "log1p": 0,
    "sqrt": 1,
    "linear": 2,
    "saturated": 3,
    "facility_location": 4,
    "probabilistic": 5,
    "one_minus_exp": 6,
    "power": 7,
}
"""How the coverage of a feature grows; the numbers are those of greedy.h."""

_WORK_PER_THREAD = 2_000_000
"""Numbers that are worth a thread of their own: about a millisecond of work."""


class Problem(ctypes.Structure):
    """dgn_problem of greedy.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("features", "columns", "row_start", "start")),
        *((name, ctypes.c_void_p) for name in ("mask", "weights", "level")),
        *((name, ctypes.c_int64) for name in ("weights_stride", "level_stride", "sets", "items")),
        *((name, ctypes.c_int64) for name in ("width", "k")),
        *((name, ctypes.c_double) for name in ("parameter", "stop_share")),
        *((name, ctypes.c_int32) for name in ("form", "is_double")),
    )


class Result(ctypes.Structure):
    """dgn_result of greedy.h."""

    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in ("indices", "gains", "values", "bounds", "work", "range")
    )


class Range(NamedTuple):
    """What the features and the weights of some sets are like.

    Attributes:
        is_bad: Not 0 if a number is NaN or below 0.
        largest: The largest feature.
        least: The smallest, over sets, of the largest feature whose weight is not 0.
        lightest: The smallest weight that is not 0.
        heaviest: The largest weight.
    """

    is_bad: float
    largest: float
    least: float
    lightest: float
    heaviest: float


class Found(NamedTuple):
    """What a search found.

    Attributes:
        indices: [batch, k], the selected items, −1 for none.
        gains: [batch, k], 0 for none.
        values: [batch, k], the sum of the gains so far.
        bounds: [batch], what no set of k items exceeds.
        range: What the features and the weights are like; a search does not check them.
    """

    indices: NDArray[np.int64]
    gains: NDArray[Any]
    values: NDArray[Any]
    bounds: NDArray[Any]
    range: Range


@dataclass(frozen=True, eq=False)
class Coverage:
    """A coverage function as the kernels know it.

    Attributes:
        form: One of FORMS.
        parameter: The cap of "saturated", the exponent of "power".
        weights: [features] or [batch, features]; None if every feature weighs 1.
    """

    form: str
    parameter: float = 0.0
    weights: NDArray[Any] | None = None


def rows_of(
    values: NDArray[Any] | None, features: NDArray[Any], width: int
) -> tuple[NDArray[Any] | None, int]:
    """The values with the dtype of the features, and how far the rows of two sets are apart."""
    if values is None:
        return None, 0
    own = np.ascontiguousarray(values, features.dtype)
    return own, width if own.ndim == 2 and own.shape[0] > 1 else 0


def threads_for(sets: int, work: int) -> int:
    """The number of threads for this many sets of this many numbers each."""
    threads = sets * work // _WORK_PER_THREAD
    return min(threads, available_cores()) if threads > 1 else 1
