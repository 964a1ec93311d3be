"""Greedy in its plain form, for every set function and every array library: the definition.

`search_batch` selects k items of every set of a batch at once; `search_within` searches one set
within constraints. The kernels compute the same, and are tested against it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Bool, Float, Int, device_of, namespace
from dgn.core.checks import check_gains
from dgn.core.constraints import Constraints, as_numpy
from dgn.core.functions import SetFunction
from dgn.core.items import Items, State
from dgn.core.selection import Selections, largest_sum, power_below


def search_batch(
    objective: SetFunction, items: Items, state: State, k: int, allowed: Bool[Array, "..."]
) -> Selections:
    """k times, add the item with the largest gain to every set; ties go to the lowest index.

    Args:
        objective: The set function.
        items: The ground sets.
        state: What is already covered.
        k: How many items to select.
        allowed: [batch, items], False for items that must not be selected.
    """
    xp = namespace(items.features)
    available = allowed
    indices: list[Array] = []
    gains: list[Array] = []
    seen: list[Array] = []
    for _ in range(min(k, items.size)):
        seen.append(objective.gains(items, state))
        check_gains(objective, seen[-1], available, objective.value(state))
        index, gain = best_available(seen[-1], available)
        running = xp.any(available, axis=1)
        selected = one_hot(index, items.size) & running[:, None]
        available = available & ~selected
        state = objective.add(items, state, xp.astype(selected, items.features.dtype))
        indices.append(xp.where(running, index, -1))
        gains.append(xp.where(running, gain, 0.0))
    chosen, added = xp.stack(indices, axis=1), xp.stack(gains, axis=1)
    values = xp.cumulative_sum(added, axis=1)
    seen.append(objective.gains(items, state))
    check_gains(objective, seen[-1], available, objective.value(state))
    # Items that must not be selected bound nothing; selected ones have no gain.
    bounded = [xp.where(allowed, one, xp.zeros_like(one)) for one in seen]
    return Selections.of(chosen, added, values, _least_bound(values, xp.stack(bounded, axis=1), k))


def search_within(
    objective: SetFunction,
    items: Items,
    state: State,
    constraints: Constraints,
    divisors: NDArray[np.float64] | None = None,
    *,
    skipped_cover: bool = False,
) -> tuple[list[int], list[float], float, tuple[int, float]]:
    """Greedy on one set within constraints, each time the item with the largest gain / divisor.

    With costs, an item without a gain is not selected, and items that do not fit any more are
    skipped; without costs, the search goes on as long as an item is allowed.

    Args:
        objective: The set function.
        items: One ground set.
        state: What is already covered.
        constraints: What may still be added.
        divisors: [items], powers of the costs; None for 1.
        skipped_cover: Whether an item that does not fit covers when it is skipped.

    Returns:
        The selected items; their gains; what no allowed set exceeds; and the best item by itself
        with its gain, −1 and −∞ if none is allowed.
    """
    pays = constraints.costs is not None
    indices: list[int] = []
    gains: list[float] = []
    left, compared = constraints, constraints.allowed.copy()
    kept = state  # without the items that were skipped
    reached, bound, scale = 0.0, math.inf, 1.0
    single = (-1, -math.inf)
    while True:
        # Of the set with what was skipped, which bounds the best set as every set does.
        seen = objective.gains(items, state)
        check_gains(objective, seen, items.mask, objective.value(state))
        values = as_numpy(seen)[0].astype(np.float64)
        fits = left.open() & compared
        if not indices and kept is state:
            best = _best(values, fits)
            if best >= 0:
                single = (best, float(values[best]))
            scale = power_below(single[1])
        bound = min(bound, reached + constraints.largest_gain(values))
        if left.k < 1:
            break
        eligible = compared if skipped_cover else fits
        if left.groups is not None and left.quotas is not None:
            eligible = eligible & (left.quotas[left.groups] > 0)
        if pays:
            eligible = eligible & (values > 0)
        if not (eligible & fits).any():
            break
        scores = values * scale if pays else values
        item = _best(scores if divisors is None else scores / divisors, eligible)
        compared[item] = False
        reached += float(values[item])
        after = _with(objective, items, state, item)
        if fits[item]:
            own = values if kept is state else as_numpy(objective.gains(items, kept))[0]
            indices.append(item)
            gains.append(float(own[item]))
            left = left.after(item)
            kept = after if kept is state else _with(objective, items, kept, item)
        state = after
    return indices, gains, bound, single


def joined(objective: SetFunction, items: Items, state: State, index: int) -> tuple[float, State]:
    """What one item of one set adds, and the state after it."""
    gains = objective.gains(items, state)
    check_gains(objective, gains, items.mask, objective.value(state))
    return float(gains[0, index]), _with(objective, items, state, index)


def best_available(
    scores: Float[Array, "batch items"], available: Bool[Array, "batch items"]
) -> tuple[Int[Array, " batch"], Float[Array, " batch"]]:
    """The index and the score of the best available item of every set, the lowest index first."""
    xp = namespace(scores)
    scores = xp.where(available, scores, -xp.inf)
    return xp.argmax(scores, axis=1), xp.max(scores, axis=1)


def one_hot(indices: Int[Array, " batch"], size: int) -> Bool[Array, "batch size"]:
    """True at one index per row; nowhere for −1."""
    xp = namespace(indices)
    return xp.arange(size, device=device_of(indices))[None, :] == indices[:, None]


def _with(objective: SetFunction, items: Items, state: State, index: int) -> State:
    """The state after an item of one set was added."""
    xp = namespace(items.features)
    selected = xp.arange(items.size, device=device_of(items.features)) == index
    return objective.add(items, state, xp.astype(selected, items.features.dtype)[None, :])


def _best(scores: NDArray[np.float64], allowed: NDArray[np.bool_]) -> int:
    return int(np.where(allowed, scores, -np.inf).argmax()) if allowed.any() else -1


def _least_bound(
    values: Float[Array, "batch picks"], gains: Float[Array, "batch prefixes items"], k: int
) -> Float[Array, " batch"]:
    """The smallest bound over all prefixes of the selection, the empty one included."""
    xp = namespace(values)
    before = xp.concat([xp.zeros_like(values[:, :1]), values], axis=1)
    return xp.min(before + largest_sum(gains, k), axis=1)
