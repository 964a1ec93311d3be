"""Budgeted greedy: items have costs (tokens, seconds), and the budget is never exceeded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dgn.core import native
from dgn.core.arrays import Array, Bool, Float, Int, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import (
    check_gains,
    checked_count,
    checked_items,
    compiled_for_numpy,
    unbatched,
)
from dgn.core.search.greedy import best_available, one_hot
from dgn.core.search.selection import Selection, Selections, fractional_knapsack, largest_sum
from dgn.errors import InvalidInput


def budgeted_greedy(
    objective: SetFunction,
    items: Items | Array,
    costs: Array,
    budget: float | Array,
    *,
    k: int | None = None,
    context: State | None = None,
) -> Selection | Selections:
    """Select items of every set whose costs fit the budget together.

    The result is the better of two sets: greedy by gain per cost, and the best single item that
    fits. Together they reach at least ½·(1 − 1/e) of the best possible value (Leskovec et al.,
    2007; without k). An item without a gain is not selected; where nothing fits, nothing is.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features].
        costs: Greater than 0; [batch, items], or [items] for a single set.
        budget: One number, or [batch].
        k: If given, at most this many items are selected as well.
        context: What is already covered: f(· | context) is maximized instead of f.

    Returns:
        One Selection for a single set, Selections for a batch.
    """
    items = checked_items(objective, items, context)
    paid, limit = _scaled(_checked_costs(costs, items), _checked_budget(budget, items))
    most = items.size if k is None else min(checked_count(k), items.size)
    state = objective.empty(items, context)
    by_kernel = _compiled_search(objective, items, context, paid, limit, most)
    by_density, single = by_kernel or _search(objective, items, state, paid, limit, most)
    return unbatched(_better(by_density, *single), items)


def _compiled_search(
    objective: SetFunction,
    items: Items,
    context: State | None,
    costs: Float[Array, "batch items"],
    budget: Float[Array, " batch"],
    k: int,
) -> tuple[Selections, tuple[Array, Array]] | None:
    """The search by a compiled kernel; None if there is none for this function or these arrays."""
    coverage = compiled_for_numpy(objective, items.features)
    if coverage is None:
        return None
    level = None if context is None else objective.empty(items, context).level
    indices, gains, bounds, item, gain = native.budgeted(
        coverage, items.features, items.mask, level, costs, budget, k
    )
    steps = max(1, int((indices >= 0).sum(axis=1).max()))
    indices, gains = indices[:, :steps], gains[:, :steps]
    return Selections.of(indices, gains, np.cumsum(gains, axis=1), bounds), (item, gain)


def _search(
    objective: SetFunction,
    items: Items,
    state: State,
    costs: Float[Array, "batch items"],
    budget: Float[Array, " batch"],
    k: int,
) -> tuple[Selections, tuple[Array, Array]]:
    """Greedy by gain per cost, and the index and gain of the best single item."""
    xp = namespace(items.features)
    left = budget
    reached = xp.zeros_like(budget)
    bounds = xp.full_like(budget, xp.inf)
    affordable = items.mask & (costs <= budget[:, None])
    available = affordable
    scale = xp.ones_like(budget)[:, None]
    single: tuple[Array, Array] | None = None
    indices: list[Array] = []
    gains: list[Array] = []
    values: list[Array] = []
    while True:
        seen = objective.gains(items, state)
        check_gains(objective, seen, items.mask, objective.value(state))
        all_gains = xp.astype(seen, costs.dtype)
        if single is None:
            single = best_available(all_gains, available)
            scale = _powers_below(single[1])[:, None]
        payable = xp.where(affordable, all_gains, xp.zeros_like(all_gains))
        # No set within both limits exceeds what either of them alone allows.
        by_cost = fractional_knapsack(payable * scale, costs, budget) / scale[:, 0]
        bounds = xp.minimum(bounds, reached + xp.minimum(by_cost, largest_sum(payable, k)))
        available = available & (costs <= left[:, None]) & (all_gains > 0)
        index, _ = best_available(all_gains * scale / costs, available)
        gain = xp.take_along_axis(all_gains, index[:, None], axis=1)[:, 0]
        running = xp.any(available, axis=1)
        if indices and (len(indices) == k or not bool(xp.any(running))):
            break
        selected = one_hot(index, items.size) & running[:, None]
        left = _left_of(left, xp.sum(xp.where(selected, costs, 0.0), axis=1))
        available = available & ~selected & running[:, None]
        state = objective.add(items, state, xp.astype(selected, items.features.dtype))
        gain = xp.where(running, gain, 0.0)
        reached = reached + gain
        indices.append(xp.where(running, index, -1))
        gains.append(gain)
        values.append(reached)
    chosen, added, sums = (xp.stack(arrays, axis=1) for arrays in (indices, gains, values))
    return Selections.of(chosen, added, sums, bounds), single


def _better(
    by_density: Selections, item: Int[Array, " batch"], gain: Float[Array, " batch"]
) -> Selections:
    """The single item, in the rows where it is worth more than everything that greedy selected."""
    xp = namespace(gain)
    alone = (gain > by_density.values[:, -1])[:, None]
    first = one_hot(xp.zeros_like(item), by_density.indices.shape[1])
    instead = xp.where(first, item[:, None], xp.full_like(item[:, None], -1))
    zeros = xp.zeros_like(by_density.gains)
    return Selections(
        indices=xp.where(alone, instead, by_density.indices),
        gains=xp.where(alone, xp.where(first, gain[:, None], zeros), by_density.gains),
        values=xp.where(alone, gain[:, None], by_density.values),
        counts=xp.where(alone[:, 0], xp.ones_like(by_density.counts), by_density.counts),
        bounds=by_density.bounds,
    )


def _checked_costs(costs: Any, items: Items) -> Float[Array, "batch items"]:
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


def _checked_budget(budget: Any, items: Items) -> Float[Array, " batch"]:
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
    scale = _powers_below(budget)
    can_be_paid = costs <= budget[:, None]
    budget = budget * scale
    paid = xp.where(can_be_paid, costs, xp.zeros_like(costs)) * scale[:, None]
    paid = xp.maximum(paid, xp.broadcast_to((budget * 2.0**-64)[:, None], paid.shape))
    return xp.where(can_be_paid, paid, 2 * budget[:, None]), budget


def _powers_below(numbers: Float[Array, " batch"]) -> Float[Array, " batch"]:
    """The powers of 2 that scale numbers to between ½ and 1, as far as there are any; 1 for 0."""
    exponents = [math.frexp(one)[1] if 0 < one < math.inf else 0 for one in numbers.tolist()]
    powers = [math.ldexp(1.0, -max(-1022, exponent)) for exponent in exponents]
    return namespace(numbers).asarray(powers, dtype=numbers.dtype, device=device_of(numbers))


def _left_of(amount: Float[Array, " batch"], cost: Float[Array, " batch"]) -> Array:
    """What a cost leaves of an amount, never more: the error of a difference is known exactly."""
    xp = namespace(amount)
    left = amount - cost
    taken = left - amount
    error = (amount - (left - taken)) - (cost + taken)
    return xp.where(error < 0, xp.nextafter(left, xp.full_like(left, -xp.inf)), left)


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
