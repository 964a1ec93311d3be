"""Greedy within constraints, for batches: what is given and pinned first, then the search.

    start = begin(f, items, context, constraints)     # the state, and the gains of pinned items
    room = constraints.room(items.mask, k)            # what may still be added
    found = search(f, items, start.state, room)       # by gain, or by gain / cost**exponents
    start.completed(found)                            # the pinned items, then what was found

`search` is the plain form for every set function and array library, or a compiled kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.arrays import Array, Bool, Float, Int, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import check_gains, compiled_for_numpy, may_fall
from dgn.core.search.constraints import Constraints
from dgn.core.search.room import Room
from dgn.core.search.selection import Selections


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found in its room; numbers are float64.

    Attributes:
        indices: [batch, steps], −1 where nothing was selected.
        gains: [batch, steps], 0 there.
        bounds: [batch], what no allowed set can add.
        single: [batch], the best item that is allowed by itself.
        single_gain: [batch], −∞ where there is none.
    """

    indices: Array
    gains: Array
    bounds: Array
    single: Array
    single_gain: Array

    def followed_by(self, later: Found) -> Found:
        """What was found first, and what was found after it."""
        xp = namespace(self.gains)
        indices = xp.concat([self.indices, later.indices], axis=1)
        order = xp.argsort(xp.astype(indices < 0, xp.int64), axis=1, stable=True)
        return Found(
            xp.take_along_axis(indices, order, axis=1),
            xp.take_along_axis(xp.concat([self.gains, later.gains], axis=1), order, axis=1),
            self.bounds,
            self.single,
            self.single_gain,
        )

    @property
    def values(self) -> Array:
        """[batch, steps], what was added so far."""
        return namespace(self.gains).cumulative_sum(self.gains, axis=1)


@dataclass(frozen=True, eq=False)
class Start:
    """The sets that a search completes.

    Attributes:
        state: After what is given and what is pinned.
        pinned: [batch, most], the pinned items, −1 where a set has fewer.
        gains: [batch, most], what they added, 0 there.
    """

    state: State
    pinned: Array
    gains: Array

    def completed(self, found: Found) -> Selections:
        """The pinned items of every set, and then what was found."""
        if not self.pinned.shape[1]:
            return Selections.of(found.indices, found.gains, found.values, found.bounds)
        xp = namespace(found.gains)
        gains = xp.astype(self.gains, found.gains.dtype)
        indices = xp.concat([self.pinned, found.indices], axis=1)
        order = xp.argsort(xp.astype(indices < 0, xp.int64), axis=1, stable=True)
        indices = xp.take_along_axis(indices, order, axis=1)
        added = xp.take_along_axis(xp.concat([gains, found.gains], axis=1), order, axis=1)
        values = xp.cumulative_sum(added, axis=1)
        most = max(1, int(xp.max(xp.sum(indices >= 0, axis=1, dtype=xp.int64))))
        # What is missing is added to the sum as it is rounded here: 0 must stay 0.
        bounds = values[:, -1] + (found.bounds - found.values[:, -1])
        return Selections.of(indices[:, :most], added[:, :most], values[:, :most], bounds)


def begin(
    objective: SetFunction, items: Items, context: State | None, constraints: Constraints
) -> Start:
    """The state in which a search starts, and what the pinned items add one after the other.

    Items are added one by one: the sum of several would depend on the batch and on padding.
    """
    xp, device = namespace(items.features), device_of(items.features)
    state = objective.empty(items, context)
    rows = range(items.batch) if constraints.given is not None else ()
    for index in _columns([constraints.given_of(row) for row in rows]):
        _, state = _joined(objective, items, state, xp.asarray(index, device=device))
    pinned = _columns(constraints.pinned or ())
    gains: list[Array] = []
    for index in pinned:
        gain, state = _joined(objective, items, state, xp.asarray(index, device=device))
        gains.append(gain)
    if not gains:
        none = xp.zeros((items.batch, 0), dtype=items.features.dtype, device=device)
        return Start(state, xp.astype(none, xp.int64), none)
    return Start(state, xp.asarray(np.stack(pinned, 1), device=device), xp.stack(gains, axis=1))


def _joined(
    objective: SetFunction, items: Items, state: State, index: Int[Array, " batch"]
) -> tuple[Float[Array, " batch"], State]:
    """What one item of every set adds, and the state after it; −1 for none.

    Functions that have a kernel can be evaluated on these items alone, which takes far less time.
    """
    xp, dtype = namespace(items.features), items.features.dtype
    member = xp.astype(one_hot(index, items.size), dtype)
    if native.compiled(objective) is None:
        gains = objective.gains(items, state)
        check_gains(objective, gains, items.mask, objective.value(state))
        gain = xp.sum(xp.where(member > 0, gains, xp.zeros_like(gains)), axis=1)
        return gain, objective.add(items, state, member)
    rows = xp.arange(items.batch, device=device_of(index))
    part = Items(items.features[rows, xp.where(index < 0, 0, index)][:, None, :])
    before = objective.empty(part, state)
    is_one = xp.astype(index >= 0, dtype)
    after = objective.add(part, before, is_one[:, None])
    outside = state.outside * (1 - member)
    gain = objective.gains(part, before)[:, 0] * is_one
    return gain, State(after.level, outside, maker=state.maker)


def _columns(rows: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """The first items of all rows, then the second ones, and so on; −1 where a row has fewer."""
    most = max(map(len, rows), default=0)
    return [
        np.asarray([row[place] if place < len(row) else -1 for row in rows], np.int64)
        for place in range(most)
    ]


def constrained_greedy(
    objective: SetFunction,
    items: Items,
    context: State | None,
    constraints: Constraints,
    k: int,
) -> Selections:
    """Greedy by gain within constraints, with numbers as precise as the features."""
    start = begin(objective, items, context, constraints)
    found = search(objective, items, start.state, constraints.room(items.mask, k))
    return as_precise(start.completed(found), items)


def as_precise(selections: Selections, items: Items) -> Selections:
    """The selections with numbers in the dtype of the features."""
    xp, dtype = namespace(items.features), items.features.dtype
    return Selections(
        indices=selections.indices,
        gains=xp.astype(selections.gains, dtype),
        values=xp.astype(selections.values, dtype),
        counts=selections.counts,
        bounds=xp.astype(selections.bounds, dtype),
    )


def search(
    objective: SetFunction,
    items: Items,
    state: State,
    room: Room,
    exponents: Float[Array, " batch"] | None = None,
) -> Found:
    """Greedy in a room: each time the allowed item with the largest gain / cost**exponent.

    With costs, an item without a gain is not selected, and items that do not fit any more are
    skipped; without costs, the search goes on as long as an item is allowed, or has a gain if the
    function is not monotone.
    """
    divisors = None
    if room.costs is not None and exponents is not None:
        xp = namespace(room.costs)
        if bool(xp.all(exponents == 1)):
            divisors = room.costs
        elif bool(xp.any(exponents > 0)):
            divisors = room.costs ** exponents[:, None]
    coverage = compiled_for_numpy(objective, items.features)
    if coverage is None:
        found = search_plainly(objective, items, state, room, divisors)
    else:
        found = search_by_kernel(coverage, items, state, room, divisors)
    left = None if room.compared is None else room.after(found.indices)
    if left is None or not bool(namespace(left.allowed).any(left.allowed)):
        return found
    # What was skipped covers all that is left; without it, some items may still add something.
    for place in range(found.indices.shape[1]):
        member = one_hot(found.indices[:, place], items.size)
        state = objective.add(items, state, namespace(member).astype(member, items.features.dtype))
    return found.followed_by(search(objective, items, state, left, exponents))


def search_by_kernel(
    coverage: native.Coverage,
    items: Items,
    state: State,
    room: Room,
    divisors: Array | None,
    *,
    isa: int | None = None,
) -> Found:
    """The search by a compiled kernel, for NumPy arrays."""
    indices, *others = native.constrained(
        coverage,
        items.features,
        room.allowed if room.compared is None else room.compared,
        state.level,
        room.counts,
        costs=room.costs,
        budgets=room.budget,
        divisors=divisors,
        groups=room.groups,
        quotas=room.quotas,
        skipped_cover=room.compared is not None,
        isa=isa,
    )
    steps = max(1, int((indices >= 0).sum(axis=1).max()))
    gains, *rest = others
    return Found(indices[:, :steps], gains[:, :steps], *rest)


def search_plainly(
    objective: SetFunction, items: Items, state: State, room: Room, divisors: Array | None
) -> Found:
    """The search for every set function and every array library."""
    xp = namespace(items.features)
    costs, quotas, left = room.costs, room.quotas, room.budget
    allowed, counts = room.allowed, room.counts
    compared = allowed if room.compared is None else room.compared
    reached = xp.zeros(items.batch, dtype=xp.float64, device=device_of(items.features))
    bounds, scale = xp.full_like(reached, xp.inf), xp.ones_like(reached)[:, None]
    taken = xp.zeros_like(counts)
    kept, stops = state, may_fall(objective)
    single: tuple[Array, Array] | None = None
    indices: list[Array] = []
    gains: list[Array] = []
    while True:
        # Of the set with what was skipped, which bounds the best set as every set does.
        seen = objective.gains(items, state)
        check_gains(objective, seen, items.mask, objective.value(state))
        all_gains = xp.astype(seen, reached.dtype)
        if single is None:
            single = best_available(all_gains, allowed)
            scale = powers_below(single[1])[:, None]
        if objective.submodular and not (stops and indices):
            bounds = xp.minimum(bounds, reached + room.largest_gain(all_gains, scale))
        compared = compared & (counts > taken)[:, None]
        if costs is not None or stops:
            compared = compared & (all_gains > 0)
        if quotas is not None:
            compared = compared & (xp.take_along_axis(quotas, room.groups, axis=1) > 0)
        fits = compared
        if costs is not None and left is not None:
            fits = compared & (costs <= left[:, None])
            compared = fits if room.compared is None else compared
        running = xp.any(fits, axis=1)
        if indices and not bool(xp.any(running)):
            break
        scores = all_gains if costs is None else all_gains * scale
        scores = scores if divisors is None else scores / divisors
        index, _ = best_available(scores, compared)
        joining = one_hot(index, items.size) & running[:, None]
        selected = joining & fits
        is_taken = xp.any(selected, axis=1)
        own = seen if kept is state else objective.gains(items, kept)
        gain = xp.sum(xp.where(selected, xp.astype(own, reached.dtype), 0.0), axis=1)
        if costs is not None and left is not None:
            left = left_of(left, xp.sum(xp.where(selected, costs, 0.0), axis=1))
        if quotas is not None:
            group = xp.take_along_axis(room.groups, index[:, None], axis=1)[:, 0]
            used = one_hot(group, quotas.shape[1]) & is_taken[:, None]
            quotas = quotas - xp.astype(used, quotas.dtype)
        compared = compared & ~joining & running[:, None]
        after = objective.add(items, state, xp.astype(joining, items.features.dtype))
        if kept is state and bool(xp.all(is_taken == running)):
            kept = after
        else:
            kept = objective.add(items, kept, xp.astype(selected, items.features.dtype))
        state = after
        reached = reached + xp.sum(xp.where(joining, all_gains, 0.0), axis=1)
        taken = taken + xp.astype(is_taken, taken.dtype)
        indices.append(xp.where(is_taken, index, -1))
        gains.append(gain)
    chosen, added = xp.stack(indices, axis=1), xp.stack(gains, axis=1)
    order = xp.argsort(xp.astype(chosen < 0, xp.int64), axis=1, stable=True)
    steps = max(1, int(xp.max(taken)))
    chosen = xp.take_along_axis(chosen, order, axis=1)[:, :steps]
    added = xp.take_along_axis(added, order, axis=1)[:, :steps]
    return Found(chosen, added, bounds, *single)


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


def powers_below(numbers: Float[Array, " batch"]) -> Float[Array, " batch"]:
    """The powers of 2 that scale numbers to between ½ and 1, as far as there are any; 1 for 0."""
    exponents = [math.frexp(one)[1] if 0 < one < math.inf else 0 for one in numbers.tolist()]
    powers = [math.ldexp(1.0, -max(-1022, exponent)) for exponent in exponents]
    return namespace(numbers).asarray(powers, dtype=numbers.dtype, device=device_of(numbers))


def left_of(amount: Float[Array, " batch"], cost: Float[Array, " batch"]) -> Array:
    """What a cost leaves of an amount, never more: the error of a difference is known exactly."""
    xp = namespace(amount)
    left = amount - cost
    taken = left - amount
    error = (amount - (left - taken)) - (cost + taken)
    return xp.where(error < 0, xp.nextafter(left, xp.full_like(left, -xp.inf)), left)
