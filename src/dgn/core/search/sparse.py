"""SciPy sparse matrices as sets of items: their arrays are checked before a kernel reads them.

SciPy checks the indices of a matrix when it is made, and not when its arrays are changed later or
were made by another program. A kernel, and SciPy's own conversions, would read and write beyond
the end of an array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.functions import SetFunction, State
from dgn.core.functions.base import check_range
from dgn.core.native import LargeSet, Range, SparseRows
from dgn.core.search._checks import is_usual
from dgn.errors import InvalidInput


def is_sparse(items: Any) -> bool:
    """Whether this is a SciPy sparse matrix or array."""
    return hasattr(items, "tocsr") and hasattr(items, "nnz")


def sparse_set(objective: Any, matrix: Any, context: State | None) -> LargeSet:
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
    is_allowed = is_usual(objective, _range_of(rows, weights), (1, *rows.shape))
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
