"""Budgeted greedy: items have costs (tokens, seconds), and the budget is never exceeded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dgn.core.arrays import Array, Bool, Float, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import checked_count, checked_items, unbatched
from dgn.core.search.constrained import Found, begin, one_hot, powers_below, search
from dgn.core.search.constraints import Constraints
from dgn.core.search.room import remainder
from dgn.core.search.selection import Selection, Selections
from dgn.errors import InvalidInput


def budgeted_greedy(
    objective: SetFunction,
    items: Items | Array,
    costs: Array,
    budget: float | Array,
    *,
    k: int | None = None,
    cost_exponents: Sequence[float | Array] = (1.0,),
    skipped_cover: bool = False,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
) -> Selection | Selections:
    """Select items of every set whose costs fit the budget together.

    The result is the best of several sets: greedy by gain / cost**exponent for every exponent, and
    the best single item that fits. With an exponent of 1 among them, they reach at least
    ½·(1 − 1/e) of the best possible value (Leskovec et al., 2007; without k and groups). Items
    that do not fit any more are skipped. An item without a gain is not selected; where nothing
    fits, nothing is. For a function that is not monotone, there is the certificate alone, by the
    first prefix.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features].
        costs: Greater than 0; [batch, items], or [items] for a single set.
        budget: One number, or [batch].
        k: If given, at most this many items are selected as well.
        cost_exponents: From 0 (by gain alone) to 1 (by gain per cost). More exponents take more
            time and never give a worse set; among equal values, the first exponent decides. An
            exponent may be an array [batch], with one number for each set.
        skipped_cover: Whether an item that does not fit counts as covering when it is skipped, so
            that cheap items that say a part of the same are not selected in its place. The
            guarantee is then the certificate alone.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items that are already there, as for `greedy`; they cost nothing.
        pinned: Items that must be selected, as for `greedy`; their costs are part of the budget.
        groups: The group of every item, as for `greedy`.
        max_per_group: The most items of each group, as for `greedy`.

    Returns:
        One Selection for a single set, Selections for a batch.
    """
    items = checked_items(objective, items, context)
    exponents = _checked_exponents(cost_exponents, items)
    paid, limit = checked_costs(costs, items), checked_budget(budget, items)
    most = None if k is None else checked_count(k)
    constraints = Constraints.of(
        items.mask,
        most,
        single=items.single,
        given=given,
        pinned=pinned,
        groups=groups,
        max_per_group=max_per_group,
    )
    _check_pinned(constraints, paid, limit, single=items.single)
    paid, limit = _scaled(paid, limit)
    start = begin(objective, items, context, constraints)
    room = constraints.room(items.mask, items.size if most is None else most)
    left = _left_by_pinned(constraints, paid, limit)
    room = room.with_costs(paid, left, skipped_cover=skipped_cover)
    found = [search(objective, items, start.state, room, exponent) for exponent in exponents]
    best = _best_of(found, items.features)
    # Where skipped items cover, the point is not to take something else in their place.
    return unbatched(start.completed(best if skipped_cover else _or_single(best)), items)


def _best_of(found: Sequence[Found], features: Array) -> Found:
    """The best of several searches in every set."""
    best, *others = found
    xp = namespace(best.gains)
    # The same set in another order may have a sum that is rounded up: it is not better.
    margin = 1 + 64 * float(xp.finfo(features.dtype).eps)
    steps = max(one.indices.shape[1] for one in found)
    for other in others:
        is_better = (other.values[:, -1] > margin * best.values[:, -1])[:, None]
        best = Found(
            indices=xp.where(
                is_better, _filled(other.indices, steps, -1), _filled(best.indices, steps, -1)
            ),
            gains=xp.where(
                is_better, _filled(other.gains, steps, 0), _filled(best.gains, steps, 0)
            ),
            bounds=xp.minimum(best.bounds, other.bounds),
            single=best.single,
            single_gain=best.single_gain,
        )
    return best


def _or_single(best: Found) -> Found:
    """The single item, in the sets where it is better than everything that was found."""
    xp = namespace(best.gains)
    alone = (best.single_gain > best.values[:, -1])[:, None]
    first = one_hot(xp.zeros_like(best.single), best.indices.shape[1])
    instead = xp.where(first, best.single[:, None], xp.full_like(best.single[:, None], -1))
    gain = xp.where(first, best.single_gain[:, None], xp.zeros_like(best.gains))
    return Found(
        indices=xp.where(alone, instead, best.indices),
        gains=xp.where(alone, gain, best.gains),
        bounds=best.bounds,
        single=best.single,
        single_gain=best.single_gain,
    )


def _filled(rows: Array, steps: int, fill: int) -> Array:
    """The rows with more columns, which contain `fill`."""
    xp = namespace(rows)
    missing = (rows.shape[0], steps - rows.shape[1])
    more = xp.full(missing, fill, dtype=rows.dtype, device=device_of(rows))
    return xp.concat([rows, more], axis=1)


def _checked_exponents(exponents: Any, items: Items) -> list[Float[Array, " batch"]]:
    allowed = f"at least one number, or array of shape ({items.batch},), from 0 to 1"
    xp = namespace(items.features)
    found: list[Array] = []
    try:
        given = [_in_full_precision(one, items) for one in exponents]
    except TypeError:
        given = []
    for one in given:
        if one.ndim > 1 or (one.ndim == 1 and one.shape[0] != items.batch):
            raise InvalidInput(
                "cost_exponents", found=f"an array of shape {tuple(one.shape)}", allowed=allowed
            )
        found.append(xp.broadcast_to(one, (items.batch,)))
    if not found or not all(bool(xp.all((one >= 0) & (one <= 1))) for one in found):
        raise InvalidInput("cost_exponents", found=f"{exponents!r:.40}", allowed=allowed)
    return found


def _check_pinned(
    constraints: Constraints,
    costs: Float[Array, "batch items"],
    budget: Float[Array, " batch"],
    *,
    single: bool,
) -> None:
    for row, pinned in enumerate(constraints.pinned or ()):
        own = [costs[row, item].item() for item in pinned]
        if remainder(budget[row].item(), own) < 0:
            where = "" if single else f" of set {row}"
            raise InvalidInput(
                "pinned",
                message=f"The pinned items{where} cost {math.fsum(own):g}, more than the budget, "
                f"{budget[row].item():g}.",
            )


def _left_by_pinned(
    constraints: Constraints, costs: Float[Array, "batch items"], budget: Float[Array, " batch"]
) -> Float[Array, " batch"]:
    """What the pinned items leave of the budget, never more."""
    if constraints.pinned is None:
        return budget
    left = [
        remainder(budget[row].item(), [costs[row, item].item() for item in pinned])
        for row, pinned in enumerate(constraints.pinned)
    ]
    return namespace(budget).asarray(left, dtype=budget.dtype, device=device_of(budget))


def checked_costs(costs: Any, items: Items) -> Float[Array, "batch items"]:
    """The costs of all items in float64, after they were checked; 1 for padding."""
    xp = namespace(items.features)
    paid = _in_full_precision(costs, items)
    paid = paid[None, :] if paid.ndim == 1 else paid
    if tuple(paid.shape) != (items.batch, items.size):
        raise InvalidInput(
            "costs",
            found=f"shape {tuple(paid.shape)}",
            allowed=f"an array of shape {(items.batch, items.size)}, one cost for each item",
        )
    paid = xp.where(items.mask, paid, xp.ones_like(paid))
    _raise_unless_positive("costs", paid, (paid > 0) & xp.isfinite(paid))
    return paid


def checked_budget(budget: Any, items: Items) -> Float[Array, " batch"]:
    """The budget of every set in float64, after it was checked."""
    xp = namespace(items.features)
    limit = _in_full_precision(budget, items)
    if limit.ndim > 1 or (limit.ndim == 1 and limit.shape[0] not in {1, items.batch}):
        raise InvalidInput(
            "budget",
            found=f"shape {tuple(limit.shape)}",
            allowed=f"one number, or an array of shape ({items.batch},)",
        )
    limit = xp.broadcast_to(limit, (items.batch,))
    _raise_unless_positive("budget", limit, (limit > 0) & xp.isfinite(limit))
    return limit


def _scaled(
    costs: Float[Array, "batch items"], budget: Float[Array, " batch"]
) -> tuple[Float[Array, "batch items"], Float[Array, " batch"]]:
    """Costs and budgets multiplied by a power of 2 per set, so that budgets are about 1.

    A gain per cost would be infinite for tiny costs, and their order lost. A cost below 2⁻⁶⁴ of
    the budget counts as that much, which is less than the rounding of a sum; one that exceeds the
    budget can be anything that does.
    """
    xp = namespace(costs)
    scale = powers_below(budget)
    can_be_paid = costs <= budget[:, None]
    budget = budget * scale
    paid = xp.where(can_be_paid, costs, xp.zeros_like(costs)) * scale[:, None]
    paid = xp.maximum(paid, xp.broadcast_to((budget * 2.0**-64)[:, None], paid.shape))
    return xp.where(can_be_paid, paid, 2 * budget[:, None]), budget


def _in_full_precision(amounts: Any, items: Items) -> Array:
    """Costs are added in float64, whatever dtype the features have: a budget is not rounded."""
    xp = namespace(items.features)
    try:
        # By its dtype: NumPy cannot look into a tensor on a GPU.
        if "complex" in str(getattr(amounts, "dtype", None) or np.asarray(amounts).dtype):
            raise TypeError("complex numbers")
        return xp.asarray(amounts, dtype=xp.float64, device=device_of(items.features))
    except (TypeError, ValueError, OverflowError):
        found = f"{amounts!r:.40}"
        raise InvalidInput("costs and budget", found=found, allowed="numbers") from None


def _raise_unless_positive(argument: str, values: Array, good: Bool[Array, "..."]) -> None:
    xp = namespace(values)
    if not bool(xp.all(good)):
        index = [int(axis[0]) for axis in xp.nonzero(~good)]
        raise InvalidInput(
            argument,
            found=f"{values[tuple(index)].item():g} at {index}",
            allowed="finite and greater than 0",
        )
