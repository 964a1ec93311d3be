"""Searches for one large ground set: lazy greedy and stochastic greedy, with linear memory.

Gains are computed in chunks of a few megabytes, and the state is a level without a membership for
every item, so that nothing but the features has the size of the ground set.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.native import LargeSet
from dgn.core.search._checks import (
    check_gains,
    checked_count,
    checked_items,
    compiled_for_numpy,
    may_fall,
    over_sets,
)
from dgn.core.search.constraints import Constraints
from dgn.core.search.room import Quotas, Room
from dgn.core.search.selection import Selection, Selections
from dgn.core.search.sparse import is_sparse, sparse_set
from dgn.errors import InvalidInput

_ELEMENTS_PER_CHUNK = 1 << 20
_FIRST_BLOCK = 16
_LARGEST_BLOCK = 4096


def lazy_greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
) -> Selection | Selections:
    """Select the same items as greedy, with far fewer evaluations (Minoux, 1978).

    A gain never grows as the set grows, so an old gain is an upper bound of the current one. Only
    items whose bound reaches the top are evaluated again. The certificate is that of the first and
    the last prefix; of the first alone if f says that it is not monotone, where the search stops as
    greedy does.

    Args:
        objective: The set function f. It must be evaluable on parts of a set (see SetFunction).
        items: Items, or an array of features: [items, features] or [batch, items, features]; or a
            SciPy sparse matrix, [items, features].
        k: The number of items to select.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items that are already there, as for `greedy`.
        pinned: Items that must be selected, as for `greedy`.
        groups: The group of every item, as for `greedy`.
        max_per_group: The most items of each group, as for `greedy`.

    Returns:
        One Selection for a single set, Selections for a batch.
    """
    k = checked_count(k)
    limits = {"given": given, "pinned": pinned, "groups": groups, "max_per_group": max_per_group}
    if is_sparse(items):
        large = sparse_set(objective, items, context)
        return search_lazily(large, k, Constraints.of(large.mask, k, single=True, **limits))
    items = checked_items(objective, items, context)

    def search(
        function: SetFunction, own: Items, context: State | None, constraints: Constraints
    ) -> Selection:
        coverage = compiled_for_numpy(function, own.features)
        if coverage is not None:
            level = function.empty(own.slice(0, 1), context).level[0]
            large = LargeSet(coverage, own.features[0], own.mask[0], level)
            return search_lazily(large, k, constraints)
        growing = _GrowingSelection(function, own, context)
        room = growing.begin(constraints, k)
        quotas = Quotas(room)
        queue = _CeilingQueue(growing.all_gains(), room.allowed[0])
        bound, stops = growing.bound(queue.ceilings, room), may_fall(function)
        for step in range(int(room.counts[0])):
            best = _pop_best(queue, growing, quotas, step)
            if best is None or (stops and best[1] <= 0):
                break
            growing.select(*best)
            quotas.take(best[0])
        last = math.inf if stops else growing.bound(growing.all_gains(), room)
        return growing.finish(min(bound, last))

    constraints = Constraints.of(items.mask, k, single=items.single, **limits)
    return over_sets(search, objective, items, context, constraints)


def stochastic_greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    seed: int = 0,
    epsilon: float = 0.1,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
) -> Selection | Selections:
    """Select up to k items, each the best of a random sample of (n/k)·log(1/ε) items.

    The value is at least 1 − 1/e − ε of the best possible one on average (Mirzasoleiman et al.,
    2015), with n·log(1/ε) evaluations in all, whatever k is; one more pass over the items gives
    the certificate. The same seed selects the same items.

    Args:
        objective: The set function f. It must be evaluable on parts of a set (see SetFunction).
        items: Items, or an array of features: [items, features] or [batch, items, features]; or a
            SciPy sparse matrix, [items, features].
        k: The number of items to select.
        seed: The seed of the random samples.
        epsilon: Between 0 and 1; smaller values draw larger samples.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items that are already there, as for `greedy`.
        pinned: Items that must be selected, as for `greedy`.
        groups: Refused: samples that ignore the groups have no guarantee.
        max_per_group: Refused, like `groups`.

    Returns:
        One Selection for a single set, Selections for a batch.
    """
    if groups is not None or max_per_group is not None:
        raise InvalidInput(
            "groups",
            message="stochastic_greedy has no guarantee for groups and does not take them; use "
            "lazy_greedy, which does.",
        )
    k = checked_count(k)
    if not isinstance(cast("Any", epsilon), float) or not 0 < epsilon < 1:
        raise InvalidInput("epsilon", found=repr(epsilon), allowed="a number between 0 and 1")
    seed = checked_count(seed, "seed", 0)
    if is_sparse(items):
        large = sparse_set(objective, items, context)
        constraints = Constraints.of(large.mask, k, single=True, given=given, pinned=pinned)
        return search_samples(large, k, seed, epsilon, constraints)
    items = checked_items(objective, items, context, needs_monotone=True)

    def search(
        function: SetFunction, own: Items, context: State | None, constraints: Constraints
    ) -> Selection:
        growing = _GrowingSelection(function, own, context)
        room = growing.begin(constraints, k)
        count = k - len(growing.indices)
        remaining = np.asarray([i for i, free in enumerate(room.allowed[0].tolist()) if free])
        sample_size = math.ceil(len(remaining) / max(1, count) * math.log(1 / epsilon))
        random = np.random.default_rng(seed)
        while len(growing.indices) < k and len(remaining):
            size = min(sample_size, len(remaining))
            chosen = np.sort(random.choice(len(remaining), size, replace=False, shuffle=False))
            gains = growing.gains_of(remaining[chosen])
            best = int(growing.xp.argmax(gains))
            gain = gains[best].item()
            growing.select(int(remaining[chosen[best]]), gain)
            remaining = np.delete(remaining, chosen[best])
        return growing.finish(growing.bound(growing.all_gains(), room))

    constraints = Constraints.of(items.mask, k, single=items.single, given=given, pinned=pinned)
    return over_sets(search, objective, items, context, constraints)


def search_lazily(large: LargeSet, k: int, constraints: Constraints) -> Selection:
    """The search by a compiled kernel; the certificate is that of the first and the last prefix."""
    large, room, pinned, pinned_gains = _begun(large, k, constraints)
    count = int(room.counts[0])
    if not count:
        return Selection.of(pinned, pinned_gains, -math.inf, large.gains())
    groups, quotas = (None if one is None else one[0] for one in (room.groups, room.quotas))
    indices, gains, first, after = large.lazy(count, groups, quotas)
    left = after.gains()
    left[indices] = 0
    bound = math.fsum(gains) + room.largest_gain(left[None, :])[0].item()
    bound = min(bound, room.largest_gain(first[None, :])[0].item())
    if pinned:
        missing, gains = bound - math.fsum(gains), [*pinned_gains, *gains]
        # From the sum as it is rounded in a selection, so that the best set is seen to be the best.
        bound = list(itertools.accumulate(gains))[-1] + missing
    return Selection.of([*pinned, *indices], gains, bound, left)


def _begun(
    large: LargeSet, k: int, constraints: Constraints
) -> tuple[LargeSet, Room, list[int], list[float]]:
    """The set after what is given and pinned; what is left to a search; the pinned items, gains."""
    mask = large.mask
    large = large.raised(*constraints.given_of(0))
    gains: list[float] = []
    for item in constraints.pinned_of(0):
        gains.append(large.gains(np.asarray([item], np.int64))[0].item())
        large = large.raised(item)
    room = constraints.room(mask, k)
    return large.limited(room.allowed[0]), room, list(constraints.pinned_of(0)), gains


class _GrowingSelection:
    """A selection from one large set that grows item by item."""

    def __init__(self, objective: SetFunction, items: Items, context: State | None) -> None:
        self.objective, self.items = objective, items
        self.xp = namespace(items.features)
        self._coverage = compiled_for_numpy(objective, items.features)
        if self._coverage is not None:
            self._features = np.ascontiguousarray(items.features[0])  # once, and not at every step
        self.level = objective.empty(items.slice(0, 1), context)
        self.indices: list[int] = []
        self.gains: list[float] = []
        self.value = 0.0

    def begin(self, constraints: Constraints, k: int) -> Room:
        """Add what is given and what is pinned; returns what is left to a search."""
        for index in constraints.given_of(0):
            self._cover(index)
        for index in constraints.pinned_of(0):
            self.select(index, self.gains_of([index])[0].item())
        return constraints.room(self.items.mask, k)

    def gains_of(self, indices: Sequence[int] | Array) -> Float[Array, " chosen"]:
        """f(v | selected items) of these items, [chosen]."""
        if self._coverage is not None:
            return self._compiled().gains(np.asarray(indices, np.int64))
        index = self.xp.asarray(indices, device=device_of(self.items.features))
        chosen = self.items.gather(index[None, :])
        return self.objective.gains(chosen, self.objective.empty(chosen, self.level))[0]

    def all_gains(self) -> Float[Array, " items"]:
        """f(v | selected items) of every item, [items]; 0 for the selected ones."""
        gains = self._compiled().gains() if self._coverage is not None else self._by_chunks()
        value = self.xp.asarray([self.value], device=device_of(gains))
        check_gains(self.objective, gains[None, :], self.items.mask, value)
        for index in self.indices:
            gains[index] = 0
        return gains

    def _by_chunks(self) -> Float[Array, " items"]:
        rows = max(1, _ELEMENTS_PER_CHUNK // self.items.features.shape[2])
        chunks: list[Array] = []
        for start in range(0, self.items.size, rows):
            part = self.items.slice(start, start + rows)
            chunks.append(self.objective.gains(part, self.objective.empty(part, self.level))[0])
        return self.xp.concat(chunks)

    def _compiled(self) -> LargeSet:
        assert self._coverage is not None  # noqa: S101
        return LargeSet(self._coverage, self._features, self.items.mask[0], self.level.level[0])

    def _cover(self, index: int) -> None:
        item = self.items.slice(index, index + 1)
        state = self.objective.empty(item, self.level)
        self.level = self.objective.add(item, state, self.xp.ones_like(state.outside))

    def select(self, index: int, gain: float) -> None:
        """Add one item."""
        self._cover(index)
        self.indices.append(index)
        self.gains.append(gain)
        # Gains add up to the value; the difference of two values would drown in the context's.
        self.value += gain

    def bound(self, ceilings: Float[Array, " items"], room: Room) -> float:
        """What no allowed set can exceed if no gain exceeds its ceiling."""
        return self.value + room.largest_gain(ceilings[None, :])[0].item()

    def finish(self, bound: float) -> Selection:
        """The selection as it stands."""
        return Selection.of(self.indices, self.gains, bound, self.items.features)


def _pop_best(
    queue: _CeilingQueue, growing: _GrowingSelection, quotas: Quotas, current: int
) -> tuple[int, float] | None:
    """Remove the item with the largest current gain from the queue; None if none is allowed.

    Outdated items are evaluated again in blocks that double: a call is expensive, an item cheap.
    `current` is the number of items that were selected since the queue was made.
    """
    block = _FIRST_BLOCK
    while not queue.is_empty():
        ceiling, index, stamp = queue.top()
        if not quotas.allow(index):
            queue.pop()
        elif stamp == current:
            queue.pop()
            return index, ceiling
        else:
            popped = queue.pop_outdated(current, block)
            outdated = [one for one in popped if quotas.allow(one)] or popped[:1]
            for one, gain in zip(outdated, growing.gains_of(outdated).tolist(), strict=True):
                queue.push(gain, one, current)
            block = min(2 * block, _LARGEST_BLOCK)
    return None


class _CeilingQueue:
    """Items by decreasing ceiling, the lowest index first among equals; a stamp gives the age.

    Untouched items wait in one sorted array. Only items that were evaluated again enter the heap,
    so that the queue of a million items stays small and cheap to create.
    """

    def __init__(self, gains: Array, mask: Array) -> None:
        xp = namespace(gains)
        self.ceilings = xp.where(mask, gains, xp.zeros_like(gains))
        ranked = xp.where(mask, gains, xp.full_like(gains, -xp.inf))
        self._untouched = xp.argsort(-ranked, stable=True)
        self._untouched_left = int(xp.sum(mask, dtype=xp.int64))
        self._next = 0
        self._evaluated: list[tuple[float, int, int]] = []

    def is_empty(self) -> bool:
        return not self._evaluated and self._next >= self._untouched_left

    def top(self) -> tuple[float, int, int]:
        """The largest ceiling, its item and its stamp."""
        negated, index, stamp = min(self._heads())
        return -negated, index, stamp

    def pop(self) -> int:
        """Remove the item with the largest ceiling; it has nothing more to add."""
        index = self._pop_head()
        self.ceilings[index] = 0
        return index

    def pop_outdated(self, current: int, most: int) -> list[int]:
        """Remove items from the top until one is current, or until there are `most`."""
        outdated: list[int] = []
        while len(outdated) < most and not self.is_empty() and self.top()[2] != current:
            outdated.append(self._pop_head())
        return outdated

    def push(self, ceiling: float, index: int, stamp: int) -> None:
        self.ceilings[index] = ceiling
        heapq.heappush(self._evaluated, (-ceiling, index, stamp))

    def _heads(self) -> list[tuple[float, int, int]]:
        heads = self._evaluated[:1]
        if self._next < self._untouched_left:
            index = int(self._untouched[self._next])
            heads.append((-self.ceilings[index].item(), index, 0))
        return heads

    def _pop_head(self) -> int:
        heads = self._heads()
        if self._evaluated and min(heads) == self._evaluated[0]:
            return heapq.heappop(self._evaluated)[1]
        self._next += 1
        return heads[-1][1]


def search_samples(
    large: LargeSet, k: int, seed: int, epsilon: float, constraints: Constraints
) -> Selection:
    """Stochastic greedy; see `stochastic_greedy`."""
    large, room, indices, gains = _begun(large, k, constraints)
    remaining = np.flatnonzero(room.allowed[0])
    count = max(1, k - len(indices))
    sample_size = math.ceil(len(remaining) / count * math.log(1 / epsilon))
    random = np.random.default_rng(seed)
    while len(indices) < k and len(remaining):
        size = min(sample_size, len(remaining))
        chosen = np.sort(random.choice(len(remaining), size, replace=False, shuffle=False))
        found = large.gains(remaining[chosen])
        best = int(found.argmax())
        index = int(remaining[chosen[best]])
        indices.append(index)
        gains.append(found[best].item())
        large = large.raised(index)
        remaining = np.delete(remaining, chosen[best])
    left = large.gains()
    left[indices] = 0
    bound = math.fsum(gains) + room.largest_gain(left[None, :])[0].item()
    return Selection.of(indices, gains, bound, left)
