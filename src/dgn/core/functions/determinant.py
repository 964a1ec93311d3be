"""The log-determinant of a kernel: diversity as volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dgn.core.arrays import Array, Float, device_of, namespace, requires_gradient
from dgn.core.functions.base import SetFunction, check_maker, context_level
from dgn.core.functions.graph_cut import block_of, check_matrix, diagonal_of
from dgn.core.items import Items, State
from dgn.core.numerics import row_sum
from dgn.errors import InvalidInput

_LARGEST_CHECKED = 2048
"""Kernels of at most so many items are checked to be positive semidefinite."""


@final
@dataclass(frozen=True, eq=False)
class LogDeterminant(SetFunction):
    """f(A) = log det(I + K_A), for a positive semidefinite kernel K of all items.

    Choose it for items that are different from each other in every direction, weighted by their
    quality: K_ab = quality_a · similarity_ab · quality_b. f is the information that noisy
    observations of the selected items give about a Gaussian process with kernel K (for noise σ²,
    pass K / σ²).

    A step costs O(items · selected) by an incremental Cholesky factorization (Chen et al., 2018).
    The value of a soft set s is log det(I + diag(s) K) (Gillenwater et al., 2012). A kernel of at
    most 2,048 items is refused if it has a negative eigenvalue; larger ones are not checked for
    that.

    Examples:
        >>> import numpy as np
        >>> from dgn import greedy
        >>> kernel = np.array([[3.0, 2.9, 0.0], [2.9, 3.0, 0.0], [0.0, 0.0, 2.0]])
        >>> greedy(LogDeterminant(), kernel, k=2).indices
        (0, 2)
    """

    @property
    def monotone(self) -> bool | None:
        return True

    # What is left of the kernel, K − UᵀW, loses rank with every item. A row of the level is a row
    # of U, one of W, and what it adds to the value: [batch, rows, 2 · columns + 1]. With all items
    # in it, an item v that joins by δ adds log((1 − δ) + δ · pivot_v), which does not cancel: the
    # pivots, 1 + the diagonal of what is left, are kept.

    def empty(self, items: Items, context: State | None = None) -> State:
        features, width = items.features, 2 * items.features.shape[2] + 1
        xp, device = namespace(features), device_of(features)
        if context is None:
            level = xp.zeros((items.batch, 0, width), dtype=features.dtype, device=device)
        else:
            check_maker(context, "LogDeterminant")
            level = context_level(context, items, width)
        outside = xp.ones((items.batch, items.size), dtype=features.dtype, device=device)
        return State(level, outside, maker="LogDeterminant")

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        xp, outside = namespace(items.features), state.outside
        factors = self._factors(items, state, outside)
        gains = xp.log(xp.where(items.mask, factors, xp.ones_like(factors)))
        return xp.where(outside > 0, gains, xp.zeros_like(gains))

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        xp = namespace(items.features)
        joining = xp.where(items.mask, state.outside * member, xp.zeros_like(member))
        outside = state.outside * (1 - member)
        if requires_gradient(joining) or requires_gradient(items.features):
            level = self._joined_at_once(items, state, joining)
        else:
            level = self._joined_one_by_one(items, state, joining)
        return State(_compact(level), outside, maker=state.maker)

    def value(self, state: State) -> Float[Array, " batch"]:
        return row_sum(state.level[..., -1])

    def check(self, items: Items, context: State | None = None) -> None:
        xp, features = namespace(items.features), items.features
        if not bool(xp.all(xp.isfinite(features))):
            raise InvalidInput("features", found="a NaN or an infinity", allowed="finite numbers")
        limits = xp.finfo(features.dtype)
        largest = xp.max(xp.abs(features)).item()
        least = float(limits.smallest_normal) / float(limits.eps)
        if largest * (1 + items.size) > float(limits.max) or 0 < largest < least:
            raise InvalidInput(
                "features",
                message=f"The largest entry of the kernel is {largest:g}, out of the range where "
                f"{features.dtype} is precise; scale the kernel, or use a wider dtype.",
            )
        check_matrix(items, context, self)
        if items.size <= _LARGEST_CHECKED:
            _check_definite(items, largest)

    def _factors(self, items: Items, state: State, steps: Array) -> Float[Array, "batch items"]:
        """What each item multiplies the determinant with if it joins by a step."""
        xp, columns = namespace(items.features), items.features.shape[2]
        left, right = state.level[..., :columns], state.level[..., columns:-1]
        explained = xp.sum(block_of(left, items) * block_of(right, items), axis=1)
        pivots = 1 + (diagonal_of(items) - explained)
        # Nothing of an item is in the set: its pivot is at least 1.
        pivots = xp.where(state.outside == 1, xp.clip(pivots, 1.0, None), pivots)
        floor = float(xp.finfo(pivots.dtype).eps) * (1 + diagonal_of(items))
        return xp.maximum((1 - steps) + steps * pivots, floor)

    def _joined_one_by_one(self, items: Items, state: State, joining: Array) -> Array:
        """One row of the level for every item that joins a set: the Cholesky factorization."""
        xp, level, columns = namespace(joining), state.level, items.features.shape[2]
        diagonal = 1 + diagonal_of(items)
        eps = float(xp.finfo(diagonal.dtype).eps)
        joins = xp.any(joining > 0, axis=0)
        for item in [place for place, is_joining in enumerate(joins.tolist()) if is_joining]:
            step = joining[:, item]
            left, right = level[..., :columns], level[..., columns:-1]
            explained = xp.sum(left[..., item : item + 1] * right, axis=1)
            row = items.features[:, item, :] - explained
            pivot = 1 + row[:, item]
            pivot = xp.where(state.outside[:, item] == 1, xp.clip(pivot, 1.0, None), pivot)
            factor = xp.maximum((1 - step) + step * pivot, eps * diagonal[:, item])
            # Of a pivot at the rounding of a huge diagonal, nothing is known, nor of its row.
            coarse = 16 * eps * diagonal[:, item]
            is_known = (factor > coarse) | (coarse < 1)
            scaled = xp.where(is_known, step / factor, xp.zeros_like(step))[:, None] * row
            new = xp.concat([row, scaled, xp.log(factor)[:, None]], axis=1)
            level = xp.concat([level, new[:, None, :]], axis=1)
        return level

    def _joined_at_once(self, items: Items, state: State, joining: Array) -> Array:
        """The same for all items by one solution, which has a gradient at a membership of 0 too."""
        xp, level, columns = namespace(joining), state.level, items.features.shape[2]
        device = device_of(joining)
        left = block_of(level[..., :columns], items)
        rows = items.features - xp.matrix_transpose(left) @ level[..., columns:-1]
        eye = xp.eye(items.size, dtype=rows.dtype, device=device)
        system = eye + joining[..., None] * block_of(rows, items)
        solved = xp.linalg.solve(system, joining[..., None] * rows)
        _, added = xp.linalg.slogdet(system)
        first = xp.astype(xp.arange(items.size, device=device) == 0, rows.dtype)
        new = xp.concat([rows, solved, (first * added[:, None])[..., None]], axis=2)
        return xp.concat([level, new], axis=1)


def _check_definite(items: Items, largest: float) -> None:
    xp = namespace(items.features)
    eye = xp.eye(items.size, dtype=items.features.dtype, device=device_of(items.features))
    rounding = 100 * items.size * float(xp.finfo(items.features.dtype).eps) * largest
    kernel = block_of(items.features, items) / (largest or 1.0)
    try:
        xp.linalg.cholesky(kernel + (rounding / (largest or 1.0) or 1.0) * eye)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's error is a RuntimeError
        raise InvalidInput(
            "features",
            message="The kernel has a negative eigenvalue; LogDeterminant needs a positive "
            "semidefinite matrix of all items, such as x @ x.T.",
        ) from None


def _compact(level: Float[Array, "batch rows width"]) -> Float[Array, "batch kept width"]:
    """At most one row for each column: with more rows, their product is kept instead."""
    xp, columns = namespace(level), (level.shape[2] - 1) // 2
    if level.shape[1] <= columns:
        return level
    eye = xp.eye(columns, dtype=level.dtype, device=device_of(level))
    product = xp.matrix_transpose(level[..., :columns]) @ level[..., columns:-1]
    value = xp.sum(level[..., -1], axis=1)[:, None] * (eye[0] if columns else 0)
    shape = (level.shape[0], columns, columns)
    return xp.concat([xp.broadcast_to(eye, shape), product, value[..., None]], axis=2)
