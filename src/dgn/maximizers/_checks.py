"""What all maximizers share: checks before a search, and one set or a batch as input."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dgn import kernels
from dgn.arrays import Array, device_of, namespace, requires_gradient
from dgn.errors import InvalidInput
from dgn.kernels import Coverage
from dgn.maximizers.selection import Selection, Selections
from dgn.objectives import Items, SetFunction, State, as_items

_COMPILED = (np.dtype(np.float32), np.dtype(np.float64))
"""The dtypes that the kernels know."""
_COMPILED_BY_TORCH = ("torch.float32", "torch.float64")

_PROBED = 32
_LARGEST_PROBE = 1 << 22


def checked_items(objective: Any, items: Items | Array, context: State | None) -> Items:
    """The items, after their values, the context and the weights of the objective were checked."""
    if not isinstance(objective, SetFunction):
        raise InvalidInput(
            "objective",
            found=f"a {type(objective).__name__}",
            allowed="a set function (see dgn.objectives)",
        )
    items = as_items(items).widened()
    items.check_filled()
    objective.check(items, context)
    return items


def compiled_coverage(objective: Any, features: Any) -> Coverage | None:
    """The function as the compiled kernels know it; None if they cannot search these features."""
    if not isinstance(objective, SetFunction):
        return None
    if type(features) is np.ndarray:
        is_known = features.dtype in _COMPILED and kernels.is_available()
    elif not hasattr(features, "is_cuda") or requires_gradient(features):
        return None
    elif features.is_cuda:
        is_known = _fits_gpu(features)
    else:
        is_known = str(features.dtype) in _COMPILED_BY_TORCH and kernels.is_available()
    return objective.compiled() if is_known else None


def compiled_for_numpy(objective: SetFunction, features: Any) -> Coverage | None:
    """The same for searches of large sets, whose kernels know NumPy arrays alone."""
    return compiled_coverage(objective, features) if type(features) is np.ndarray else None


def _fits_gpu(features: Any) -> bool:
    """Whether there is a kernel for a torch tensor on a GPU."""
    try:
        from dgn.gpu.greedy import fits
    except ImportError:  # Triton comes with torch, on Linux
        return False
    return fits(features)


def checked_count(k: Any) -> int:
    """k as an int, after it was checked to be an integer of at least 1."""
    try:
        count = operator.index(k)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInput("k", found=repr(k), allowed="an integer of at least 1")
    return count


def checked_share(argument: str, share: float) -> float:
    """The share, after it was checked to lie in [0, 1]."""
    if not isinstance(cast("Any", share), float | int) or not 0 <= share <= 1:
        raise InvalidInput(argument, found=repr(share), allowed="a number from 0 to 1")
    return share


def unbatched(selections: Selections, items: Items) -> Selection | Selections:
    """One Selection for one set, Selections for a batch."""
    return selections[0] if items.single else selections


def single(found: Selection | Selections) -> Selection:
    """The only Selection of a search in one set."""
    return found if isinstance(found, Selection) else found[0]


def over_sets(
    search: Callable[[SetFunction, Items, State | None], Selection],
    objective: SetFunction,
    items: Items,
    context: State | None,
) -> Selection | Selections:
    """Run a search that takes one set at a time on every set of a batch."""
    _check_parts(objective, items, context)
    if items.batch == 1:
        found = [search(objective, items, context)]
    else:
        found = [
            search(objective.of_set(row), items.of_set(row), _context_of(context, row, items))
            for row in range(items.batch)
        ]
    return found[0] if items.single else Selections.stack(found, items.features)


def _context_of(context: State | None, row: int, items: Items) -> State | None:
    if context is None or context.outside.shape[0] == 1:
        return context
    xp = namespace(items.features)
    return context.rows(xp.asarray([row], device=device_of(items.features)))


def _check_parts(objective: SetFunction, items: Items, context: State | None) -> None:
    """Raise InvalidInput unless items have the same gains when other items are left out.

    This is the rule of `SetFunction` for searches that evaluate parts of a set, checked on some of
    the items (for very large sets: of the first ones), before and after one of them was added.
    """
    if items.size < 2:
        return
    xp, device = namespace(items.features), device_of(items.features)
    context = _context_of(context, 0, items)
    function, own = objective.of_set(0), items.first_set()
    if own.size * own.features.shape[2] > _LARGEST_PROBE:
        own = own.gather(xp.arange(_PROBED, device=device)[None, :])
    step = max(2, own.size // _PROBED)
    index = xp.arange(1, own.size, step, device=device)
    try:
        part = own.gather(index[None, :])
        state = function.empty(own, context)
        first = xp.astype(xp.arange(own.size, device=device) == 0, own.features.dtype)
        for _ in range(2):
            expected = xp.take(function.gains(own, state)[0], index, axis=0)
            found = function.gains(part, function.empty(part, state))[0]
            tolerance = 1000 * xp.finfo(expected.dtype).eps * (1 + xp.max(xp.abs(expected)))
            if not bool(xp.all(xp.abs(found - expected) <= tolerance)):
                raise ValueError("an item has another gain when other items are left out")
            state = function.add(own, state, first[None, :])
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            "objective",
            message=f"{type(objective).__name__} cannot be evaluated on a part of the items "
            f"({error}), which this maximizer requires (see dgn.objectives.SetFunction); use "
            "greedy.",
        ) from error
