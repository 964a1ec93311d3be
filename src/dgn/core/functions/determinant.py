"""The log-determinant of a kernel: diversity as volume, and the mode of a determinantal process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dgn.core.arrays import Array, Float, device_of, namespace, requires_gradient
from dgn.core.functions.base import Items, SetFunction, State, check_maker
from dgn.core.functions.pairwise import check_matrix, own_entries
from dgn.core.functions.weighted import context_level
from dgn.core.numerics import row_sum
from dgn.errors import InvalidInput

_LARGEST_CHECKED = 2048
"""Kernels of at most so many items are checked to be positive semidefinite."""


@final
@dataclass(frozen=True, eq=False)
class LogDeterminant(SetFunction):
    """f(A) = log det(K_A + ridge · I), for a positive semidefinite kernel K of all items.

    Choose it for items that are different from each other in every direction, weighted by their
    quality: K_ab = quality_a · similarity_ab · quality_b. With a ridge of 1 it is the information
    that noisy observations of the selected items give about a Gaussian process with kernel K (for
    noise σ², pass K / σ²), which is monotone and submodular: `greedy` reaches 1 − 1/e. With a ridge
    of 0, `greedy` is the greedy MAP inference of a determinantal point process; f is submodular and
    not monotone there, `greedy` stops when no item makes the determinant larger, and
    `random_greedy` has a guarantee.

    A step costs O(items · selected) by an incremental Cholesky factorization (Chen et al., 2018).
    Where an item depends on the selected ones up to rounding, its pivot counts as the rounding of
    its diagonal entry, so that a gain is about −36 (in float64) and not −∞. The value of a soft set
    s is log det(I + diag(s) (K + ridge · I − I)) (Gillenwater et al., 2012). A kernel of at most
    2,048 items is refused if it has a negative eigenvalue; larger ones are not checked for that.

    Args:
        ridge: At least 0.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.search import greedy
        >>> kernel = np.array([[3.0, 2.9, 0.0], [2.9, 3.0, 0.0], [0.0, 0.0, 2.0]])
        >>> greedy(LogDeterminant(ridge=0), kernel, k=3).indices
        (0, 2)
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.ridge < np.inf:
            raise InvalidInput("ridge", found=f"{self.ridge}", allowed="finite and at least 0")

    @property
    def monotone(self) -> bool | None:
        return self.ridge >= 1

    # The matrix of what is left of the kernel, K + ridge · I − I − UᵀW, loses rank with every item.
    # A row of the level is a row of U, one of W, and what it adds to the value:
    # [batch, rows, 2 · columns + 1]. With all items in it, an item v that joins by δ adds
    # log((1 − δ) + δ · pivot_v), which does not cancel: pivots are kept, not pivots − 1.

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
            self._check_definite(items, largest)

    def _check_definite(self, items: Items, largest: float) -> None:
        xp = namespace(items.features)
        eye = xp.eye(items.size, dtype=items.features.dtype, device=device_of(items.features))
        rounding = 100 * items.size * float(xp.finfo(items.features.dtype).eps) * largest
        kernel = _block(items.features, items) / (largest or 1.0)
        try:
            xp.linalg.cholesky(kernel + (rounding / (largest or 1.0) or 1.0) * eye)
        except (np.linalg.LinAlgError, RuntimeError):  # torch's error is a RuntimeError
            raise InvalidInput(
                "features",
                message="The kernel has a negative eigenvalue; LogDeterminant needs a positive "
                "semidefinite matrix of all items, such as x @ x.T.",
            ) from None

    def _diagonal(self, items: Items) -> Float[Array, "batch items"]:
        return own_entries(items) + self.ridge

    def _factors(self, items: Items, state: State, steps: Array) -> Float[Array, "batch items"]:
        """What each item multiplies the determinant with if it joins by a step."""
        xp, columns = namespace(items.features), items.features.shape[2]
        diagonal = self._diagonal(items)
        index = items.numbers[:, None, :]
        index = xp.broadcast_to(index, (items.batch, state.level.shape[1], items.size))
        left = xp.take_along_axis(state.level[..., :columns], index, axis=2)
        right = xp.take_along_axis(state.level[..., columns:-1], index, axis=2)
        pivots = diagonal - xp.sum(left * right, axis=1)
        # Nothing of an item is in the set: its pivot is at least the ridge.
        pivots = xp.where(state.outside == 1, xp.clip(pivots, self.ridge, None), pivots)
        limits = xp.finfo(diagonal.dtype)
        floor = xp.clip(float(limits.eps) * diagonal, float(limits.smallest_normal), None)
        return xp.maximum((1 - steps) + steps * pivots, floor)

    def _rows(self, items: Items, level: Array, item: int) -> Float[Array, "batch columns"]:
        """The row of one item in what is left of the kernel."""
        xp, columns = namespace(level), items.features.shape[2]
        place = items.numbers[:, item]
        index = xp.broadcast_to(place[:, None, None], (items.batch, level.shape[1], 1))
        left = xp.take_along_axis(level[..., :columns], index, axis=2)
        own = xp.arange(columns, device=device_of(level)) == place[:, None]
        row = items.features[:, item, :] - xp.sum(left * level[..., columns:-1], axis=1)
        return row + xp.where(own, xp.full_like(row, self.ridge - 1), xp.zeros_like(row))

    def _joined_one_by_one(self, items: Items, state: State, joining: Array) -> Array:
        """One row of the level for every item that joins a set: the Cholesky factorization."""
        xp, level, outside = namespace(joining), state.level, state.outside
        diagonal = self._diagonal(items)
        # Pivots at the rounding of the diagonal are not known, and neither are their rows, which
        # the others show to be 0.
        known = diagonal * (16 * float(xp.finfo(diagonal.dtype).eps))
        some = xp.any(joining > 0, axis=0)
        for item in [place for place, is_one in enumerate(some.tolist()) if is_one]:
            step = joining[:, item]
            one = items.slice(item, item + 1)
            now = State(level, outside[:, item : item + 1])
            factor = self._factors(one, now, step[:, None])[:, 0]
            row = self._rows(items, level, item)
            is_known = (factor > known[:, item]) | (self.ridge > known[:, item])
            scaled = xp.where(is_known, step / factor, xp.zeros_like(step))[:, None] * row
            new = xp.concat([row, scaled, xp.log(factor)[:, None]], axis=1)
            level = xp.concat([level, new[:, None, :]], axis=1)
        return level

    def _joined_at_once(self, items: Items, state: State, joining: Array) -> Array:
        """The same for all items by one solution, which has a gradient at a membership of 0 too."""
        xp, level, columns = namespace(joining), state.level, items.features.shape[2]
        device = device_of(joining)
        index = xp.broadcast_to(
            items.numbers[:, None, :], (items.batch, level.shape[1], items.size)
        )
        left = xp.take_along_axis(level[..., :columns], index, axis=2)
        own = xp.arange(columns, device=device) == items.numbers[..., None]
        rows = items.features - xp.matrix_transpose(left) @ level[..., columns:-1]
        rows = rows + xp.where(own, xp.full_like(rows, self.ridge), xp.zeros_like(rows))
        eye = xp.eye(items.size, dtype=rows.dtype, device=device)
        # The rounding of the diagonal keeps an item that depends on others solvable.
        rounding = float(xp.finfo(rows.dtype).eps) * xp.max(self._diagonal(items), axis=1)
        block = _block(rows, items) + rounding[:, None, None] * eye
        system = (1 - joining)[..., None] * eye + joining[..., None] * block
        rows = rows - xp.astype(own, rows.dtype)
        solved = xp.linalg.solve(system, joining[..., None] * rows)
        _, added = xp.linalg.slogdet(system)
        first = xp.astype(xp.arange(items.size, device=device) == 0, rows.dtype)
        new = xp.concat([rows, solved, (first * added[:, None])[..., None]], axis=2)
        return xp.concat([level, new], axis=1)


def _block(rows: Array, items: Items) -> Float[Array, "batch items items"]:
    """The columns of the items themselves."""
    index = namespace(rows).broadcast_to(
        items.numbers[:, None, :], (items.batch, items.size, items.size)
    )
    return namespace(rows).take_along_axis(rows, index, axis=2)


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
