"""Functions of pairs of items: the features are a matrix of all items against all items.

    GraphCut(redundancy)   similarities: items that are like many others, and unlike each other
    DisparitySum()         distances: items that are far from each other on average
    DisparityMin()         distances: no two items are close to each other

Column j of the features belongs to item j, [batch, items, columns]; there may be more columns than
items. The rows and columns of padding are 0. `check_matrix` and the access to
columns are shared with the log-determinant (determinant.py).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

from dgn.core.arrays import Array, Bool, Float, cast_like, device_of, is_array, namespace
from dgn.core.functions.base import Items, SetFunction, State, check_maker, check_range
from dgn.core.functions.weighted import context_level
from dgn.core.numerics import row_sum
from dgn.errors import InvalidInput

_ROUNDING = 1000
"""A matrix may differ from its transpose by so many times the rounding of its largest number."""


class _PairSum(SetFunction):
    """f(A) = reach · Σ_{i∈V, a∈A} m_ia + pair · Σ_{a,b∈A} m_ab, for a symmetric matrix m ≥ 0.

    The value of a soft set is the expected value if each item is present independently. The level
    is Σ_a s_a m_aj for every column j, and the value in one more column.
    """

    @abstractmethod
    def _coefficients(self, like: Array) -> tuple[float, Array]:
        """reach, and pair as a number or [batch, 1]."""

    @final
    def empty(self, items: Items, context: State | None = None) -> State:
        return _pair_state(self, items, context, 0.0)

    @final
    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        return state.outside * self._slopes(items, state)

    @final
    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        xp = namespace(items.features)
        _, pair = self._coefficients(items.features)
        joining = state.outside * member
        pulled = (joining[:, None, :] @ items.features)[:, 0, :]
        # Two items that join at once are a pair as well.
        among = at_items(pulled, items) - joining * own_entries(items)
        added = row_sum(joining * (self._slopes(items, state) + pair * among))
        level = state.level + xp.concat([pulled, added[:, None]], axis=1)
        return State(level, state.outside * (1 - member), maker=state.maker)

    @final
    def value(self, state: State) -> Float[Array, " batch"]:
        return state.level[:, -1]

    def _slopes(self, items: Items, state: State) -> Float[Array, "batch items"]:
        """What each item would add if nothing of it were in the set."""
        reach, pair = self._coefficients(items.features)
        own = own_entries(items)
        with_others = at_items(state.level, items) - (1 - state.outside) * own
        slopes = pair * (own + 2 * with_others)
        return slopes + reach * row_sum(items.features) if reach else slopes


@final
@dataclass(frozen=True, eq=False)
class GraphCut(_PairSum):
    """f(A) = Σ_{i∈V, a∈A} s_ia − redundancy · Σ_{a,b∈A} s_ab, for similarities s ≥ 0.

    Choose it for representatives that should also differ from each other: what an item is worth is
    how similar it is to all items, less what it shares with the selected ones. In contrast to
    FacilityLocation, many similar items count together, so that dense regions come first. It is
    submodular, and monotone for a redundancy of at most ½. With 1 it is the cut between A and the
    other items. A soft set is worth what it is worth on average if items are drawn independently.

    Args:
        redundancy: At least 0; a number, or an array [batch].

    Examples:
        >>> import numpy as np
        >>> from dgn.core.search import greedy
        >>> similarity = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.2]])
        >>> greedy(GraphCut(0.5), similarity, k=2).indices
        (0, 2)
    """

    redundancy: Any = 0.5

    @property
    def monotone(self) -> bool | None:
        high = self.redundancy.max().item() if is_array(self.redundancy) else self.redundancy
        return high <= 0.5

    @property
    def information_submodular(self) -> bool:
        return True  # it is modular: 2 · redundancy · Σ_{a∈A, q∈Q} s_aq

    def check(self, items: Items, context: State | None = None) -> None:
        redundancy = cast_like(self.redundancy, items.features)
        heaviest = check_range("redundancy", redundancy if redundancy.ndim else redundancy[None])
        largest = check_range("features", items.features)
        _check_size(items, largest, 1 + 2 * heaviest)
        check_matrix(items, context, self)

    def of_set(self, row: int) -> GraphCut:
        if getattr(self.redundancy, "ndim", 0) != 1 or self.redundancy.shape[0] == 1:
            return self
        return replace(self, redundancy=self.redundancy[row : row + 1])

    def _coefficients(self, like: Array) -> tuple[float, Array]:
        redundancy = cast_like(self.redundancy, like)
        return 1.0, -(redundancy[:, None] if redundancy.ndim else redundancy)


@final
@dataclass(frozen=True, eq=False)
class DisparitySum(_PairSum):
    """f(A) = Σ_{a<b∈A} d_ab, the sum of the distances between selected items.

    Choose it for variety alone, where outliers are welcome; mix it with a coverage function to keep
    to what is typical. It is monotone and **not** submodular: the gain of an item grows with the
    set. `greedy` reaches at least ½ of the best value if the distances satisfy the triangle
    inequality (Borodin et al., 2012); its certificate proves nothing.
    """

    @property
    def monotone(self) -> bool | None:
        return True

    @property
    def submodular(self) -> bool:
        return False

    def check(self, items: Items, context: State | None = None) -> None:
        _check_distances(self, items, context)

    def _coefficients(self, like: Array) -> tuple[float, Array]:
        del like
        return 0.0, 0.5


@final
@dataclass(frozen=True, eq=False)
class DisparityMin(SetFunction):
    """f(A) = min_{a<b∈A} d_ab, the smallest distance between selected items; 0 for one item.

    Choose it for items that are spread evenly over everything there is, without two alike. It is
    neither monotone nor submodular. `greedy` selects each time the item that is farthest from the
    selected ones, and reaches at least ½ of the best value if the distances satisfy the triangle
    inequality (Gonzalez, 1985; Ravi et al., 1994); its certificate proves nothing. All gains of
    the first step are 0, so that the search starts with the first item, or with `pinned`.

    In a soft set, an item that is present to the degree s is farther away from all others by
    (1 − s) times the largest distance.
    """

    @property
    def monotone(self) -> bool | None:
        return False

    @property
    def submodular(self) -> bool:
        return False

    def empty(self, items: Items, context: State | None = None) -> State:
        return _pair_state(self, items, context, _unset(items.features))

    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        xp, unset = namespace(items.features), _unset(items.features)
        nearest, value = at_items(state.level, items), state.level[:, -1:]
        second = xp.where(nearest < unset, nearest, xp.zeros_like(nearest))
        further = xp.minimum(nearest, value) - value
        gains = xp.where(value < unset, further, second)
        return xp.where(items.mask & (state.outside > 0), gains, xp.zeros_like(gains))

    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        xp, unset = namespace(items.features), _unset(items.features)
        outside = state.outside * (1 - member)
        absent = (outside * xp.max(items.features, axis=(1, 2))[:, None])[..., None]
        none = xp.full_like(items.features, unset)
        others = (outside < 1)[..., None] & ~_own_column(items)
        apart = xp.where(others, items.features + absent, none)
        index = xp.broadcast_to(items.numbers[:, None, :], (items.batch, items.size, items.size))
        pairs = xp.take_along_axis(apart, index, axis=2) + absent[:, None, :, 0]
        pairs = xp.where((outside < 1)[:, None, :], pairs, none[..., :1])
        before = at_items(state.level, items) + absent[..., 0]
        before = xp.where(outside < 1, before, none[..., 0])
        closest = xp.minimum(xp.min(pairs, axis=(1, 2)), xp.min(before, axis=1))
        found = xp.concat([xp.min(apart, axis=1), closest[:, None]], axis=1)
        return State(xp.minimum(state.level, found), outside, maker=state.maker)

    def value(self, state: State) -> Float[Array, " batch"]:
        xp, value = namespace(state.level), state.level[:, -1]
        return xp.where(value < _unset(value), value, xp.zeros_like(value))

    def check(self, items: Items, context: State | None = None) -> None:
        _check_distances(self, items, context)


def at_items(columns: Float[Array, "batch columns"], items: Items) -> Float[Array, "batch items"]:
    """The numbers in the columns of the items."""
    return namespace(columns).take_along_axis(columns, items.numbers, axis=1)


def own_entries(items: Items) -> Float[Array, "batch items"]:
    """The diagonal: the feature of each item in its own column."""
    xp = namespace(items.features)
    return xp.take_along_axis(items.features, items.numbers[..., None], axis=2)[..., 0]


def check_matrix(items: Items, context: State | None, objective: SetFunction) -> None:
    """Raise InvalidInput unless the features are a symmetric matrix of all items."""
    xp, features = namespace(items.features), items.features
    if features.shape[2] < items.size:
        raise InvalidInput(
            "features",
            message=f"features has {features.shape[2]} columns for {items.size} items; "
            f"{type(objective).__name__} needs a matrix with one column for each item.",
        )
    index = xp.broadcast_to(items.numbers[:, None, :], (items.batch, items.size, items.size))
    block = xp.take_along_axis(features, index, axis=2)
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


def _pair_state(f: SetFunction, items: Items, context: State | None, fill: float) -> State:
    features, width = items.features, items.features.shape[2] + 1
    xp, device = namespace(features), device_of(features)
    if context is None:
        level = xp.full((items.batch, width), fill, dtype=features.dtype, device=device)
    else:
        check_maker(context, type(f).__name__)
        level = context_level(context, items, width)
    outside = xp.ones((items.batch, items.size), dtype=features.dtype, device=device)
    return State(level, outside, maker=type(f).__name__)


def _own_column(items: Items) -> Bool[Array, "batch items columns"]:
    xp, columns = namespace(items.features), items.features.shape[2]
    return xp.arange(columns, device=device_of(items.features)) == items.numbers[..., None]


def _unset(like: Array) -> float:
    """Stands for the distance to an empty set; an infinity would make gradients NaN."""
    return float(namespace(like).finfo(like.dtype).max) / 4


def _check_distances(f: SetFunction, items: Items, context: State | None) -> None:
    largest = check_range("features", items.features)
    _check_size(items, largest, 4.0)
    check_matrix(items, context, f)
    own = own_entries(items).max().item()
    if own > 0:
        raise InvalidInput(
            "features",
            found=f"{own:g} on the diagonal",
            allowed="distances, which are 0 between an item and itself",
        )


def _check_size(items: Items, largest: float, factor: float) -> None:
    """Raise InvalidInput if sums over all pairs leave the range of the dtype."""
    limits = namespace(items.features).finfo(items.features.dtype)
    least = float(limits.smallest_normal) / float(limits.eps)
    count = items.features.shape[2] + 1
    if factor * count * count * largest > float(limits.max) or 0 < largest < least:
        size = "large" if largest > 1 else "small"
        raise InvalidInput(
            "features",
            message=f"features contains {largest:g}, which is too {size} for sums over all pairs "
            f"in {items.features.dtype}; scale the features, or use a wider dtype.",
        )
