"""Greedy by the compiled kernels: many small sets at once, or one large set."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgn.kernels.library import address_of, highest_level, library
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
        *((name, ctypes.c_void_p) for name in ("features", "columns", "row_start", "start")),
        *((name, ctypes.c_void_p) for name in ("mask", "weights", "level")),
        *((name, ctypes.c_int64) for name in ("weights_stride", "level_stride", "sets", "items")),
        *((name, ctypes.c_int64) for name in ("width", "k")),
        *((name, ctypes.c_double) for name in ("parameter", "stop_share")),
        *((name, ctypes.c_int32) for name in ("form", "is_double")),
    )


class _Result(ctypes.Structure):
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


def greedy(
    coverage: Coverage,
    features: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    level: NDArray[Any] | None,
    k: int,
    stop_share: float = 0.0,
    *,
    processor: int | None = None,
) -> Found:
    """Forward greedy on every set of a batch.

    Args:
        coverage: The set function.
        features: [batch, items, features], float32 or float64.
        mask: [batch, items], False for padding.
        level: [batch, features], what is already covered; None if nothing is.
        k: The number of items to select.
        stop_share: Stop before an item that adds less than this share of what the first one added.
        processor: An index of LEVELS; by default the highest.
    """
    batch, items, width = features.shape
    features = np.ascontiguousarray(features)
    k = min(k, items)
    dtype, size = features.dtype, features.itemsize
    indices = np.empty((batch, k), np.int64)
    # One array for all numbers of the result: to find an address takes as long as some searches.
    numbers = np.empty(batch * (2 * k + 1), dtype)
    gains, values = numbers[: 2 * batch * k].reshape(2, batch, k)
    weights, weights_stride = _rows(coverage.weights, features, width)
    levels, level_stride = _rows(level, features, width)
    mask = None if mask is None else np.ascontiguousarray(mask)
    at_features, at_indices, at_numbers = map(address_of, (features, indices, numbers))
    at_mask, at_weights, at_level = map(address_of, (mask, weights, levels))
    search_sets = library().dgn_greedy
    level_of_processor = ctypes.c_int32(highest_level() if processor is None else processor)
    ranges: list[Range] = []

    def search(first: int, last: int) -> None:
        work, extent = np.empty(3 * width + k + items, dtype), np.empty(5, np.float64)
        problem = _Problem(
            at_features + first * items * width * size,
            None,
            None,
            None,
            None if at_mask is None else at_mask + first * items,
            None if at_weights is None else at_weights + first * weights_stride * size,
            None if at_level is None else at_level + first * level_stride * size,
            weights_stride,
            level_stride,
            last - first,
            items,
            width,
            k,
            coverage.parameter,
            stop_share,
            FORMS[coverage.form],
            dtype.itemsize == 8,
        )
        result = _Result(
            at_indices + first * k * 8,
            at_numbers + first * k * size,
            at_numbers + (batch + first) * k * size,
            at_numbers + (2 * batch * k + first) * size,
            address_of(work),
            address_of(extent),
        )
        search_sets(level_of_processor, ctypes.byref(problem), ctypes.byref(result))
        ranges.append(Range(*extent.tolist()))

    run_in_parts(search, batch, _threads_for(batch, items * width * (k + 1)))
    return Found(indices, gains, values, numbers[2 * batch * k :], _joined(ranges))


class _Budget(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in ("costs", "budgets", "single", "single_gain", "density", "order")
    )


class FoundWithin(NamedTuple):
    """What a search within a budget found; numbers are float64.

    Attributes:
        indices: [batch, k], the items selected by gain per cost, −1 for none.
        gains: [batch, k], 0 for none.
        bounds: [batch], what no set within the limits exceeds.
        single: [batch], the best item alone that can be paid, −1 for none.
        single_gains: [batch], −∞ for none.
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    bounds: NDArray[np.float64]
    single: NDArray[np.int64]
    single_gains: NDArray[np.float64]


def budgeted(
    coverage: Coverage,
    features: NDArray[Any],
    mask: NDArray[np.bool_],
    level: NDArray[Any] | None,
    costs: NDArray[np.float64],
    budgets: NDArray[np.float64],
    k: int,
    stop_share: float,
) -> FoundWithin:
    """Greedy by gain per cost on every set of a batch, within a budget.

    Args:
        coverage: The set function.
        features: [batch, items, features], float32 or float64.
        mask: [batch, items], False for padding.
        level: [batch, features], what is already covered; None if nothing is.
        costs: [batch, items], greater than 0.
        budgets: [batch].
        k: The most items to select.
        stop_share: Stop before an item that adds less than this share of what the first one added.
    """
    batch, items, width = features.shape
    features, mask = np.ascontiguousarray(features), np.ascontiguousarray(mask)
    costs, budgets = np.ascontiguousarray(costs), np.ascontiguousarray(budgets)
    indices, gains = np.empty((batch, k), np.int64), np.empty((batch, k), np.float64)
    bounds, single_gains = np.empty(batch, np.float64), np.empty(batch, np.float64)
    single = np.empty(batch, np.int64)
    weights, weights_stride = _rows(coverage.weights, features, width)
    levels, level_stride = _rows(level, features, width)
    size = features.itemsize
    at = {
        name: address_of(array)
        for name, array in (
            *(("features", features), ("mask", mask), ("weights", weights), ("level", levels)),
            *(("costs", costs), ("budgets", budgets), ("indices", indices), ("gains", gains)),
            *(("bounds", bounds), ("single", single), ("single_gains", single_gains)),
        )
    }

    def search(first: int, last: int) -> None:
        work = np.empty(3 * width + k + items, features.dtype)
        density, order = np.empty(items, np.float64), np.empty(items, np.int64)
        problem = _Problem(
            features=at["features"] + first * items * width * size,
            mask=at["mask"] + first * items,
            weights=None if weights is None else at["weights"] + first * weights_stride * size,
            level=None if levels is None else at["level"] + first * level_stride * size,
            weights_stride=weights_stride,
            level_stride=level_stride,
            sets=last - first,
            items=items,
            width=width,
            k=k,
            parameter=coverage.parameter,
            stop_share=stop_share,
            form=FORMS[coverage.form],
            is_double=size == 8,
        )
        result = _Result(
            indices=at["indices"] + first * k * 8,
            gains=at["gains"] + first * k * 8,
            bounds=at["bounds"] + first * 8,
            work=address_of(work),
        )
        budget = _Budget(
            at["costs"] + first * items * 8,
            at["budgets"] + first * 8,
            at["single"] + first * 8,
            at["single_gains"] + first * 8,
            address_of(density),
            address_of(order),
        )
        library().dgn_budgeted(
            ctypes.c_int32(highest_level()),
            *(ctypes.byref(one) for one in (problem, result, budget)),
        )

    run_in_parts(search, batch, _threads_for(batch, items * width * min(k, 8)))
    return FoundWithin(indices, gains, bounds, single, single_gains)


class OneSet:
    """Searches single sets of one size, again and again, in memory of its own.

    For a small set, to make arrays and to find their addresses takes longer than the search.
    """

    def __init__(self, items: int, width: int, k: int, dtype: np.dtype[Any]) -> None:
        self._indices = np.empty(k, np.int64)
        self._numbers = np.empty(2 * k + 1, dtype)
        self._range = np.empty(5, np.float64)
        self._work = np.empty(3 * width + k + items, dtype)
        at_numbers, size = address_of(self._numbers), dtype.itemsize
        self._problem = _Problem(sets=1, items=items, width=width, k=k, is_double=size == 8)
        self._result = _Result(
            address_of(self._indices),
            at_numbers,
            at_numbers + k * size,
            at_numbers + 2 * k * size,
            address_of(self._work),
            address_of(self._range),
        )
        self._arguments = (
            ctypes.c_int32(highest_level()),
            ctypes.byref(self._problem),
            ctypes.byref(self._result),
        )
        self._search = library().dgn_greedy

    def search(
        self, coverage: Coverage, features: NDArray[Any], stop_share: float
    ) -> tuple[list[int], list[float], Range]:
        """Forward greedy on [items, features].

        Returns:
            The selected items, −1 for none; then gains, values and the bound in one list; and what
            the features and the weights are like.
        """
        problem = self._problem
        # They must live as long as the search runs.
        features = np.ascontiguousarray(features)
        weights = coverage.weights
        if weights is not None:
            weights = np.ascontiguousarray(weights, features.dtype)
        problem.features, problem.weights = address_of(features), address_of(weights)
        problem.parameter, problem.stop_share = coverage.parameter, stop_share
        problem.form = FORMS[coverage.form]
        self._search(*self._arguments)
        found = Range._make(self._range.tolist())
        return self._indices.tolist(), self._numbers.tolist(), found


_one_set = threading.local()
_MOST_SIZES = 64


def one_set(items: int, width: int, k: int, dtype: np.dtype[Any]) -> OneSet:
    """The search of this thread for single sets of this size."""
    known: dict[Any, OneSet] = _one_set.__dict__.setdefault("known", {})
    key = (items, width, k, dtype)
    if key not in known:
        if len(known) >= _MOST_SIZES:
            known.clear()
        known[key] = OneSet(items, width, k, dtype)
    return known[key]


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
            weights = np.ascontiguousarray(weights, features.dtype)
        self._weights, self._coverage = weights, coverage
        self._start = np.array([0, features.shape[0]], np.int64)

    def __len__(self) -> int:
        return self._features.shape[0]

    def gains(self, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """The gain of every item, or of some of them."""
        items, width = self._features.shape
        rows = None if rows is None else np.ascontiguousarray(rows, np.int64)
        found = np.empty(items if rows is None else len(rows), self._features.dtype)
        problem = self._problem(1, 0.0)

        def compute(first: int, last: int) -> None:
            work = np.empty(5 * width, self._features.dtype)
            library().dgn_gains(
                ctypes.c_int32(highest_level()),
                ctypes.byref(problem),
                ctypes.c_void_p(None if rows is None else rows.ctypes.data + 8 * first),
                ctypes.c_int64(first),
                ctypes.c_int64(last - first),
                ctypes.c_void_p(work.ctypes.data),
                ctypes.c_void_p(found.ctypes.data + first * found.itemsize),
            )

        run_in_parts(compute, len(found), _threads_for(len(found), self._numbers_per_row))
        return found

    def raised(self, item: int) -> LargeSet:
        """The set after one item was selected."""
        features, form = self._features, self._coverage.form
        if isinstance(features, SparseRows):
            row = slice(features.start[item], features.start[item + 1])
            places: Any = features.columns[row]
            added = features.numbers[row]
        else:
            places, added = slice(None), features[item]
        level = self._level.copy()
        if form == "facility_location":
            level[places] = np.maximum(level[places], added)
        elif form == "probabilistic":
            level[places] *= 1 - added
        else:
            level[places] += added
        return LargeSet(self._coverage, features, self._mask, level)

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
        work = np.empty(6 * width, self._features.dtype)
        heap, stamps = np.empty(items, np.int64), np.empty(items, np.int32)
        result = _Result(
            indices=indices.ctypes.data, gains=added.ctypes.data, work=work.ctypes.data
        )
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
        features = self._features
        is_sparse = isinstance(features, SparseRows)
        return _Problem(
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
            stop_share=stop_share,
            form=FORMS[self._coverage.form],
            is_double=self._features.dtype == np.float64,
        )

    @property
    def _numbers_per_row(self) -> int:
        features = self._features
        if isinstance(features, SparseRows):
            return 4 * len(features.numbers) // max(1, features.shape[0]) + 1
        return features.shape[1]


def _joined(ranges: list[Range]) -> Range:
    if len(ranges) == 1:
        return ranges[0]
    bad, largest, least, lightest, heaviest = zip(*ranges, strict=True)
    return Range(max(bad), max(largest), min(least), min(lightest), max(heaviest))


def _rows(
    values: NDArray[Any] | None, features: NDArray[Any], width: int
) -> tuple[NDArray[Any] | None, int]:
    """The values with the dtype of the features, and how far the rows of two sets are apart."""
    if values is None:
        return None, 0
    own = np.ascontiguousarray(values, features.dtype)
    return own, width if own.ndim == 2 and own.shape[0] > 1 else 0


def _threads_for(sets: int, work: int) -> int:
    """The number of threads for this many sets of this many numbers each."""
    threads = sets * work // _WORK_PER_THREAD
    return min(threads, available_cores()) if threads > 1 else 1
