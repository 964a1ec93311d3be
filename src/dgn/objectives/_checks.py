"""Checks of values that a search makes once, before it starts.

Each check is a minimum and a maximum over the array (NaN passes through both), which costs little
next to the search. The position of a bad value is determined only after one was found.
"""

from __future__ import annotations

import math

from dgn.arrays import Array, namespace
from dgn.errors import InvalidInput
from dgn.objectives.base import State


def check_range(argument: str, values: Array, *, ceiling: float = math.inf) -> float:
    """Raise InvalidInput unless all values are finite, at least 0 and at most `ceiling`.

    Returns:
        The largest value.
    """
    xp = namespace(values)
    low, high = xp.min(values).item(), xp.max(values).item()
    if low >= 0 and high <= ceiling and high < math.inf:
        return high
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


def check_sum(largest: float, features: Array) -> None:
    """Raise InvalidInput if the features of a set could add up beyond the range of their dtype."""
    items, most = features.shape[1], float(namespace(features).finfo(features.dtype).max)
    if largest * items > most:
        raise InvalidInput(
            "features",
            message=f"features contains {largest:g}; {items} items of this size may add up to "
            f"more than {features.dtype} can hold. Scale the features to at most "
            f"{most / items:g}, or use a wider dtype.",
        )
