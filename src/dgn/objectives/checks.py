"""The checks of values that a search makes once, before it starts.

Each check is a minimum and a maximum over the array (NaN passes through both), which costs
little beside the search; the place of a bad value is looked for only once there is one.
"""

from __future__ import annotations

import math

from dgn.arrays import Array, namespace
from dgn.errors import InvalidInput
from dgn.objectives.items import State


def check_range(argument: str, values: Array, *, ceiling: float = math.inf) -> float:
    """Raise InvalidInput unless all values are finite, at least 0 and at most `ceiling`.

    Gives back the largest of them.
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
        argument, found=f"{value:g} at {first}", allowed=f"finite numbers of at least 0{top}"
    )


def check_maker(state: State, maker: str) -> None:
    """Raise InvalidInput if the state is that of another function."""
    if state.maker != maker:
        raise InvalidInput(
            "state",
            found=f"a state of {state.maker or 'no function'}",
            allowed=f"a state that {maker} made",
        )


def check_sum(largest: float, features: Array) -> None:
    """Raise InvalidInput if all items of a set might add up beyond what their dtype can hold."""
    items, most = features.shape[1], float(namespace(features).finfo(features.dtype).max)
    if largest * items > most:
        raise InvalidInput(
            "features",
            found=f"{largest:g}; {items} of these may add up to more than {features.dtype} holds",
            allowed=f"at most {most / items:g}; scale the features, or take a wider dtype",
        )


def check_mask(mask: Array) -> None:
    """Raise InvalidInput if some set has no real item at all."""
    xp = namespace(mask)
    filled = xp.any(mask, axis=1)
    if not bool(xp.all(filled)):
        row = int(xp.nonzero(~filled)[0][0])
        raise InvalidInput(
            "mask", found=f"no item in set {row}", allowed="at least one item in every set"
        )
