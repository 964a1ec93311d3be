"""The checks that every maximizer makes before it starts."""

from __future__ import annotations

import operator
from typing import Any

from dgn.arrays import Array
from dgn.errors import InvalidInput
from dgn.objectives import Items, SetFunction, State, as_items
from dgn.objectives.checks import check_mask


def checked_items(objective: Any, items: Items | Array, context: State | None) -> Items:
    """The items, once their values, the context and the objective's weights are allowed."""
    if not isinstance(objective, SetFunction):
        raise InvalidInput(
            "objective", found=type(objective).__name__, allowed="a set function (dgn.objectives)"
        )
    items = as_items(items)
    check_mask(items.mask)
    objective.check(items, context)
    return items


def checked_single_set(objective: Any, items: Items | Array, context: State | None) -> Items:
    """The same, for a search that takes one ground set at a time."""
    items = checked_items(objective, items, context)
    if items.batch != 1:
        raise InvalidInput("items", found=f"a batch of {items.batch} sets", allowed="one set")
    return items


def checked_count(k: Any) -> int:
    """The count as an int, once it is known to be a whole number of at least 1."""
    try:
        count = operator.index(k)
    except TypeError:
        raise InvalidInput("k", found=repr(k), allowed="a whole number of at least 1") from None
    if count < 1:
        raise InvalidInput("k", found=str(count), allowed="a whole number of at least 1")
    return count


def checked_share(argument: str, share: float) -> float:
    """The share, once it is known to lie in [0, 1]."""
    if not 0 <= share <= 1:
        raise InvalidInput(argument, found=f"{share}", allowed="a number from 0 to 1")
    return share
