"""The contract of a set function, and the base class of sums over features.

items = Items(features)               # a ground set, or a padded batch of them
f = FeatureCoverage(weights)          # what a set of items is worth
state = f.add(items, f.empty(items), member)
f.gains(items, state)                 # what each further item would add
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from dgn.core.arrays import (
    Array,
    Float,
    cast_like,
    device_of,
    is_array,
    namespace,
    requires_gradient,
)
from dgn.core.items import Items, State
from dgn.core.numerics import row_dot, row_sum
from dgn.errors import InvalidInput

_LEAST_USUAL = 1e-6
"""Features and weights that are not below it need no further check."""


class SetFunction(ABC):
    """A monotone submodular function f of a set of items with f(∅) = 0.

    Derive from it for a function of your own; for sums over features, WeightedCoverage already has
    most of the work done. Four methods are enough for every search and for the unfolded network:

        state = f.empty(items)                # the empty set, or what a context already covers
        gains = f.gains(items, state)         # f(v | A) for every item v
        state = f.add(items, state, member)   # a one-hot selection, or a soft one
        value = f.value(state)                # f(A)

    A set function is a frozen value object without trainable parameters: a torch module that has
    parameters builds one, and gradients flow through it. Memberships lie in [0, 1]. The union of
    a soft set s with an item v sets s_v to 1, so that an item in the set has no gain.

    The other methods are optional. They have defaults that fit any function.
    """

    @abstractmethod
    def empty(self, items: Items, context: State | None = None) -> State:
        """The state of the empty set; with a context, f(· | context) is searched instead.

        Args:
            items: The ground sets.
            context: A state that may come from other items: only its level is used.
        """

    @abstractmethod
    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        """f(v | A) of every item, [batch, items]; 0 for padding and for items in the set."""

    @abstractmethod
    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        """The state of the union with `member`, [batch, items] in [0, 1]."""

    @abstractmethod
    def value(self, state: State) -> Float[Array, " batch"]:
        """f(A) of every set, [batch]."""

    @property
    def monotone(self) -> bool | None:
        """Whether it is known that no item ever has a negative gain.

        The certificate of a search is true only then. True if the function guarantees it. None,
        the default, if it is not known: a search then checks it on small sets, and refuses the
        first negative gain that it meets. A function that returns False is refused.
        """
        return None

    def contributions(self, items: Items, state: State) -> Float[Array, "batch items width"]:
        """The gains, feature by feature; they sum to `gains` over the last axis.

        By default a function has a single feature, the gain itself.
        """
        return self.gains(items, state)[..., None]

    def check(self, items: Items, context: State | None = None) -> None:  # noqa: B027
        """Raise InvalidInput unless the items, the context and the weights are allowed."""

    def extent(self, items: Items) -> tuple[Array, Array] | None:
        """From what to what the values of sets reach, in float64; None if it is not known.

        A search refuses values that the dtype of the features cannot hold.

        Returns:
            Two arrays of shape [batch]: a lower bound of the best value of a single item, which
            is NaN where no item has a value, and an upper bound of the sum of all values.
        """
        del items
        return None

    def coverage(self, state: State) -> tuple[Array, Array] | None:
        """How far each feature is covered, and how much each feature counts.

        Returns:
            Two arrays of shape [batch, features]: shares from 0 to 1, and non-negative weights
            (0 for features that do not count). None if the function does not define coverage.
        """
        del state
        return None

    def counted(self) -> SetFunction:
        """The same function of those features alone that count in `coverage`.

        A function that does not define coverage is returned as it is.
        """
        return self

    def of_set(self, row: int) -> SetFunction:
        """The function of one set of the batch, with copies of that set's own weights."""
        del row
        return self


@dataclass(frozen=True, eq=False)
class WeightedCoverage(SetFunction):
    """f(A) = Σ_u weight_u · coverage_u(A), where a subclass defines coverage_u.

    Derive from it if your function is such a sum; derive from SetFunction otherwise.

    Args:
        weights: At least 0; [features] if all sets of a batch share them, [batch, features] for
            one row per set. Without weights, every feature weighs 1.
    """

    weights: Array = None

    initial_level: ClassVar[float] = 0.0
    feature_ceiling: ClassVar[float] = math.inf
    feature_hint: ClassVar[str] = ""
    level_ceiling: ClassVar[float] = math.inf
    adds_up: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        if not is_array(self.weights):
            object.__setattr__(self, "weights", as_array("weights", self.weights))
        dtype = self.weights.dtype
        if isinstance(dtype, np.dtype) and dtype.kind not in "fiub":
            raise InvalidInput("weights", found=f"dtype {dtype}", allowed="real numbers")

    @abstractmethod
    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        """coverage_u at this level."""

    @abstractmethod
    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        """How much each item increases coverage_u."""

    @abstractmethod
    def highest(self, best: Float[Array, "batch features"], items: int) -> Array:
        """coverage_u of all items together, at most, if none has more of u than `best`."""

    @abstractmethod
    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        """The level after `joining`, the part of each item that was outside, joined the set."""

    @final
    def empty(self, items: Items, context: State | None = None) -> State:
        features = items.features
        xp, device = namespace(features), device_of(features)
        self._check_weights_fit(items)
        if context is None:
            shape = (items.batch, features.shape[2])
            level = xp.full(shape, self.initial_level, dtype=features.dtype, device=device)
        else:
            check_maker(context, type(self).__name__)
            level = context_level(context, items)
        outside = xp.ones((items.batch, items.size), dtype=features.dtype, device=device)
        return State(level, outside, maker=type(self).__name__)

    @final
    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        increases = self.increases(items, state)
        xp = namespace(increases)
        if self.weights is None:
            return row_sum(increases)
        weights = self._weights_by_item(items)
        if requires_gradient(increases):
            # Ten times as fast with its gradient; soft gains do not decide between items.
            if weights.ndim == 1:
                return xp.matmul(increases, weights)
            return xp.matmul(increases, weights[:, 0, :, None])[..., 0]
        return row_dot(increases, weights)

    @final
    def contributions(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        increases = self.increases(items, state)
        return increases if self.weights is None else increases * self._weights_by_item(items)

    @final
    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        level = self.raised(items, state, state.outside * member)
        return State(level, state.outside * (1 - member), maker=state.maker)

    @final
    def value(self, state: State) -> Float[Array, " batch"]:
        covered = self.covered(state.level)
        if self.weights is None:
            return row_sum(covered)
        return row_dot(covered, cast_like(self.weights, covered))

    @final
    def check(self, items: Items, context: State | None = None) -> None:
        largest = check_range(
            "features", items.features, ceiling=self.feature_ceiling, hint=self.feature_hint
        )
        if self.adds_up:
            _check_sum(largest, items.features)
        lightest = heaviest = 1.0
        if self.weights is not None:
            self._check_weights_fit(items)
            weights = cast_like(self.weights, items.features)
            heaviest = check_range("weights", weights)
            lightest = weights.min().item()
        if not self._is_in_range(items, largest, lightest, heaviest):
            check_extent(lambda: self.extent(items), items.features)
        if context is not None:
            check_maker(context, type(self).__name__)
            given = check_range("context", context.level, ceiling=self.level_ceiling)
            if self.adds_up:
                _check_sum(largest, items.features, given)
            self.check_precision(items, context, largest)

    @final
    def surely_allows(
        self,
        *,
        least: float,
        largest: float,
        lightest: float,
        heaviest: float,
    ) -> bool:
        """Whether `check` would accept non-negative items, judged by the range of their numbers.

        Args:
            least: The smallest, over sets, of the largest feature whose weight is not 0.
            largest: The largest feature.
            lightest: The smallest weight that is not 0.
            heaviest: The largest weight.
        """
        return (
            largest <= self.feature_ceiling
            and least >= _LEAST_USUAL
            and self._is_usual(largest, lightest, heaviest)
        )

    def _is_in_range(self, items: Items, largest: float, lightest: float, heaviest: float) -> bool:
        """Whether all values are surely in the range of the dtype; `extent` is exact and slow."""
        least = largest
        if items.batch > 1:  # the set with the smallest features decides whether they are too small
            by_set = namespace(items.features).max(items.features, axis=(1, 2))
            least = min((one for one in by_set.tolist() if one > 0), default=largest)
        if self._is_usual(largest, lightest, heaviest) and least >= _LEAST_USUAL:
            return True
        limits = namespace(items.features).finfo(items.features.dtype)
        size, width = items.features.shape[1:]
        with np.errstate(all="ignore"):
            low = self.highest(np.array([[least]]), 1).item()
            high = self.highest(np.array([[largest]]), size).item()
        return lightest * low >= float(limits.smallest_normal) / float(limits.eps) and (
            size + 1
        ) * width * heaviest * high <= float(limits.max)

    def _is_usual(self, largest: float, lightest: float, heaviest: float) -> bool:
        """Whether the numbers are of a size that no dtype has trouble with; this costs little."""
        return 1e-6 <= largest <= 1e6 and lightest >= 1e-6 and heaviest <= 1e6

    def check_precision(self, items: Items, context: State, largest: float) -> None:
        """Raise InvalidInput if the dtype loses what items of this size add to the context."""

    @final
    def extent(self, items: Items) -> tuple[Array, Array] | None:
        xp = namespace(items.features)
        best = xp.astype(xp.max(items.features, axis=1), xp.float64)
        weights = xp.ones_like(best[:1]) if self.weights is None else cast_like(self.weights, best)
        alone = weights * self.highest(best, 1)
        together = weights * self.highest(best, items.size)
        has_value = (best > 0) & (weights > 0)
        reached = xp.max(xp.where(has_value, alone, -xp.inf), axis=1)
        reached = xp.where(xp.any(has_value, axis=1), reached, xp.nan)
        return reached, (items.size + 1) * xp.sum(together, axis=1)

    @final
    def of_set(self, row: int) -> WeightedCoverage:
        by_set = {
            name: row_of(value, row)
            for name, value in vars(self).items()
            if name in {"weights", "target"}
        }
        return replace(self, **by_set)

    def _check_weights_fit(self, items: Items) -> None:
        if self.weights is None:
            return
        shape = tuple(cast_like(self.weights, items.features).shape)
        width = items.features.shape[2]
        # One row fits any batch: a search may look at one set in many states at once.
        if shape not in {(width,), (1, width), (items.batch, width)}:
            raise InvalidInput(
                "weights",
                found=f"shape {shape}",
                allowed=f"an array of shape ({width},) or ({items.batch}, {width}), to fit the "
                "features",
            )

    def _weights_by_item(self, items: Items) -> Float[Array, "... features"]:
        weights = cast_like(self.weights, items.features)
        return weights if weights.ndim == 1 else weights[:, None, :]


def as_array(name: str, values: Any) -> Array:
    """Numbers in a list as a NumPy array."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(name, found=f"{values!r:.40}", allowed="an array of numbers") from None


def _check_sum(largest: float, features: Array, given: float = 0.0) -> None:
    """Raise InvalidInput if the features of a set could add up beyond the range of their dtype.

    Args:
        largest: The largest feature.
        features: The features.
        given: The largest level of a context, to which they are added.
    """
    items, most = features.shape[1], float(namespace(features).finfo(features.dtype).max)
    if largest * items + given > most:
        raise InvalidInput(
            "features",
            message=f"features contains {largest:g}; {items} items of this size may add up to "
            f"more than {features.dtype} can hold. Scale the features to at most "
            f"{most / items:g}, or use a wider dtype.",
        )


def row_of(values: Array, row: int) -> Array:
    """A copy of one row of [batch, features]; shared values, and none at all, stay as they are."""
    if getattr(values, "ndim", 1) != 2 or values.shape[0] == 1:
        return values
    return namespace(values).asarray(values[row : row + 1], copy=True)


def context_level(context: State, items: Items, width: int | None = None) -> Array:
    """The level of a context for every set of the batch; by default, it has as many features."""
    level = cast_like(context.level, items.features)
    batch, width = items.batch, items.features.shape[2] if width is None else width
    if level.shape[-1] != width or level.shape[0] not in {1, batch}:
        raise InvalidInput(
            "context",
            found=f"a level of shape {tuple(level.shape)}",
            allowed=f"a state with a level of shape ({batch}, {width}), or (1, {width}) for all "
            "sets",
        )
    return namespace(level).broadcast_to(level, (batch, *level.shape[1:]))


def check_extent(extent: Callable[[], tuple[Array, Array] | None], features: Array) -> None:
    """Raise InvalidInput if values of sets are too large or too small for the dtype."""
    with np.errstate(all="ignore"):
        found = extent()
    if found is None:
        return
    xp, dtype = namespace(features), features.dtype
    limits = xp.finfo(dtype)
    reached, highest = found
    # Below this, the smallest differences between values are lost.
    least = float(limits.smallest_normal) / float(limits.eps)
    for wrong, size in ((~(highest <= float(limits.max)), "large"), (reached < least, "small")):
        if bool(xp.any(wrong)):
            row = int(xp.nonzero(wrong)[0][0])
            raise InvalidInput(
                "features",
                message=f"The values of set {row} are too {size} for {dtype}; scale the features "
                "or the weights, or use a wider dtype.",
            )


def check_range(
    argument: str, values: Array, *, ceiling: float = math.inf, hint: str = ""
) -> float:
    """Raise InvalidInput unless all values are finite, at least 0 and at most `ceiling`.

    Args:
        argument: What the message names.
        values: The values.
        ceiling: The largest value that is allowed.
        hint: A sentence that the message ends with.

    Returns:
        The largest value.
    """
    # Methods of the array, because they cost less than functions, and sets are small.
    low, high = values.min().item(), values.max().item()
    if low >= 0 and high <= ceiling and high < math.inf:
        return high
    xp = namespace(values)
    bad = ~((values >= 0) & (values <= ceiling) & xp.isfinite(values))
    first = [int(axis[0]) for axis in xp.nonzero(bad)]
    value = values[tuple(first)].item()
    top = "" if ceiling == math.inf else f" and at most {ceiling:g}"
    found = f"{value:g} at {first}" + (f". {hint.rstrip('.')}" if hint else "")
    raise InvalidInput(argument, found=found, allowed=f"finite and at least 0{top} everywhere")


def check_maker(state: State, maker: str) -> None:
    """Raise InvalidInput if the state was made by another function."""
    if state.maker != maker:
        raise InvalidInput(
            "state",
            found=f"a state of {state.maker or 'another function'}",
            allowed=f"a state that {maker} made",
        )
