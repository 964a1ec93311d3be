"""Lazy greedy: the picks of greedy, with far fewer gains, for one large ground set."""

from __future__ import annotations

import heapq

from dgn.arrays import Array, namespace
from dgn.maximizers.checks import checked_count, checked_share, checked_single_set
from dgn.maximizers.large import GrowingSelection
from dgn.maximizers.selection import Selection
from dgn.objectives import Items, SetFunction, State

_FIRST_BLOCK = 16
_LARGEST_BLOCK = 4096


def lazy_greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    context: State | None = None,
    stop_share: float = 0.0,
) -> Selection:
    """Pick up to k items of one set, the same ones that greedy picks (Minoux, 1978).

    A gain never grows as the set grows, so an old gain is a ceiling of today's. Only items whose
    ceiling reaches the top are looked at again. Memory is linear in the items. The certificate
    comes from the ceilings, for nothing.
    """
    items = checked_single_set(objective, items, context)
    k, stop_share = checked_count(k), checked_share("stop_share", stop_share)
    growing = GrowingSelection(objective, items, context, stop_share)
    queue = _CeilingQueue(growing.all_gains(), items.mask[0])
    bound = growing.bound(queue.ceilings, k)
    while len(growing.indices) < k and not queue.is_empty():
        index, gain = _pop_best(queue, growing)
        if growing.too_little(gain):
            queue.push(gain, index, len(growing.indices))
            break
        growing.pick(index, gain)
    return growing.finish(min(bound, growing.bound(queue.ceilings, k)))


def _pop_best(queue: _CeilingQueue, growing: GrowingSelection) -> tuple[int, float]:
    """Take the item of the largest gain today off the queue.

    Stale items are looked at again in blocks that double: a call costs much, an item little.
    """
    today = len(growing.indices)
    block = _FIRST_BLOCK
    while True:
        ceiling, index, stamp = queue.top()
        if stamp == today:
            queue.pop()
            return index, ceiling
        stale = queue.pop_stale(today, block)
        for index, gain in zip(stale, growing.gains_of(stale).tolist(), strict=True):
            queue.push(gain, index, today)
        block = min(2 * block, _LARGEST_BLOCK)


class _CeilingQueue:
    """Items by falling ceiling, the lowest index first among equals; a stamp says how old it is.

    Untouched items wait in one sorted array. Only those that were looked at again enter the heap,
    so that the queue of a million items stays small and cheap to make.
    """

    def __init__(self, gains: Array, mask: Array) -> None:
        xp = namespace(gains)
        self.ceilings = xp.where(mask, gains, xp.zeros_like(gains))
        ranked = xp.where(mask, gains, xp.full_like(gains, -xp.inf))
        self._untouched = xp.argsort(ranked, descending=True, stable=True)
        self._untouched_left = int(xp.sum(mask, dtype=xp.int64))
        self._next = 0
        self._looked_at: list[tuple[float, int, int]] = []

    def is_empty(self) -> bool:
        return not self._looked_at and self._next >= self._untouched_left

    def top(self) -> tuple[float, int, int]:
        """The largest ceiling, its item and its stamp."""
        negated, index, stamp = min(self._heads())
        return -negated, index, stamp

    def pop(self) -> int:
        """Take the item of the largest ceiling off; nothing more can be gained by it."""
        index = self._pop_head()
        self.ceilings[index] = 0
        return index

    def pop_stale(self, today: int, most: int) -> list[int]:
        """Take items off the top until one is of today, or until there are `most`."""
        stale: list[int] = []
        while len(stale) < most and not self.is_empty() and self.top()[2] != today:
            stale.append(self._pop_head())
        return stale

    def push(self, ceiling: float, index: int, stamp: int) -> None:
        self.ceilings[index] = ceiling
        heapq.heappush(self._looked_at, (-ceiling, index, stamp))

    def _heads(self) -> list[tuple[float, int, int]]:
        heads = self._looked_at[:1]
        if self._next < self._untouched_left:
            index = int(self._untouched[self._next])
            heads.append((-self.ceilings[index].item(), index, 0))
        return heads

    def _pop_head(self) -> int:
        heads = self._heads()
        if self._looked_at and min(heads) == self._looked_at[0]:
            return heapq.heappop(self._looked_at)[1]
        self._next += 1
        return heads[-1][1]
