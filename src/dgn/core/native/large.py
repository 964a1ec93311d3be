"""One large set, dense or sparse, whose gains are computed in several threads."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.forms import FORMS, Coverage
from dgn.core.native.library import address_of, highest_isa, library
from dgn.core.native.searches import contiguous, threads_for
from dgn.core.native.structures import Input, Result
from dgn.parallel import run_in_parts


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows most of whose numbers are 0, as in a CSR matrix.

    Attributes:
        numbers: The numbers that are not 0, row by row.
        columns: The feature of each of them; no feature twice in a row.
        start: [items + 1], where each row begins.
        width: The number of features.
    """

    numbers: NDArray[Any]
    columns: NDArray[np.int32]
    start: NDArray[np.int64]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Items and features."""
        return len(self.start) - 1, self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the numbers."""
        return self.numbers.dtype


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
        features: NDArray[Any] | SparseRows,
        mask: NDArray[np.bool_] | None,
        level: NDArray[Any],
    ) -> None:
        is_sparse = isinstance(features, SparseRows)
        self._features = features if is_sparse else np.ascontiguousarray(features)
        self._mask = None if mask is None else np.ascontiguousarray(mask)
        self._level = np.ascontiguousarray(level, dtype=features.dtype)
        weights = coverage.weights
        if weights is not None:
            weights = contiguous(weights, features.dtype)
        self._weights, self._coverage = weights, coverage
        self._start = np.array([0, features.shape[0]], np.int64)

    def __len__(self) -> int:
        return self._features.shape[0]

    def gains(self, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """The gain of every item, or of some of them."""
        items, width = self._features.shape
        rows = None if rows is None else np.ascontiguousarray(rows, np.int64)
        found = np.empty(items if rows is None else len(rows), self._features.dtype)
        given = self._input(1)

        def compute(first: int, last: int) -> None:
            work = np.empty(5 * width, self._features.dtype)
            library().dgn_gains(
                ctypes.c_int32(highest_isa()),
                ctypes.byref(given),
                ctypes.c_void_p(None if rows is None else rows.ctypes.data + 8 * first),
                ctypes.c_int64(first),
                ctypes.c_int64(last - first),
                ctypes.c_void_p(work.ctypes.data),
                ctypes.c_void_p(found.ctypes.data + first * found.itemsize),
            )

        run_in_parts(compute, len(found), threads_for(len(found), self._numbers_per_row))
        return found

    def raised(self, item: int) -> LargeSet:
        """The set after one item was selected."""
        features, form = self._features, self._coverage.form
        if isinstance(features, SparseRows):
            row = slice(features.start[item], features.start[item + 1])
            columns: Any = features.columns[row]
            added = features.numbers[row]
        else:
            columns, added = slice(None), features[item]
        level = self._level.copy()
        if form == "facility_location":
            level[columns] = np.maximum(level[columns], added)
        elif form == "probabilistic":
            level[columns] *= 1 - added
        else:
            level[columns] += added
        return LargeSet(self._coverage, features, self._mask, level)

    def lazy(self, gains: NDArray[Any], k: int) -> tuple[NDArray[np.int64], NDArray[Any], LargeSet]:
        """Greedy by old gains, which are ceilings of the current ones.

        Args:
            gains: Those of every item, from `gains`; they are changed.
            k: The number of items to select.

        Returns:
            The selected items, [k], −1 for none; their gains; and the set after the selection.
        """
        items, width = self._features.shape
        k = min(k, items)
        indices = np.empty(k, np.int64)
        added = np.empty(k, self._features.dtype)
        work = np.empty(6 * width, self._features.dtype)
        heap, stamps = np.empty(items, np.int64), np.empty(items, np.int32)
        result = Result(indices=indices.ctypes.data, gains=added.ctypes.data, work=work.ctypes.data)
        library().dgn_lazy(
            ctypes.c_int32(highest_isa()),
            ctypes.byref(self._input(k)),
            ctypes.byref(result),
            ctypes.c_void_p(gains.ctypes.data),
            ctypes.c_void_p(heap.ctypes.data),
            ctypes.c_void_p(stamps.ctypes.data),
        )
        after = LargeSet(self._coverage, self._features, self._mask, work[:width].copy())
        return indices, added, after

    def _input(self, k: int) -> Input:
        features = self._features
        is_sparse = isinstance(features, SparseRows)
        return Input(
            features=address_of(features.numbers if is_sparse else features),
            columns=address_of(features.columns if is_sparse else None),
            row_start=address_of(features.start if is_sparse else None),
            start=self._start.ctypes.data,
            mask=None if self._mask is None else self._mask.ctypes.data,
            weights=None if self._weights is None else self._weights.ctypes.data,
            level=self._level.ctypes.data,
            sets=1,
            width=self._features.shape[1],
            k=k,
            parameter=self._coverage.parameter,
            form=FORMS[self._coverage.form],
            is_double=self._features.dtype == np.float64,
        )

    @property
    def _numbers_per_row(self) -> int:
        features = self._features
        if isinstance(features, SparseRows):
            return 4 * len(features.numbers) // max(1, features.shape[0]) + 1
        return features.shape[1]
