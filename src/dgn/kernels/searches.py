"""Greedy by the compiled kernels on many small sets: within k, within a budget, one by one."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgn.kernels.library import address_of, highest_level, library
from dgn.kernels.problems import (
    FORMS,
    Coverage,
    Found,
    Problem,
    Range,
    Result,
    rows_of,
    threads_for,
)
from dgn.threads import run_in_parts


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
    weights, weights_stride = rows_of(coverage.weights, features, width)
    levels, level_stride = rows_of(level, features, width)
    mask = None if mask is None else np.ascontiguousarray(mask)
    at_features, at_indices, at_numbers = map(address_of, (features, indices, numbers))
    at_mask, at_weights, at_level = map(address_of, (mask, weights, levels))
    search_sets = library().dgn_greedy
    level_of_processor = ctypes.c_int32(highest_level() if processor is None else processor)
    ranges: list[Range] = []

    def search(first: int, last: int) -> None:
        work, extent = np.empty(3 * width + k + items, dtype), np.empty(5, np.float64)
        problem = Problem(
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
        result = Result(
            at_indices + first * k * 8,
            at_numbers + first * k * size,
            at_numbers + (batch + first) * k * size,
            at_numbers + (2 * batch * k + first) * size,
            address_of(work),
            address_of(extent),
        )
        search_sets(level_of_processor, ctypes.byref(problem), ctypes.byref(result))
        ranges.append(Range(*extent.tolist()))

    run_in_parts(search, batch, threads_for(batch, items * width * (k + 1)))
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
    weights, weights_stride = rows_of(coverage.weights, features, width)
    levels, level_stride = rows_of(level, features, width)
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
        problem = Problem(
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
        result = Result(
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

    run_in_parts(search, batch, threads_for(batch, items * width * min(k, 8)))
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
        self._problem = Problem(sets=1, items=items, width=width, k=k, is_double=size == 8)
        self._result = Result(
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


def _joined(ranges: list[Range]) -> Range:
    if len(ranges) == 1:
        return ranges[0]
    bad, largest, least, lightest, heaviest = zip(*ranges, strict=True)
    return Range(max(bad), max(largest), min(least), min(lightest), max(heaviest))
