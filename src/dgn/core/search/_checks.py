"""What all searches share: checks before a search, and one set or a batch as input."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dgn.core import native
from dgn.core.arrays import Array, device_of, namespace, requires_gradient
from dgn.core.functions import Items, SetFunction, State, WeightedCoverage, as_items
from dgn.core.native import Coverage
from dgn.core.search.constraints import Constraints
from dgn.core.search.selection import Selection, Selections
from dgn.errors import InvalidInput

_COMPILED = (np.dtype(np.float32), np.dtype(np.float64))
"""The dtypes that the kernels know."""
_COMPILED_BY_TORCH = ("torch.float32", "torch.float64")

_ROUNDING = 1000
"""Gains may be below 0 by so many times the rounding of values."""

_PROBED = 32
_LARGEST_PROBE = 1 << 22


def checked_items(
    objective: Any,
    items: Items | Array,
    context: State | None,
    *,
    needs_submodular: bool = True,
    needs_monotone: bool = False,
    takes_any_gain: bool = False,
) -> Items:
    """The items, after their values, the context and the weights of the objective were checked.

    Args:
        objective: What was passed as a set function.
        items: The items, or their features.
        context: The context of the search.
        needs_submodular: Whether the search relies on gains that never grow.
        needs_monotone: Whether the search relies on gains that are never negative.
        takes_any_gain: Whether it does not matter to the search if gains may be negative.
    """
    if not isinstance(objective, SetFunction):
        raise InvalidInput(
            "objective",
            found=f"a {type(objective).__name__}",
            allowed="a set function (see dgn.core.functions)",
        )
    items = as_items(items).widened()
    items.check_filled()
    name = type(objective).__name__
    if needs_submodular and not objective.submodular:
        raise InvalidInput(
            "objective",
            message=f"{name} is not submodular, and this search relies on gains that never grow; "
            "use greedy, which searches it without a certificate.",
        )
    if needs_monotone and objective.monotone is False:
        raise InvalidInput(
            "objective",
            message=f"{name} says that it is not monotone, and this search needs a function that "
            "never decreases when an item is added; use greedy or random_greedy.",
        )
    objective.check(items, context)
    if not takes_any_gain:
        _check_monotone(objective, items, context)
    return items


def may_fall(objective: SetFunction) -> bool:
    """Whether a search stops where no gain is positive, because none will be positive later.

    Its certificate is then that of the first prefix: f(best) ≤ the sum of the largest positive
    gains needs submodularity alone, and bounds by later prefixes need a monotone function too.
    """
    return objective.monotone is False and objective.submodular


def check_gains(objective: SetFunction, gains: Array, mask: Array, scale: Array) -> None:
    """Raise InvalidInput if an item has a negative gain: no certificate would hold.

    Args:
        objective: Only a function that does not say whether it is monotone is checked; searches
            expect negative gains of one that says that it is not.
        gains: [batch, items].
        mask: [batch, items], False for padding.
        scale: [batch], the size of the values, of which rounding is a tiny share.
    """
    if objective.monotone is not None or not objective.submodular:
        return
    xp = namespace(gains)
    least = -_ROUNDING * float(xp.finfo(gains.dtype).eps) * (1 + xp.abs(scale))
    bad = mask & (gains < least[:, None])
    if bool(xp.any(bad)):
        row, item = (int(axis[0]) for axis in xp.nonzero(bad))
        raise InvalidInput(
            "objective",
            message=f"The objective is not monotone: item {item} of set {row} has the gain "
            f"{gains[row, item].item():.3g}. If it should be so, its property monotone has to be "
            "False: greedy then stops where nothing is gained, and random_greedy has a guarantee.",
        )


def _check_monotone(objective: SetFunction, items: Items, context: State | None) -> None:
    """Raise InvalidInput if a function that does not say whether it is monotone is not.

    The gain of an item is smallest given all other items, so that these gains decide. They are
    computed if there are few items; in large sets, searches check the gains that they meet.
    """
    if objective.monotone is not None or not objective.submodular:
        return
    if items.size * math.prod(items.features.shape) > _LARGEST_PROBE:
        return
    xp = namespace(items.features)
    real = xp.astype(items.mask, items.features.dtype)
    empty = objective.empty(items, context)
    for item in range(items.size):
        others = real * (1 - xp.astype(_only(item, items), real.dtype))
        state = objective.add(items, empty, others)
        gains = objective.gains(items, state)
        check_gains(objective, gains, items.mask & _only(item, items), objective.value(state))


def _only(item: int, items: Items) -> Array:
    """[1, items], True for one item."""
    xp = namespace(items.features)
    return xp.arange(items.size, device=device_of(items.features))[None, :] == item


def compiled_coverage(objective: Any, features: Any) -> Coverage | None:
    """The function as the compiled kernels know it; None if they cannot search these features."""
    if not isinstance(objective, SetFunction):
        return None
    if type(features) is np.ndarray:
        is_known = features.dtype in _COMPILED and native.is_available()
        is_known = is_known and features.shape[-2] < 2**31  # items are numbered in 32 bits
    elif not hasattr(features, "is_cuda") or requires_gradient(features):
        return None
    elif features.is_cuda:
        coverage = native.compiled(objective)
        return coverage if coverage is not None and _fits_gpu(coverage, features) else None
    else:
        is_known = str(features.dtype) in _COMPILED_BY_TORCH and native.is_available()
    return native.compiled(objective) if is_known else None


def is_usual(objective: SetFunction, numbers: native.Range, shape: tuple[int, ...]) -> bool:
    """Whether `check` would accept features and weights of this range, without looking at them.

    Args:
        objective: A function that the kernels know.
        numbers: What a kernel says about the features and the weights.
        shape: The shape of the features, [batch, items, features].
    """
    return (
        isinstance(objective, WeightedCoverage)
        and not numbers.is_bad
        and objective.surely_allows(
            shape,
            least=numbers.least,
            largest=numbers.largest,
            lightest=numbers.lightest,
            heaviest=numbers.heaviest,
        )
    )


def compiled_for_numpy(objective: SetFunction, features: Any) -> Coverage | None:
    """The same for searches of large sets, whose kernels know NumPy arrays alone."""
    return compiled_coverage(objective, features) if type(features) is np.ndarray else None


def _fits_gpu(coverage: Coverage, features: Any) -> bool:
    """Whether there is a kernel for this function of a torch tensor on a GPU."""
    try:
        from dgn.core.native.triton.greedy import fits
    except ImportError:  # Triton comes with torch, on Linux
        return False
    return fits(coverage, features)


def checked_count(count: Any, argument: str = "k", least: int = 1) -> int:
    """A number as an int, after it was checked to be an integer of at least `least`."""
    try:
        found = operator.index(count)
    except TypeError:
        found = least - 1
    if found < least or isinstance(count, bool):
        raise InvalidInput(argument, found=repr(count), allowed=f"an integer of at least {least}")
    return found


def unbatched(selections: Selections, items: Items) -> Selection | Selections:
    """One Selection for one set, Selections for a batch."""
    return selections[0] if items.single else selections


def single(found: Selection | Selections) -> Selection:
    """The only Selection of a search in one set."""
    return found if isinstance(found, Selection) else found[0]


def over_sets(
    search: Callable[[SetFunction, Items, State | None, Constraints], Selection],
    objective: SetFunction,
    items: Items,
    context: State | None,
    constraints: Constraints,
) -> Selection | Selections:
    """Run a search that takes one set at a time on every set of a batch."""
    _check_parts(objective, items, context)
    if items.batch == 1:
        found = [search(objective, items, context, constraints)]
    else:
        found: list[Selection] = []
        for row in range(items.batch):
            own, given = items.of_set(row), context_of(context, row, items)
            limits = constraints.of_set(row, own.size)
            found.append(search(objective.of_set(row), own, given, limits))
    return found[0] if items.single else Selections.stack(found, items.features)


def context_of(context: State | None, row: int, items: Items) -> State | None:
    """The context of one set of the batch."""
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
    context = context_of(context, 0, items)
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
            f"({error}), which this maximizer requires (see dgn.core.functions.SetFunction); use "
            "greedy.",
        ) from error
