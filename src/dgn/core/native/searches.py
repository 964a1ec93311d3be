"""Greedy by the compiled kernels on many small sets: within k, within other limits, one by one."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.forms import FORMS, Coverage
from dgn.core.native.library import address_of, highest_isa, library
from dgn.core.native.structures import Input, Limits, Result
from dgn.parallel import available_cores, run_in_parts

_WORK_PER_THREAD = 2_000_000
"""Numbers that are worth a thread of their own: about a millisecond of work."""


class Range(NamedTuple):
    """What the features and the weights of some sets are like.

    Attributes:
        is_bad: Not 0 if a number is NaN, below 0, or −0.
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


def rows_of(
    values: NDArray[Any] | None, features: NDArray[Any], width: int
) -> tuple[NDArray[Any] | None, int]:
    """The values with the dtype of the features, and how far the rows of two sets are apart."""
    if values is None:
        return None, 0
    own = contiguous(values, features.dtype)
    return own, width if own.ndim == 2 and own.shape[0] > 1 else 0


def contiguous(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values in memory as the kernels read them; checks find what is infinite in this dtype."""
    if values.dtype == dtype:
        return np.ascontiguousarray(values)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype)


def threads_for(sets: int, work: int) -> int:
    """The number of threads for this many sets of this many numbers each."""
    threads = sets * work // _WORK_PER_THREAD
    return min(threads, available_cores()) if threads > 1 else 1


def greedy(
    coverage: Coverage,
    features: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    level: NDArray[Any] | None,
    k: int,
    *,
    isa: int | None = None,
) -> tuple[tuple[NDArray[Any], ...], Range]:
    """Forward greedy on every set of a batch.

    Args:
        coverage: The set function.
        features: [batch, items, features], float32 or float64.
        mask: [batch, items], False for padding.
        level: [batch, features], what is already covered; None if nothing is.
        k: The number of items to select.
        isa: An index of ISAS; by default the highest.

    Returns:
        The selected items, [batch, k], −1 for none; their gains, [batch, k], 0 for none; the sums
        of the gains so far, [batch, k]; and what no set of k items exceeds, [batch]. Then what the
        features and the weights are like: a search does not check them.
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
    used = ctypes.c_int32(highest_isa() if isa is None else isa)
    ranges: list[Range] = []

    def search(first: int, last: int) -> None:
        work, extent = np.empty(3 * width + 2 * (k + items), dtype), np.empty(5, np.float64)
        given = Input(
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
        search_sets(used, ctypes.byref(given), ctypes.byref(result))
        ranges.append(Range(*extent.tolist()))

    run_in_parts(search, batch, threads_for(batch, items * width * (k + 1)))
    return (indices, gains, values, numbers[2 * batch * k :]), _joined(ranges)


def constrained(
    coverage: Coverage,
    features: NDArray[Any],
    mask: NDArray[np.bool_],
    level: NDArray[Any],
    counts: NDArray[np.int64],
    *,
    costs: NDArray[np.float64] | None = None,
    budgets: NDArray[np.float64] | None = None,
    divisors: NDArray[np.float64] | None = None,
    groups: NDArray[np.int64] | None = None,
    quotas: NDArray[np.int64] | None = None,
    skipped_cover: bool = False,
    isa: int | None = None,
) -> tuple[NDArray[Any], ...]:
    """Greedy on every set of a batch within a budget, quotas of groups, or both.

    Args:
        coverage: The set function.
        features: [batch, items, features], float32 or float64.
        mask: [batch, items], False for items that must not be selected.
        level: [batch, features], what is already covered.
        counts: [batch], the most items to select.
        costs: [batch, items], greater than 0; None without a budget.
        budgets: [batch].
        divisors: [batch, items]; gains are compared after a division by them. None for 1.
        groups: [batch, items], from 0 on; None without groups.
        quotas: [batch, groups], the most items of each group.
        skipped_cover: Whether items that do not fit are compared, too, and cover when they are
            skipped.
        isa: An index of ISAS; by default the highest.

    Returns:
        The selected items, [batch, k], −1 for none; their gains, 0 for none; what no set within the
        limits exceeds, [batch]; the best item alone that is allowed, [batch], −1 for none; and its
        gain, −∞ for none. Numbers are float64, and k is the largest of the counts, at least 1.
    """
    batch, items, width = features.shape
    k, size = max(1, int(counts.max())), features.itemsize
    indices, gains = np.empty((batch, k), np.int64), np.empty((batch, k), np.float64)
    bounds, single_gains = np.empty(batch, np.float64), np.empty(batch, np.float64)
    single = np.empty(batch, np.int64)
    features = np.ascontiguousarray(features)
    weights, weights_stride = rows_of(coverage.weights, features, width)
    levels, level_stride = rows_of(level, features, width)
    group_count = 0 if quotas is None else quotas.shape[1]
    used = ctypes.c_int32(highest_isa() if isa is None else isa)

    def from_row(array: NDArray[Any] | None, first: int, stride: int) -> Any:
        return None if array is None else address_of(array) + first * stride * array.itemsize

    # They must live as long as the search runs.
    own_mask, own_counts = np.ascontiguousarray(mask), np.ascontiguousarray(counts, np.int64)
    own_costs, own_divisors = map(_contiguous, (costs, divisors))
    own_budgets, own_groups, own_quotas = map(_contiguous, (budgets, groups, quotas))

    def search(first: int, last: int) -> None:
        work = np.empty(4 * width + k + 2 * items, features.dtype)
        density, order = np.empty(items, np.float64), np.empty(2 * items, np.int64)
        in_groups = np.empty(2 * group_count + 1, np.int64)
        given = Input(
            features=from_row(features, first, items * width),
            mask=from_row(own_mask, first, items),
            weights=from_row(weights, first, weights_stride),
            level=from_row(levels, first, level_stride),
            weights_stride=weights_stride,
            level_stride=level_stride,
            sets=last - first,
            items=items,
            width=width,
            k=k,
            parameter=coverage.parameter,
            form=FORMS[coverage.form],
            is_double=size == 8,
        )
        result = Result(
            indices=from_row(indices, first, k),
            gains=from_row(gains, first, k),
            bounds=from_row(bounds, first, 1),
            work=address_of(work),
        )
        limits = Limits(
            counts=from_row(own_counts, first, 1),
            costs=from_row(own_costs, first, items),
            budgets=from_row(own_budgets, first, 1),
            divisors=from_row(own_divisors, first, items),
            groups=from_row(own_groups, first, items),
            quotas=from_row(own_quotas, first, group_count),
            single=from_row(single, first, 1),
            single_gain=from_row(single_gains, first, 1),
            density=address_of(density),
            order=address_of(order),
            used=address_of(in_groups),
            group_count=group_count,
            skipped_cover=skipped_cover,
        )
        library().dgn_constrained(used, *(ctypes.byref(one) for one in (given, result, limits)))

    run_in_parts(search, batch, threads_for(batch, items * width * min(k, 8)))
    return indices, gains, bounds, single, single_gains


def _contiguous(array: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if array is None else np.ascontiguousarray(array)


class OneSet:
    """Searches single sets of one size, again and again, in memory of its own.

    For a small set, to make arrays and to find their addresses takes longer than the search.
    """

    def __init__(self, items: int, width: int, k: int, dtype: np.dtype[Any]) -> None:
        self._indices = np.empty(k, np.int64)
        self._numbers = np.empty(2 * k + 1, dtype)
        self._range = np.empty(5, np.float64)
        self._work = np.empty(3 * width + 2 * (k + items), dtype)
        at_numbers, size = address_of(self._numbers), dtype.itemsize
        self._input = Input(sets=1, items=items, width=width, k=k, is_double=size == 8)
        self._result = Result(
            address_of(self._indices),
            at_numbers,
            at_numbers + k * size,
            at_numbers + 2 * k * size,
            address_of(self._work),
            address_of(self._range),
        )
        self._arguments = (
            ctypes.c_int32(highest_isa()),
            ctypes.byref(self._input),
            ctypes.byref(self._result),
        )
        self._search = library().dgn_greedy

    def search(
        self, coverage: Coverage, features: NDArray[Any]
    ) -> tuple[list[int], list[float], Range]:
        """Forward greedy on [items, features].

        Returns:
            The selected items, −1 for none; then gains, values and the bound in one list; and what
            the features and the weights are like.
        """
        given = self._input
        # They must live as long as the search runs.
        features = np.ascontiguousarray(features)
        weights = coverage.weights
        if weights is not None:
            weights = contiguous(weights, features.dtype)
        given.features, given.weights = address_of(features), address_of(weights)
        given.parameter = coverage.parameter
        given.form = FORMS[coverage.form]
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
