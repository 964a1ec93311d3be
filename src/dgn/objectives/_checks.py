"""Checks of values that a search makes once, before it starts.

Each check is a minimum and a maximum over the array (NaN passes through both), which costs little
next to the search. The position of a bad value is determined only after one was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dgn.arrays import Array, namespace
from dgn.errors import InvalidInput
from dgn.objectives.base import State

_FINEST_SHARE = 1e-5
"""The rounding of a level may not exceed this share of the largest feature."""


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


def check_sum(largest: float, features: Array, given: float = 0.0) -> None:
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


def check_room(cap: float, level: Array, features: Array, largest: float) -> None:
    """Raise InvalidInput if a dtype cannot say how much room a context leaves below a cap.

    What is added to a large level is rounded to the spacing of numbers of its size. Next to the
    cap this rounding decides how much the next item may add.
    """
    xp = namespace(features)
    eps = float(xp.finfo(features.dtype).eps)
    reachable = (level < cap) & (level + features.shape[1] * largest >= cap)
    coarse = reachable & (level * eps > _FINEST_SHARE * largest)
    if bool(xp.any(coarse)):
        found = xp.max(xp.where(coarse, level, xp.zeros_like(level))).item()
        raise InvalidInput(
            "context",
            message=f"context has a level of {found:g}, next to which {features.dtype} rounds "
            f"features of {largest:g}. Use float64, or subtract the context from the cap.",
        )


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
