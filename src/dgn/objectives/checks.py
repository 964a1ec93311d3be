"""The checks of values that a search makes once, before it starts.

Each check is a minimum and a maximum over the array (NaN passes through both), which costs
little beside the search; the place of a bad value is looked for only once there is one.
"""

from __future__ import annotations

import math

from dgn.arrays import Array, namespace
from dgn.errors import InvalidInput


def check_range(argument: str, values: Array, *, ceiling: float = math.inf) -> None:
    """Raise InvalidInput unless all values are finite, at least 0 and at most `ceiling`."""
    xp = namespace(values)
    low, high = xp.min(values).item(), xp.max(values).item()
    if low >= 0 and high <= ceiling and high < math.inf:
        return
    bad = ~((values >= 0) & (values <= ceiling) & xp.isfinite(values))
    first = [int(axis[0]) for axis in xp.nonzero(bad)]
    value = values[tuple(first)].item()
    top = "" if ceiling == math.inf else f" and at most {ceiling:g}"
    raise InvalidInput(
        argument, found=f"{value:g} at {first}", allowed=f"finite numbers of at least 0{top}"
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
