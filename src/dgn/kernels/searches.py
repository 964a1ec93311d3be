"""Greedy by the compiled kernels: many small sets at once, or one large set."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.kernels.library import highest_level, library
from dgn.threads import available_cores, run_in_parts

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


class _Problem(ctypes.Structure):
    _fields_ = (
        ("features", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
        ("mask", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("level", ctypes.c_void_p),
        ("weights_stride", ctypes.c_int64),
        ("level_stride", ctypes.c_int64),
        ("sets", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("parameter", ctypes.c_double),
        ("stop_share", ctypes.c_double),
        ("form", ctypes.c_int32),
        ("is_double", ctypes.c_int32),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("indices", ctypes.c_void_p),
        ("gains", ctypes.c_void_p),
        ("bounds", ctypes.c_void_p),
        ("work", ctypes.c_void_p),
    )


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


def greedy(
    coverage: Coverage,
    features: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    level: NDArray[Any] | None,
    k: int,
    stop_share: float = 0.0,
    *,
    processor: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any]]:
    """Forward greedy on every set of a batch.

    Args:
        coverage: The set function.
        features: [batch, items, features], float32 or float64, at least 0.
        mask: [batch, items], False for padding.
        level: [batch, features], what is already covered; None if nothing is.
        k: The number of items to select.
        stop_share: Stop before an item that adds less than this share of what the first one added.
        processor: An index of LEVELS; by default the highest.

    Returns:
        The selected items, [batch, k], −1 for none; their gains, 0 for none; and for each set a
        bound that no set of k items exceeds.
    """
    batch, items, width = features.shape
    features = np.ascontiguousarray(features)
    k = min(k, items)
    indices = np.empty((batch, k), np.int64)
    gains = np.empty((batch, k), features.dtype)
    bounds = np.empty(batch, features.dtype)
    weights, weights_stride = _rows(coverage.weights, features, width)
    levels, level_stride = _rows(level, features, width)
    hidden = None if mask is None else np.ascontiguousarray(mask)
    size = features.dtype.itemsize
    chosen_level = highest_level() if processor is None else processor

    def search(first: int, last: int) -> None:
        starts = np.arange(last - first + 1, dtype=np.int64) * items
        work = np.empty(3 * width + k + items, features.dtype)
        problem = _Problem(
            features=features.ctypes.data + first * items * width * size,
            start=starts.ctypes.data,
            mask=None if hidden is None else hidden.ctypes.data + first * items,
            weights=None
            if weights is None
            else weights.ctypes.data + first * weights_stride * size,
            level=None if levels is None else levels.ctypes.data + first * level_stride * size,
            weights_stride=weights_stride,
            level_stride=level_stride,
            sets=last - first,
            width=width,
            k=k,
            parameter=coverage.parameter,
            stop_share=stop_share,
            form=FORMS[coverage.form],
            is_double=features.dtype == np.float64,
        )
        result = _Result(
            indices=indices.ctypes.data + first * k * 8,
            gains=gains.ctypes.data + first * k * size,
            bounds=bounds.ctypes.data + first * size,
            work=work.ctypes.data,
        )
        library().dgn_greedy(
            ctypes.c_int32(chosen_level), ctypes.byref(problem), ctypes.byref(result)
        )

    run_in_parts(search, batch, _threads_for(batch, items * width * (k + 1)))
    return indices, gains, bounds


class LargeSet:
    """One large set whose gains are computed in several threads.

    Args:
        coverage: The set function.
        features: [items, features], float32 or float64, at least 0.
        mask: [items], False for padding.
        level: [features], what is covered; `gains` and `lazy` start here.
    """

    def __init__(
        self,
        coverage: Coverage,
        features: NDArray[Any],
        mask: NDArray[np.bool_] | None,
        level: NDArray[Any],
    ) -> None:
        self._features = np.ascontiguousarray(features)
        self._mask = None if mask is None else np.ascontiguousarray(mask)
        self._level = np.ascontiguousarray(level, dtype=features.dtype)
        self._weights, _ = _rows(coverage.weights, self._features, features.shape[1])
        self._coverage = coverage
        self._start = np.array([0, len(features)], np.int64)

    def gains(self, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """The gain of every item, or of some of them."""
        items, width = self._features.shape
        rows = None if rows is None else np.ascontiguousarray(rows, np.int64)
        found = np.empty(items if rows is None else len(rows), self._features.dtype)
        problem = self._problem(1, 0.0)

        def compute(first: int, last: int) -> None:
            work = np.empty(2 * width, self._features.dtype)
            library().dgn_gains(
                ctypes.c_int32(highest_level()),
                ctypes.byref(problem),
                ctypes.c_void_p(None if rows is None else rows.ctypes.data + 8 * first),
                ctypes.c_int64(first),
                ctypes.c_int64(last - first),
                ctypes.c_void_p(work.ctypes.data),
                ctypes.c_void_p(found.ctypes.data + first * found.itemsize),
            )

        run_in_parts(compute, len(found), _threads_for(len(found), width))
        return found

    def lazy(
        self, gains: NDArray[Any], k: int, stop_share: float
    ) -> tuple[NDArray[np.int64], NDArray[Any], LargeSet]:
        """Greedy by old gains, which are ceilings of the current ones.

        Args:
            gains: Those of every item, from `gains`; they are changed.
            k: The number of items to select.
            stop_share: Stop before an item that adds less than this share of the first gain.

        Returns:
            The selected items, [k], −1 for none; their gains; and the set after the selection.
        """
        items, width = self._features.shape
        k = min(k, items)
        indices = np.empty(k, np.int64)
        added = np.empty(k, self._features.dtype)
        work = np.empty(3 * width, self._features.dtype)
        heap, stamps = np.empty(items, np.int64), np.empty(items, np.int32)
        result = _Result(indices.ctypes.data, added.ctypes.data, None, work.ctypes.data)
        library().dgn_lazy(
            ctypes.c_int32(highest_level()),
            ctypes.byref(self._problem(k, stop_share)),
            ctypes.byref(result),
            ctypes.c_void_p(gains.ctypes.data),
            ctypes.c_void_p(heap.ctypes.data),
            ctypes.c_void_p(stamps.ctypes.data),
        )
        after = LargeSet(self._coverage, self._features, self._mask, work[:width].copy())
        return indices, added, after

    def _problem(self, k: int, stop_share: float) -> _Problem:
        return _Problem(
            features=self._features.ctypes.data,
            start=self._start.ctypes.data,
            mask=None if self._mask is None else self._mask.ctypes.data,
            weights=None if self._weights is None else self._weights.ctypes.data,
            level=self._level.ctypes.data,
            sets=1,
            width=self._features.shape[1],
            k=k,
            parameter=self._coverage.parameter,
            stop_share=stop_share,
            form=FORMS[self._coverage.form],
            is_double=self._features.dtype == np.float64,
        )


def _rows(
    values: NDArray[Any] | None, features: NDArray[Any], width: int
) -> tuple[NDArray[Any] | None, int]:
    """The values with the dtype of the features, and how far the rows of two sets are apart."""
    if values is None:
        return None, 0
    own = np.ascontiguousarray(values, dtype=features.dtype)
    return own, width if own.ndim == 2 and own.shape[0] > 1 else 0


def _threads_for(sets: int, work: int) -> int:
    """The number of threads for this many sets of this many numbers each."""
    threads = sets * work // _WORK_PER_THREAD
    return min(threads, available_cores()) if threads > 1 else 1
