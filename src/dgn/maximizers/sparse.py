"""Searches of one set whose features are a SciPy sparse matrix; they need the compiled kernels."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from dgn import kernels
from dgn.errors import InvalidInput
from dgn.kernels import LargeSet, Range, SparseRows
from dgn.maximizers.selection import Certificate, Selection, largest_sum
from dgn.objectives import SetFunction, State


def is_sparse(items: Any) -> bool:
    """Whether this is a SciPy sparse matrix or array."""
    return hasattr(items, "tocsr") and hasattr(items, "nnz")


def sparse_set(objective: Any, matrix: Any, context: State | None) -> LargeSet:
    """The set of the rows of a sparse matrix, after everything was checked."""
    coverage = objective.compiled() if isinstance(objective, SetFunction) else None
    if coverage is None or not kernels.is_available():
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
    is_allowed = objective.surely_allows(_range_of(rows, weights), (1, *rows.shape))
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
    flat = None if weights is None else weights.reshape(-1)
    return LargeSet(kernels.Coverage(coverage.form, coverage.parameter, flat), rows, None, level)


def search_samples(
    large: LargeSet, k: int, seed: int, epsilon: float, stop_share: float
) -> Selection:
    """Stochastic greedy; see `stochastic_greedy`."""
    remaining = np.arange(len(large))
    sample_size = math.ceil(len(large) / k * math.log(1 / epsilon))
    random = np.random.default_rng(seed)
    indices: list[int] = []
    gains: list[float] = []
    while len(indices) < k and len(remaining):
        size = min(sample_size, len(remaining))
        places = np.sort(random.choice(len(remaining), size, replace=False, shuffle=False))
        found = large.gains(remaining[places])
        best = int(found.argmax())
        if gains and found[best] < found.dtype.type(stop_share) * found.dtype.type(gains[0]):
            break
        index = int(remaining[places[best]])
        indices.append(index)
        gains.append(found[best].item())
        large = large.raised(index)
        remaining = np.delete(remaining, places[best])
    left = large.gains()
    left[indices] = 0
    values = tuple(itertools.accumulate(gains))
    bound = values[-1] + largest_sum(left[None, :], k)[0].item()
    certificate = Certificate(values[-1], max(values[-1], bound))
    return Selection(tuple(indices), tuple(gains), values, certificate)


def _rows_of(matrix: Any) -> SparseRows:
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if max(rows.shape) >= 2**31:
        raise InvalidInput("items", found=f"shape {rows.shape}", allowed="fewer than 2³¹ features")
    dtype = np.float32 if rows.dtype == np.float32 else np.float64
    return SparseRows(
        np.ascontiguousarray(rows.data, dtype),
        np.ascontiguousarray(rows.indices, np.int32),
        np.ascontiguousarray(rows.indptr, np.int64),
        rows.shape[1],
    )


def _range_of(rows: SparseRows, weights: Any) -> Range:
    weights = np.ones(1) if weights is None else np.asarray(weights, rows.dtype)
    is_bad = not (rows.numbers.min(initial=0) >= 0 and weights.min() >= 0)
    largest = float(rows.numbers.max(initial=0))
    lightest = weights[weights > 0].min(initial=np.inf)
    return Range(float(is_bad), largest, largest, float(lightest), float(weights.max()))
