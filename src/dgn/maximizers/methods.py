"""`maximize`: the maximizers by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgn.arrays import Array
from dgn.errors import InvalidInput
from dgn.maximizers.exact import exact
from dgn.maximizers.greedy import greedy
from dgn.maximizers.large import lazy_greedy, stochastic_greedy
from dgn.maximizers.selection import Selection, Selections
from dgn.objectives import Items, SetFunction

_METHODS: dict[str, Callable[..., Selection | Selections]] = {
    "greedy": greedy,
    "lazy": lazy_greedy,
    "stochastic": stochastic_greedy,
    "exact": exact,
}


def maximize(
    objective: SetFunction, items: Items | Array, k: int, method: str = "greedy", **options: Any
) -> Selection | Selections:
    """Select up to k items with the maximizer of this name.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features].
        k: The number of items to select.
        method: "greedy", "lazy", "stochastic" or "exact".
        **options: Further arguments of the maximizer, such as `context`, `stop_share` or `seed`.

    Returns:
        One Selection for a single set, Selections for a batch.

    Examples:
        >>> import numpy as np
        >>> from dgn.objectives import FeatureCoverage
        >>> maximize(FeatureCoverage(), np.eye(3), k=2, method="lazy").indices
        (0, 1)
    """
    if method not in _METHODS:
        raise InvalidInput("method", found=repr(method), allowed=f"one of {', '.join(_METHODS)}")
    return _METHODS[method](objective, items, k, **options)
