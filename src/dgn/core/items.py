"""What a set function works on: ground sets of items, and the state of a set of them.

items = Items(features)                     # one ground set, or a padded batch of them
state = f.add(items, f.empty(items), member)
state.level                                 # how far each feature is covered
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dgn.core.arrays import Array, device_of, is_array, namespace
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
    """

    features: Array
    mask: Array = None
    single: bool = field(init=False, default=False)
    has_padding: bool = field(init=False, default=True)

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

    def widened(self) -> Items:
        """The same items, in float32 if they have half precision, in which sums are wrong."""
        xp = namespace(self.features)
        if xp.finfo(self.features.dtype).bits >= 32:
            return self
        items = _trusted(xp.astype(self.features, xp.float32), self.mask)
        object.__setattr__(items, "single", self.single)
        return items

    def repeat(self, batch: int) -> Items:
        """A single set as a batch of that many equal sets, without a copy."""
        xp = namespace(self.features)
        features = xp.broadcast_to(self.features, (batch, *self.features.shape[1:]))
        return _trusted(features, xp.broadcast_to(self.mask, (batch, self.size)))

    def ordered(self, order: Array) -> Items:
        """The items of every set in another order; `order` is [batch, items]."""
        rows = namespace(order).arange(self.batch, device=device_of(order))[:, None]
        return _trusted(self.features[rows, order], self.mask[rows, order])

    def columns(self, columns: slice) -> Items:
        """The same items with some of their features only."""
        return _trusted(self.features[:, :, columns], self.mask)

    def of_set(self, row: int, size: int | None = None) -> Items:
        """One set of the batch with a copy of its features: the first `size` of its items.

        By default, those up to the last real one.
        """
        xp = namespace(self.features)
        if size is None:
            real = xp.nonzero(self.mask[row])[0]
            size = int(real[-1]) + 1 if real.shape[0] else 0
        return _trusted(
            xp.asarray(self.features[row : row + 1, :size, :], copy=True),
            xp.asarray(self.mask[row : row + 1, :size], copy=True),
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
        parts: The states of the functions of a `Mixture`, which has no level of its own.
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


def as_items(items: Items | Array) -> Items:
    """Items as they are; a plain array of features as items without padding."""
    return items if isinstance(items, Items) else Items(items)


def _trusted(features: Array, mask: Array) -> Items:
    """Items made of parts of other items, which were checked and cleaned when they were made."""
    items = object.__new__(Items)
    object.__setattr__(items, "features", features)
    object.__setattr__(items, "mask", mask)
    object.__setattr__(items, "has_padding", True)
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
