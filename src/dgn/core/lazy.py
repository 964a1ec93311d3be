"""Lazy greedy, for one large ground set, dense or sparse: the same items, far fewer evaluations.

SciPy checks the indices of a sparse matrix when it is made, and not when its arrays are changed
later or were made by another program. A kernel, and SciPy's own conversions, would read and write
beyond the end of an array, so that everything is checked here first.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.arrays import Array
from dgn.core.checks import checked_count, checked_items
from dgn.core.constraints import Constraints
from dgn.core.functions import SetFunction
from dgn.core.functions.base import check_range
from dgn.core.greedy import compiled_coverage, greedy, greedy_within, is_usual
from dgn.core.items import Items, State, as_items
from dgn.core.native import LargeSet, Range, SparseRows
from dgn.core.selection import Selection, Selections
from dgn.errors import InvalidInput


def lazy_greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int | None,
    *,
    context: State | Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
) -> Selection | Selections:
    """Select the same items as greedy, with far fewer evaluations (Minoux, 1978).

    A gain never grows as the set grows, so an old gain is an upper bound of the current one. Only
    items whose bound reaches the top are evaluated again. The certificate is that of the first and
    the last prefix. Choose it for more than some ten thousand items; for small sets, `greedy` is
    faster. A function without a kernel, and a batch of sets, are searched by `greedy`.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features]; or a
            SciPy sparse matrix, [items, features].
        k: The number of items to select.
        context: What is already covered, as for `greedy`.
        pinned: Items that must be selected, as for `greedy`.
        groups: The group of every item, as for `greedy`.
        max_per_group: The most items of each group, as for `greedy`.

    Returns:
        One Selection for a single set, Selections for a batch.
    """
    k = checked_count(k)
    limits = {"pinned": pinned, "groups": groups, "max_per_group": max_per_group}
    if native.is_sparse(items):
        state = context if isinstance(context, State) else None
        large = _sparse_set(objective, items, state)
        mask = np.ones((1, len(large)), np.bool_)
    else:
        items = as_items(items).widened()
        state = context if isinstance(context, State) else None
        large = _dense_set(objective, items, state)
        if large is None:
            return greedy(objective, items, k, context=context, **limits)
        mask = items.mask
    there = None if isinstance(context, State) else context
    (constraints,) = Constraints.of_sets(mask, k, single=True, present=there, **limits)
    found = _search(large, constraints)
    if native.is_sparse(items) or items.single:
        return found
    return Selections.stack([found], items.features)


def lazy_within(
    objective: SetFunction,
    items: Items,
    constraints: Constraints,
    context: State | None = None,
) -> Selection:
    """The same for one set, within constraints that were made before."""
    large = None if constraints.costs is not None else _dense_set(objective, items, context)
    if large is None:
        return greedy_within(objective, items, constraints, context)
    return _search(large, constraints)


def _dense_set(objective: SetFunction, items: Items, context: State | None) -> LargeSet | None:
    """One set of a function that has a kernel, after everything was checked; otherwise None."""
    coverage = compiled_coverage(objective, items.features)
    is_dense = type(items.features) is np.ndarray and items.batch == 1
    if coverage is None or coverage.split or not is_dense:
        return None
    items = checked_items(objective, items, context)
    level = objective.empty(items, context).level[0]
    return LargeSet(coverage, items.features[0], items.mask[0], level)


def _search(large: LargeSet, constraints: Constraints) -> Selection:
    """The search by the kernel; the certificate is that of the first and the last prefix."""
    large = large.raised(*constraints.present)
    pinned_gains: list[float] = []
    for item in constraints.pinned:
        pinned_gains.append(large.gains(np.asarray([item], np.int64))[0].item())
        large = large.raised(item)
    left = constraints.after_pinned()
    large = large.limited(left.open())
    if left.k < 1:
        return Selection.of(constraints.pinned, pinned_gains, -math.inf, large.gains())
    indices, gains, first, after = large.lazy(left.k, left.groups, left.quotas)
    remaining = after.gains()
    remaining[indices] = 0
    bound = math.fsum(gains) + left.largest_gain(remaining)
    bound = min(bound, left.largest_gain(first))
    if pinned_gains:
        missing, gains = bound - math.fsum(gains), [*pinned_gains, *gains]
        # From the sum as it is rounded in a selection, so that the best set is seen to be the best.
        bound = list(itertools.accumulate(gains))[-1] + missing
    return Selection.of([*constraints.pinned, *indices], gains, bound, remaining)


def _sparse_set(objective: Any, matrix: Any, context: State | None) -> LargeSet:
    """The set of the rows of a sparse matrix, after everything was checked."""
    coverage = native.compiled(objective) if isinstance(objective, SetFunction) else None
    if coverage is None or not native.is_available():
        raise InvalidInput(
            "items",
            message="A sparse matrix can be searched with a coverage function of dgn and the "
            "compiled kernels (dgn info shows them); pass items.toarray() instead.",
        )
    if len(matrix.shape) != 2 or 0 in matrix.shape:
        found = f"shape {matrix.shape}"
        raise InvalidInput("items", found=found, allowed="at least one item and one feature")
    rows = _rows_of(matrix)
    weights = None if coverage.weights is None else np.asarray(coverage.weights)
    if weights is not None and weights.size != rows.width:
        found = f"shape {weights.shape}"
        raise InvalidInput("weights", found=found, allowed=f"{rows.width} numbers")
    is_allowed = is_usual(objective, _range_of(rows, weights))
    if rows.numbers.any() and not is_allowed:
        raise InvalidInput(
            "items",
            message="A sparse matrix needs finite numbers of at least 0 (and at most 1 for "
            "ProbabilisticCoverage) that are neither tiny nor huge; so do the weights.",
        )
    if context is None:
        start = getattr(objective, "initial_level", 0.0)
        level = np.full(rows.width, start, rows.dtype)
    else:
        level = np.asarray(context.level, rows.dtype).reshape(-1)
        if context.maker != type(objective).__name__ or level.size != rows.width:
            found = f"a state of {context.maker} with {level.size} features"
            allowed = f"a state of {type(objective).__name__} with {rows.width} features"
            raise InvalidInput("context", found=found, allowed=allowed)
        check_range("context.level", level, ceiling=getattr(objective, "level_ceiling", math.inf))
    flat = None if weights is None else weights.reshape(-1)
    return LargeSet(native.Coverage(coverage.form, coverage.parameter, flat), rows, None, level)


def _rows_of(matrix: Any) -> SparseRows:
    """The rows of a matrix of any format, each with its columns in order and none twice."""
    if matrix.dtype.kind not in "biuf":
        found = f"dtype {matrix.dtype}"
        raise InvalidInput("items", found=found, allowed="a matrix of real numbers")
    if max(matrix.shape) >= 2**31:
        found = f"shape {matrix.shape}"
        raise InvalidInput("items", found=found, allowed="fewer than 2³¹ items and features")
    _check_structure(matrix)
    rows = matrix.tocsr()
    if not _is_canonical(rows.indices, rows.indptr):
        # A copy made of the arrays: the matrix remembers what its indices were like once.
        rows = type(rows)((rows.data, rows.indices, rows.indptr), shape=rows.shape, copy=True)
        rows.sum_duplicates()
    dtype = np.float32 if rows.dtype == np.float32 else np.float64
    count = int(rows.indptr[-1])
    return SparseRows(
        np.ascontiguousarray(rows.data[:count], dtype),
        np.ascontiguousarray(rows.indices[:count], np.int32),
        np.ascontiguousarray(rows.indptr, np.int64),
        rows.shape[1],
    )


def _check_structure(matrix: Any) -> None:
    """Raise InvalidInput unless the index arrays of a matrix fit its shape.

    Other formats (DIA, LIL, DOK) have no arrays that a conversion would trust.
    """
    items, width = matrix.shape
    wanted = 3 if matrix.format == "bsr" else 1
    if matrix.format in {"csr", "csc", "coo", "bsr"} and np.ndim(matrix.data) != wanted:
        found = f"shape {np.shape(matrix.data)}"
        raise InvalidInput("items.data", found=found, allowed=f"{wanted}-dimensional")
    if matrix.format == "coo":
        for name, places, end in (("row", matrix.row, items), ("col", matrix.col, width)):
            _check_places(name, places, end, np.size(matrix.data))
    elif matrix.format in {"csr", "csc", "bsr"}:
        major, minor = (width, items) if matrix.format == "csc" else (items, width)
        if matrix.format == "bsr":
            height, breadth = matrix.blocksize
            major, minor = major // height, minor // breadth
        start = np.asarray(matrix.indptr)
        if start.dtype.kind not in "iu" or start.shape != (major + 1,):
            found = f"shape {start.shape} and dtype {start.dtype}"
            raise InvalidInput("items.indptr", found=found, allowed=f"{major + 1} integers")
        if start[0] != 0 or (start[1:] < start[:-1]).any():
            raise InvalidInput(
                "items.indptr", found="another order", allowed="0 first, and never decreasing"
            )
        if start[-1] > len(matrix.data):
            raise InvalidInput(
                "items.indptr",
                found=f"{start[-1]} at its end",
                allowed=f"at most {len(matrix.data)}, the length of items.data",
            )
        _check_places("indices", matrix.indices, minor, len(matrix.data))


def _check_places(name: str, places: Any, end: int, count: int) -> None:
    """Raise InvalidInput unless these are `count` integers from 0 on, below `end`."""
    places = np.asarray(places)
    if places.dtype.kind not in "iu" or places.shape != (count,):
        found = f"shape {places.shape} and dtype {places.dtype}"
        allowed = f"{count} integers, one for each number of items.data"
        raise InvalidInput(f"items.{name}", found=found, allowed=allowed)
    if count and not (places.min() >= 0 and places.max() < end):
        wrong = places[(places < 0) | (places >= end)][0]
        raise InvalidInput(f"items.{name}", found=str(wrong), allowed=f"from 0 to {end - 1}")


def _is_canonical(columns: NDArray[Any], start: NDArray[Any]) -> bool:
    """Whether the columns of every row increase."""
    increases = np.ones(len(columns) + 1, np.bool_)
    np.greater(columns[1:], columns[:-1], out=increases[1:-1])
    increases[start] = True
    return bool(increases[: start[-1]].all())


def _range_of(rows: SparseRows, weights: Any) -> Range:
    weights = np.ones(1) if weights is None else np.asarray(weights, rows.dtype)
    is_bad = not (rows.numbers.min(initial=0) >= 0 and weights.min() >= 0)
    largest = float(rows.numbers.max(initial=0))
    lightest = weights[weights > 0].min(initial=np.inf)
    return Range(float(is_bad), largest, largest, float(lightest), float(weights.max()))
