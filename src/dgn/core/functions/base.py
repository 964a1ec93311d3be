"""The contract of a set function, and the two types that it works on: items and states.

items = Items(features)               # a ground set, or a padded batch of them
f = FeatureCoverage(weights)          # what a set of items is worth
state = f.add(items, f.empty(items), member)
f.gains(items, state)                 # what each further item would add
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from dgn.core.arrays import Array, Float, device_of, is_array, namespace
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Items:
    """A batch of ground sets, padded to the same length.

    Whatever the padding contains is replaced by zeros, so that it cannot change a result.

    Args:
        features: What each item offers, feature by feature: [batch, items, features], or
            [items, features] for a single set.
        mask: [batch, items], True for real items and False for padding. Without a mask, every
            item is real.

    Attributes:
        single: Whether the features were given as one set, without a batch axis. Maximizers then
            return one `Selection` instead of `Selections`.
        has_padding: False if it is known that every item is real.
        places: [batch, items], the number of each item in the set that it is a part of, or None
            for a whole set. A function of pairs of items finds the column of an item by it.
    """

    features: Array
    mask: Array = None
    single: bool = field(init=False, default=False)
    has_padding: bool = field(init=False, default=True)
    places: Array = field(init=False, default=None)

    def __post_init__(self) -> None:
        features = _as_batch("features", self.features, dimensions=3)
        xp = namespace(features)
        kind = getattr(features.dtype, "kind", None)  # NumPy's own name for it, which is faster
        if kind != "f" and not xp.isdtype(features.dtype, "real floating"):
            raise InvalidInput(
                "features",
                found=f"dtype {features.dtype}",
                allowed="an array with a floating-point dtype",
            )
        if 0 in features.shape:
            raise InvalidInput(
                "features",
                message=f"features has the shape {tuple(features.shape)}; it needs at least one "
                "set, one item and one feature.",
            )
        if self.mask is None:
            mask = xp.ones(features.shape[:2], dtype=xp.bool, device=device_of(features))
            object.__setattr__(self, "has_padding", False)
        else:
            mask = _as_batch("mask", self.mask, dimensions=2)
            _check_mask(mask, features)
            features = xp.where(mask[..., None], features, xp.zeros_like(features))
        object.__setattr__(self, "single", self.features.ndim == 2)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "mask", mask)

    @property
    def batch(self) -> int:
        """The number of ground sets."""
        return self.features.shape[0]

    @property
    def size(self) -> int:
        """The number of items per set, padding included."""
        return self.features.shape[1]

    @property
    def numbers(self) -> Array:
        """The number of each item in the whole set, [batch, items], also where `places` is None."""
        if self.places is not None:
            return self.places
        xp, shape = namespace(self.features), (self.batch, self.size)
        return xp.broadcast_to(xp.arange(self.size, device=device_of(self.features)), shape)

    def widened(self) -> Items:
        """The same items, in float32 if they have half precision, in which sums are wrong."""
        xp = namespace(self.features)
        if xp.finfo(self.features.dtype).bits >= 32:
            return self
        items = _trusted(xp.astype(self.features, xp.float32), self.mask, self.places)
        object.__setattr__(items, "single", self.single)
        return items

    def slice(self, start: int, stop: int) -> Items:
        """The items from `start` to `stop` of every set, without a copy."""
        places = self.numbers[:, start:stop]
        return _trusted(self.features[:, start:stop, :], self.mask[:, start:stop], places)

    def gather(self, indices: Array) -> Items:
        """Some items of a single set, as one new set per row of `indices`, [rows, chosen]."""
        xp = namespace(self.features)
        rows, chosen = indices.shape
        flat = xp.reshape(indices, (-1,))
        shape = (rows, chosen, self.features.shape[2])
        features = xp.reshape(xp.take(self.features[0], flat, axis=0), shape)
        mask = xp.reshape(xp.take(self.mask[0], flat, axis=0), (rows, chosen))
        places = indices if self.places is None else self.places[0][indices]
        return _trusted(features, mask, places)

    def repeat(self, batch: int) -> Items:
        """A single set as a batch of that many equal sets, without a copy."""
        xp = namespace(self.features)
        features = xp.broadcast_to(self.features, (batch, *self.features.shape[1:]))
        places = self.places
        places = None if places is None else xp.broadcast_to(places, (batch, self.size))
        return _trusted(features, xp.broadcast_to(self.mask, (batch, self.size)), places)

    def ordered(self, order: Array) -> Items:
        """The items of every set in another order; `order` is [batch, items]."""
        rows = namespace(order).arange(self.batch, device=device_of(order))[:, None]
        places = order if self.places is None else self.places[rows, order]
        return _trusted(self.features[rows, order], self.mask[rows, order], places)

    def columns(self, columns: slice) -> Items:
        """The same items with some of their features only."""
        return _trusted(self.features[:, :, columns], self.mask, self.places)

    def of_set(self, row: int) -> Items:
        """One set of the batch with a copy of its own features, without padding at its end."""
        xp = namespace(self.features)
        real = xp.nonzero(self.mask[row])[0]
        size = int(real[-1]) + 1 if real.shape[0] else 0
        return _trusted(
            xp.asarray(self.features[row : row + 1, :size, :], copy=True),
            xp.asarray(self.mask[row : row + 1, :size], copy=True),
            None if self.places is None else self.places[row : row + 1, :size],
        )

    def first_set(self) -> Items:
        """The first set of the batch, without a copy."""
        return _trusted(
            self.features[:1], self.mask[:1], None if self.places is None else self.places[:1]
        )

    def check_filled(self) -> None:
        """Raise InvalidInput if a set has no real item at all."""
        if not self.has_padding:
            return
        xp = namespace(self.mask)
        filled = xp.any(self.mask, axis=1)
        if not bool(xp.all(filled)):
            row = int(xp.nonzero(~filled)[0][0])
            raise InvalidInput(
                "mask", message=f"Set {row} has no item; every set needs at least one real item."
            )


@dataclass(frozen=True, eq=False)
class State:
    """What a set function remembers about the items selected so far.

    Attributes:
        level: [batch, features], how far each feature is covered, in the function's own terms.
        outside: [batch, items], one minus the membership of each item: 1 for an item that is not
            selected, 0 for one that is, in between for a soft selection. It is kept instead of
            the membership because selections multiply it, and 1 − s would lose what s keeps
            near 1.
        parts: The states of the parts of a mixture, which has no level of its own.
        maker: The name of the function that made the state; it means nothing to other functions.
    """

    level: Array
    outside: Array
    parts: tuple[State, ...] = ()
    maker: str = ""

    def rows(self, indices: Array) -> State:
        """The states of these rows of the batch, [chosen]."""
        xp = namespace(self.outside)
        return State(
            level=None if self.parts else xp.take(self.level, indices, axis=0),
            outside=xp.take(self.outside, indices, axis=0),
            parts=tuple(part.rows(indices) for part in self.parts),
            maker=self.maker,
        )


class SetFunction(ABC):
    """A function f of a set of items with f(∅) = 0, submodular unless it says otherwise.

    Derive from it for a function of your own; for sums over features, WeightedCoverage already has
    most of the work done. Four methods are enough for every search and for the unfolded network:

        state = f.empty(items)                # the empty set, or what a context already covers
        gains = f.gains(items, state)         # f(v | A) for every item v
        state = f.add(items, state, member)   # a one-hot selection, or a soft one
        value = f.value(state)                # f(A)

    A set function is a frozen value object without trainable parameters: a torch module that has
    parameters builds one, and gradients flow through it. Memberships lie in [0, 1]. The union of
    a soft set s with an item v sets s_v to 1, so that an item in the set has no gain.

    `lazy_greedy`, `stochastic_greedy` and `exact` evaluate the function on some of the items only.
    For them, the gain of an item given a state must not depend on which other items are passed
    along: `f.gains(part, f.empty(part, state))` must equal the gains of the same items in
    `f.gains(items, state)`. A function that keeps data of its own per item, for example a
    similarity matrix with one row per item, breaks this rule; these maximizers refuse it, and
    `greedy` accepts it. Such a matrix can be the features instead: `items.numbers` says which
    column belongs to each item of a part.

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

        Returns:
            True if the function guarantees it. False if an item may have a negative gain: `greedy`,
            `lazy_greedy` and `budgeted_greedy` then stop where no item has a positive gain, with a
            certificate that needs no monotonicity; `stochastic_greedy` and `exact` refuse it. None,
            the default, if it is not known; a search then refuses the first negative gain that it
            sees.
        """
        return None

    @property
    def submodular(self) -> bool:
        """Whether the gain of an item never grows as the set grows; True by default.

        `greedy` searches a function that is not submodular without a certificate, and takes k
        items whatever their gains are; the other searches refuse it.
        """
        return True

    @property
    def information_submodular(self) -> bool:
        """Whether f(A) + f(Q) − f(A ∪ Q) is known to be submodular in A for every set Q."""
        return False

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


def as_items(items: Items | Array) -> Items:
    """Items as they are; a plain array of features as items without padding."""
    return items if isinstance(items, Items) else Items(items)


def _trusted(features: Array, mask: Array, places: Array = None) -> Items:
    """Items made of parts of other items, which were checked and cleaned when they were made."""
    items = object.__new__(Items)
    object.__setattr__(items, "features", features)
    object.__setattr__(items, "mask", mask)
    object.__setattr__(items, "has_padding", True)
    object.__setattr__(items, "places", places)
    return items


def _as_batch(argument: str, value: Any, *, dimensions: int) -> Array:
    # A masked array, which has `filled`, hides numbers, and nothing here would look at its mask.
    # torch.compile cannot trace NumPy's own function for this.
    if not is_array(value) or hasattr(value, "filled"):
        raise InvalidInput(
            argument, found=type(value).__name__, allowed="a NumPy array or a torch tensor"
        )
    if value.ndim == dimensions - 1:
        return value[None]
    if value.ndim != dimensions:
        raise InvalidInput(
            argument,
            message=f"{argument} has the shape {tuple(value.shape)}; it needs {dimensions - 1} "
            f"dimensions for one set, or {dimensions} for a batch of sets.",
        )
    return value


def _check_mask(mask: Array, features: Array) -> None:
    if namespace(mask) is not namespace(features):
        raise InvalidInput(
            "mask", found=type(mask).__name__, allowed=f"a {type(features).__name__}, as features"
        )
    if not namespace(mask).isdtype(mask.dtype, "bool"):
        raise InvalidInput("mask", found=f"dtype {mask.dtype}", allowed="an array of booleans")
    if tuple(mask.shape) != tuple(features.shape[:2]):
        raise InvalidInput(
            "mask",
            found=f"shape {tuple(mask.shape)}",
            allowed=f"an array of shape {tuple(features.shape[:2])}, to fit the features",
        )


def check_range(argument: str, values: Array, *, ceiling: float = math.inf) -> float:
    """Raise InvalidInput unless all values are finite, at least 0 and at most `ceiling`.

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
    raise InvalidInput(
        argument, found=f"{value:g} at {first}", allowed=f"finite and at least 0{top} everywhere"
    )


def check_maker(state: State, maker: str) -> None:
    """Raise InvalidInput if the state was made by another function."""
    if state.maker != maker:
        raise InvalidInput(
            "state",
            found=f"a state of {state.maker or 'another function'}",
            allowed=f"a state that {maker} made",
        )
