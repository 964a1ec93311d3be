"""Greedy by the compiled kernels: many sets within k, or one set within constraints."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgn.core.constraints import Constraints
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
            coverage.second_parameter,
            coverage.split,
            FORMS[coverage.form],
            FORMS[coverage.second_form],
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
    level: NDArray[Any],
    constraints: Constraints,
    divisors: NDArray[np.float64] | None = None,
    skipped_cover: bool = False,
    *,
    isa: int | None = None,
) -> tuple[list[int], list[float], float, tuple[int, float]]:
    """Greedy on one set within constraints; see `search_within` of plain.py.

    Args:
        coverage: The set function.
        features: [1, items, features], float32 or float64.
        level: [1, features], what is already covered.
        constraints: What may still be added.
        divisors: [items]; gains are compared after a division by them. None for 1.
        skipped_cover: Whether items that do not fit cover when they are skipped.
        isa: An index of ISAS; by default the highest.
    """
    _, items, width = features.shape
    dtype, k = features.dtype, max(1, constraints.k)
    features = np.ascontiguousarray(features)
    skips = skipped_cover and constraints.costs is not None
    mask = np.ascontiguousarray(constraints.allowed if skips else constraints.open())
    weights, _ = rows_of(coverage.weights, features, width)
    level = contiguous(level, dtype)
    indices, gains = np.empty(k, np.int64), np.empty(k, np.float64)
    numbers = np.array([constraints.budget, 0.0, 0.0])  # the budget, the bound, the single gain
    counts = np.array([constraints.k, -1])  # and the single item
    groups, quotas = constraints.groups, constraints.quotas
    group_count = 0 if quotas is None else len(quotas)
    work = np.empty(4 * width + k + 2 * items, dtype)
    scratch = np.empty(3 * items + 2 * group_count + 1, np.int64)
    kept = [None if one is None else np.ascontiguousarray(one) for one in (groups, quotas)]
    given = _input(coverage, items, width, k, dtype)
    given.features, given.mask = address_of(features), address_of(mask)
    given.weights, given.level = address_of(weights), address_of(level)
    result = Result(
        indices=address_of(indices),
        gains=address_of(gains),
        bounds=address_of(numbers) + 8,
        work=address_of(work),
    )
    limits = Limits(
        counts=address_of(counts),
        costs=address_of(constraints.costs),
        budgets=address_of(numbers),
        divisors=address_of(divisors),
        groups=address_of(kept[0]),
        quotas=address_of(kept[1]),
        single=address_of(counts) + 8,
        single_gain=address_of(numbers) + 16,
        density=address_of(scratch),
        order=address_of(scratch) + 8 * items,
        used=address_of(scratch) + 24 * items,
        group_count=group_count,
        skipped_cover=skips,
    )
    used = ctypes.c_int32(highest_isa() if isa is None else isa)
    library().dgn_constrained(used, *(ctypes.byref(one) for one in (given, result, limits)))
    selected = [index for index in indices.tolist() if index >= 0]
    return (
        selected,
        gains.tolist()[: len(selected)],
        float(numbers[1]),
        (int(counts[1]), float(numbers[2])),
    )


def _input(coverage: Coverage, items: int, width: int, k: int, dtype: np.dtype[Any]) -> Input:
    """A description of one set, without the addresses of its arrays."""
    return Input(
        sets=1,
        items=items,
        width=width,
        k=k,
        parameter=coverage.parameter,
        second_parameter=coverage.second_parameter,
        split=coverage.split,
        form=FORMS[coverage.form],
        second_form=FORMS[coverage.second_form],
        is_double=dtype.itemsize == 8,
    )


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
        given.parameter, given.form = coverage.parameter, FORMS[coverage.form]
        given.split = coverage.split
        if coverage.split:
            given.second_form = FORMS[coverage.second_form]
            given.second_parameter = coverage.second_parameter
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
