"""What all searches share: checks before a search, and of the gains that it meets."""

from __future__ import annotations

import math
import operator
from typing import Any

from dgn.core.arrays import Array, device_of, namespace
from dgn.core.functions import SetFunction
from dgn.core.items import Items, State, as_items
from dgn.errors import InvalidInput

_ROUNDING = 1000
"""Gains may be below 0 by so many times the rounding of values."""

_LARGEST_PROBE = 1 << 22


def checked_items(objective: Any, items: Items | Array, context: State | None) -> Items:
    """The items, after their values, the context and the weights of the objective were checked.

    Args:
        objective: What was passed as a set function.
        items: The items, or their features.
        context: What is already covered.
    """
    if not isinstance(objective, SetFunction):
        raise InvalidInput(
            "objective",
            found=f"a {type(objective).__name__}",
            allowed="a set function (see dgn.core.functions)",
        )
    items = as_items(items).widened()
    items.check_filled()
    if objective.monotone is False:
        raise InvalidInput(
            "objective",
            message=f"{type(objective).__name__} says that it is not monotone. The searches of dgn "
            "need a function that never decreases when an item is added.",
        )
    objective.check(items, context)
    _check_monotone(objective, items, context)
    return items


def check_gains(objective: SetFunction, gains: Array, mask: Array, scale: Array) -> None:
    """Raise InvalidInput if an item has a negative gain: no certificate would hold.

    Args:
        objective: Only a function that does not say that it is monotone is checked.
        gains: [batch, items].
        mask: [batch, items], False for padding.
        scale: [batch], the size of the values, of which rounding is a tiny share.
    """
    if objective.monotone is not None:
        return
    xp = namespace(gains)
    least = -_ROUNDING * float(xp.finfo(gains.dtype).eps) * (1 + xp.abs(scale))
    bad = mask & (gains < least[:, None])
    if bool(xp.any(bad)):
        row, item = (int(axis[0]) for axis in xp.nonzero(bad))
        raise InvalidInput(
            "objective",
            message=f"The objective is not monotone: item {item} of set {row} has the gain "
            f"{gains[row, item].item():.3g}. The searches of dgn need a function that never "
            "decreases when an item is added.",
        )


def _check_monotone(objective: SetFunction, items: Items, context: State | None) -> None:
    """Raise InvalidInput if a function that does not say whether it is monotone is not.

    The gain of an item is smallest given all other items, so that these gains decide. They are
    computed if there are few items; in large sets, searches check the gains that they meet.
    """
    if objective.monotone is not None:
        return
    if items.size * math.prod(items.features.shape) > _LARGEST_PROBE:
        return
    xp = namespace(items.features)
    real = xp.astype(items.mask, items.features.dtype)
    empty = objective.empty(items, context)
    for item in range(items.size):
        only = xp.arange(items.size, device=device_of(items.features))[None, :] == item
        state = objective.add(items, empty, real * (1 - xp.astype(only, real.dtype)))
        gains = objective.gains(items, state)
        check_gains(objective, gains, items.mask & only, objective.value(state))


def checked_count(count: Any, argument: str = "k", least: int = 1) -> int:
    """A number as an int, after it was checked to be an integer of at least `least`."""
    try:
        found = operator.index(count)
    except TypeError:
        found = least - 1
    if found < least or isinstance(count, bool):
        raise InvalidInput(argument, found=repr(count), allowed=f"an integer of at least {least}")
    return found
