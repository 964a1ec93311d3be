"""The ground sets that a search picks from, and the summary of what it picked so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dgn.arrays import Array, device_of, is_array, namespace
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Items:
    """A batch of ground sets, padded to one length.

    features: [batch, items, features], or [items, features] for a single set. What each item
        offers, feature by feature.
    mask: [batch, items], True where an item is real and False where it is padding. Left out,
        every item is real. Whatever stands in the padding is replaced by zeros, so that nothing
        there can change a result.
    """

    features: Array
    mask: Array = None

    def __post_init__(self) -> None:
        features = _as_batch("features", self.features, dimensions=3)
        xp = namespace(features)
        if not xp.isdtype(features.dtype, "real floating"):
            raise InvalidInput(
                "features", found=f"dtype {features.dtype}", allowed="a floating-point dtype"
            )
        if 0 in features.shape:
            raise InvalidInput(
                "features",
                found=f"shape {tuple(features.shape)}",
                allowed="at least one set, one item and one feature",
            )
        if self.mask is None:
            mask = xp.ones(features.shape[:2], dtype=xp.bool, device=device_of(features))
        else:
            mask = _as_batch("mask", self.mask, dimensions=2)
            _check_mask(mask, features)
            features = xp.where(mask[..., None], features, xp.zeros_like(features))
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "mask", mask)

    @property
    def batch(self) -> int:
        """How many ground sets there are."""
        return self.features.shape[0]

    @property
    def size(self) -> int:
        """How many items a set has, padding included."""
        return self.features.shape[1]

    def slice(self, start: int, stop: int) -> Items:
        """The items from `start` up to `stop` of every set, without a copy."""
        return _trusted(self.features[:, start:stop, :], self.mask[:, start:stop])

    def gather(self, indices: Array) -> Items:
        """The items of these indices, [rows, chosen], of a single set: one new set a row."""
        xp = namespace(self.features)
        rows, chosen = indices.shape
        flat = xp.reshape(indices, (-1,))
        shape = (rows, chosen, self.features.shape[2])
        features = xp.reshape(xp.take(self.features[0], flat, axis=0), shape)
        return _trusted(features, xp.reshape(xp.take(self.mask[0], flat, axis=0), (rows, chosen)))

    def repeat(self, batch: int) -> Items:
        """A single set, seen as a batch of that many equal sets, without a copy."""
        xp = namespace(self.features)
        features = xp.broadcast_to(self.features, (batch, *self.features.shape[1:]))
        return _trusted(features, xp.broadcast_to(self.mask, (batch, self.size)))

    def columns(self, columns: slice) -> Items:
        """The same items, seen through some of their features only."""
        return _trusted(self.features[:, :, columns], self.mask)


@dataclass(frozen=True, eq=False)
class State:
    """What a set function knows of the items picked so far.

    level: [batch, features], how far each feature is covered, in the function's own terms.
    outside: [batch, items], one minus the membership of each item: 1 for an item that was not
        picked, 0 for one that was, in between for a soft pick. Kept instead of the membership
        because picks multiply it, and 1 − s would lose what s keeps near 1.
    parts: the states of the parts of a mixture, which has no level of its own.
    maker: the name of the function whose state this is; to another function it means nothing.
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


def as_items(items: Items | Array) -> Items:
    """Items as they are; a plain array of features as items without padding."""
    return items if isinstance(items, Items) else Items(items)


def _trusted(features: Array, mask: Array) -> Items:
    """Items made of parts of other items, which were checked and cleaned when they were made."""
    items = object.__new__(Items)
    object.__setattr__(items, "features", features)
    object.__setattr__(items, "mask", mask)
    return items


def _as_batch(argument: str, value: Any, *, dimensions: int) -> Array:
    if not is_array(value):
        raise InvalidInput(
            argument, found=type(value).__name__, allowed="a NumPy array or a torch tensor"
        )
    if value.ndim == dimensions - 1:
        return value[None]
    if value.ndim != dimensions:
        raise InvalidInput(
            argument,
            found=f"shape {tuple(value.shape)}",
            allowed=f"{dimensions - 1} dimensions for one set, {dimensions} for a batch of sets",
        )
    return value


def _check_mask(mask: Array, features: Array) -> None:
    if namespace(mask) is not namespace(features):
        raise InvalidInput(
            "mask", found=type(mask).__name__, allowed=f"the features' {type(features).__name__}"
        )
    if not namespace(mask).isdtype(mask.dtype, "bool"):
        raise InvalidInput("mask", found=f"dtype {mask.dtype}", allowed="booleans")
    if tuple(mask.shape) != tuple(features.shape[:2]):
        raise InvalidInput(
            "mask",
            found=f"shape {tuple(mask.shape)}",
            allowed=f"{tuple(features.shape[:2])}, as the features have",
        )
