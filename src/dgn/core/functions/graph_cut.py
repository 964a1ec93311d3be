"""Graph cut: items that are similar to many others, and not to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions.base import SetFunction, check_maker, check_range, context_level
from dgn.core.items import Items, State
from dgn.core.numerics import row_sum
from dgn.errors import InvalidInput

_ROUNDING = 1000
"""A matrix may differ from its transpose by so many times the rounding of its largest number."""


@final
@dataclass(frozen=True, eq=False)
class GraphCut(SetFunction):
    """f(A) = Σ_{i∈V, a∈A} s_ia − redundancy · Σ_{a,b∈A} s_ab, for similarities s ≥ 0.

    Choose it for representatives that should also differ from each other: what an item is worth is
    how similar it is to all items, less what it shares with the selected ones. In contrast to
    FacilityLocation, many similar items count together, so that dense regions come first. A soft
    set is worth what it is worth on average if items are drawn independently.

    The features are a symmetric matrix of all items, [batch, items, columns]: column j belongs to
    item j, and the rows and columns of padding are 0.

    Args:
        redundancy: From 0 to ½; with more, the function is not monotone.

    Examples:
        >>> import numpy as np
        >>> from dgn import greedy
        >>> similarity = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.2]])
        >>> greedy(GraphCut(0.5), similarity, k=2).indices
        (0, 2)
    """

    redundancy: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.redundancy <= 0.5:
            raise InvalidInput(
                "redundancy",
                found=f"{self.redundancy}",
                allowed="from 0 to 0.5, where graph cut is monotone",
            )

    @property
    def monotone(self) -> bool | None:
        return True

    # The level is Σ_a s_a m_aj for every column j, and the value in one more column.

    def empty(self, items: Items, context: State | None = None) -> State:
        features, width = items.features, items.features.shape[2] + 1
        xp, device = namespace(features), device_of(features)
        if context is None:
            level = xp.zeros((items.batch, width), dtype=features.dtype, device=device)
        else:
            check_maker(context, "GraphCut")
            level = context_level(context, items, width)
        outside = xp.ones((items.batch, items.size), dtype=features.dtype, device=device)
        return State(level, outside, maker="GraphCut")

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        return state.outside * self._slopes(items, state)

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        xp = namespace(items.features)
        joining = state.outside * member
        pulled = (joining[:, None, :] @ items.features)[:, 0, :]
        # Two items that join at once are a pair as well.
        among = pulled[:, : items.size] - joining * diagonal_of(items)
        added = row_sum(joining * (self._slopes(items, state) - self.redundancy * among))
        level = state.level + xp.concat([pulled, added[:, None]], axis=1)
        return State(level, state.outside * (1 - member), maker=state.maker)

    def value(self, state: State) -> Float[Array, " batch"]:
        return state.level[:, -1]

    def check(self, items: Items, context: State | None = None) -> None:
        largest = check_range(
            "features", items.features, hint="GraphCut needs similarities, such as cosines above 0."
        )
        limits = namespace(items.features).finfo(items.features.dtype)
        least = float(limits.smallest_normal) / float(limits.eps)
        count = items.features.shape[2] + 1
        if 2 * count * count * largest > float(limits.max) or 0 < largest < least:
            size = "large" if largest > 1 else "small"
            raise InvalidInput(
                "features",
                message=f"features contains {largest:g}, which is too {size} for sums over all "
                f"pairs in {items.features.dtype}; scale the features, or use a wider dtype.",
            )
        check_matrix(items, context, self)

    def _slopes(self, items: Items, state: State) -> Float[Array, "batch items"]:
        """What each item would add if nothing of it were in the set."""
        own = diagonal_of(items)
        with_others = state.level[:, : items.size] - (1 - state.outside) * own
        return row_sum(items.features) - self.redundancy * (own + 2 * with_others)


def diagonal_of(items: Items) -> Float[Array, "batch items"]:
    """The feature of each item in its own column."""
    xp, index = namespace(items.features), _columns(items)
    return xp.take_along_axis(items.features, index[:, :, None], axis=2)[..., 0]


def block_of(rows: Array, items: Items) -> Float[Array, "batch rows items"]:
    """The columns of the items themselves, without those that further columns have."""
    return rows[..., : items.size]


def check_matrix(items: Items, context: State | None, objective: SetFunction) -> None:
    """Raise InvalidInput unless the features are a symmetric matrix of all items."""
    xp, features = namespace(items.features), items.features
    if features.shape[2] < items.size:
        raise InvalidInput(
            "features",
            message=f"features has {features.shape[2]} columns for {items.size} items; "
            f"{type(objective).__name__} needs a matrix with one column for each item.",
        )
    block = block_of(features, items)
    most = _ROUNDING * float(xp.finfo(features.dtype).eps) * xp.max(xp.abs(features)).item()
    different = xp.abs(block - xp.matrix_transpose(block)) > most
    if bool(xp.any(different)):
        row, first, second = (int(axis[0]) for axis in xp.nonzero(different))
        raise InvalidInput(
            "features",
            message=f"features of set {row} contains {block[row, first, second].item():g} at "
            f"[{first}, {second}] and {block[row, second, first].item():g} at [{second}, "
            f"{first}]; {type(objective).__name__} needs a symmetric matrix of all items, with 0 "
            "in the rows and columns of padding.",
        )
    if context is not None:
        check_maker(context, type(objective).__name__)


def _columns(items: Items) -> Array:
    xp = namespace(items.features)
    index = xp.arange(items.size, device=device_of(items.features))
    return xp.broadcast_to(index[None, :], (items.batch, items.size))
