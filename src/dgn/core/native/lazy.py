"""One large set, dense or sparse, whose gains are computed in several threads."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.forms import FORMS, Coverage
from dgn.core.native.greedy import contiguous, threads_for
from dgn.core.native.library import address_of, highest_isa, library
from dgn.core.native.structures import Input, Part
from dgn.parallel import run_in_parts

_ITEMS_PER_PART = 8192
"""Items that are worth a heap of their own; there are at most so many heaps:"""
_MOST_PARTS = 64


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

    @property
    def mask(self) -> NDArray[np.bool_]:
        """[1, items], False for items that must not be selected."""
        return np.ones((1, len(self)), np.bool_) if self._mask is None else self._mask[None]

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

    def raised(self, *items: int) -> LargeSet:
        """The set after these items were selected, one after the other."""
        after = LargeSet(self._coverage, self._features, self._mask, self._level.copy())
        for item in items:
            after._raise(item)
        return after

    def limited(self, allowed: NDArray[np.bool_]) -> LargeSet:
        """The same set, in which these items alone may be selected."""
        return LargeSet(self._coverage, self._features, allowed, self._level)

    def _raise(self, item: int) -> None:
        """Add an item to the level."""
        features, form, level = self._features, self._coverage.form, self._level
        if isinstance(features, SparseRows):
            row = slice(features.start[item], features.start[item + 1])
            columns: Any = features.columns[row]
            added = features.numbers[row]
        else:
            columns, added = slice(None), features[item]
        if form == "facility_location":
            level[columns] = np.maximum(level[columns], added)
        elif form == "probabilistic":
            level[columns] *= 1 - added
        else:
            level[columns] += added

    def lazy(
        self,
        k: int,
        groups: NDArray[np.int64] | None = None,
        quotas: NDArray[np.int64] | None = None,
    ) -> tuple[list[int], list[float], NDArray[Any], LargeSet]:
        """Greedy by old gains, which are ceilings of the current ones.

        The set is divided into parts, each with a heap of its own, and threads share the parts. How
        many parts there are depends on the set alone, so that threads change nothing.

        Args:
            k: The number of items to select.
            groups: [items], the group of every item, from 0 on; None without groups.
            quotas: [groups], the most items of each group.

        Returns:
            The selected items and their gains; the gain of every item before the first one was
            selected; and the set after the selection.
        """
        items, width = self._features.shape
        dtype, slack = self._features.dtype, self._slack()
        ceilings, heap = np.empty(items, dtype), np.empty(items, np.int64)
        ages, floor = np.empty(items, np.int32), np.zeros(1)
        count = max(1, min(_MOST_PARTS, items // _ITEMS_PER_PART))
        work = np.empty((count, 7 * width), dtype)
        groups = None if groups is None else np.ascontiguousarray(groups)
        left = np.zeros(0, np.int64) if quotas is None else quotas.copy()
        is_full = left < 1
        parts: list[Part] = []
        for number in range(count):
            first, last = (items * edge // count for edge in (number, number + 1))
            part = Part(first=first, items=last - first, slack=slack, floor=address_of(floor))
            part.ceilings, part.ages = address_of(ceilings[first:]), address_of(ages[first:])
            part.heap, part.work = address_of(heap[first:]), address_of(work[number])
            part.groups, part.is_full = address_of(groups), address_of(is_full)
            parts.append(part)
        after = LargeSet(self._coverage, self._features, self._mask, self._level.copy())
        given, search = after._input(k), library().dgn_lazy
        isa, threads = ctypes.c_int32(highest_isa()), threads_for(items, self._numbers_per_row)

        def advance(first: int, last: int) -> None:
            for part in parts[first:last]:
                search(isa, ctypes.byref(given), ctypes.byref(part))

        indices: list[int] = []
        gains: list[float] = []
        first_gains = ceilings
        for step in range(k):
            for part in parts:
                part.step = step
            floor[0] = 0
            run_in_parts(advance, count, threads)
            if step == 0:
                first_gains = ceilings.copy()
            found = [part for part in parts if part.best >= 0]
            if not found:
                break
            best = min(found, key=lambda part: (-part.gain, part.best))
            best.is_taken = 1
            indices.append(best.best)
            gains.append(best.gain)
            after._raise(best.best)
            if groups is not None:
                left[groups[best.best]] -= 1
                is_full[groups[best.best]] = left[groups[best.best]] < 1
        return indices, gains, first_gains, after

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

    def _slack(self) -> float:
        """What float loses of a gain besides rounding; −1 if a search must not use it.

        Numbers below its range become 0, and those above it are not allowed.
        """
        features, weights = self._features, self._weights
        if isinstance(features, SparseRows) or features.dtype != np.float64:
            return -1.0
        heaviest = 1.0 if weights is None else float(weights.max())
        highest = max(float(features.max()), float(self._level.max()), heaviest)
        growth = {"sqrt": 0.5, "power": self._coverage.parameter}.get(self._coverage.form, 1.0)
        lost = features.shape[1] * heaviest * (1e-37**growth)
        is_small = lost <= 1e-9 * heaviest * float(features.max()) ** growth
        return lost if highest * len(features) <= 1e30 and is_small else -1.0

    @property
    def _numbers_per_row(self) -> int:
        features = self._features
        if isinstance(features, SparseRows):
            return 4 * len(features.numbers) // max(1, features.shape[0]) + 1
        return features.shape[1]
