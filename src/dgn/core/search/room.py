"""What a search may add to a set: which items, how many, of which groups, at which costs.

`Room.largest_gain` is the bound of every certificate: the largest sum of gains of an allowed set.
Groups with quotas and a number of items together are a truncated partition matroid, in which greedy
reaches at least 1/2 of the best value (Fisher, Nemhauser and Wolsey, 1978), and in which the
largest sum is that of the largest gains of every group, and of those the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Bool, Float, Int, device_of, namespace
from dgn.core.search.selection import fractional_knapsack, largest_sum


@dataclass(frozen=True, eq=False)
class Room:
    """What may be added to a set, and what it may be worth at most.

    Attributes:
        allowed: [batch, items], which items may be added, each by itself.
        counts: [batch], how many of them.
        groups: [batch, items], the number of the group of each item; None without groups.
        quotas: [batch, groups], how many of each group.
        costs: [batch, items]; None without a budget.
        budget: [batch], what may be spent.
        compared: [batch, items], what a search compares: what is allowed, and items that do not
            fit, which are skipped and cover. None if they do not.
    """

    allowed: Bool[Array, "batch items"]
    counts: Int[Array, " batch"]
    groups: Int[Array, "batch items"] | None = None
    quotas: Int[Array, "batch groups"] | None = None
    costs: Float[Array, "batch items"] | None = None
    budget: Float[Array, " batch"] | None = None
    compared: Bool[Array, "batch items"] | None = None

    def with_costs(
        self,
        costs: Float[Array, "batch items"],
        budget: Float[Array, " batch"],
        *,
        skipped_cover: bool = False,
    ) -> Room:
        """The same room within a budget as well."""
        fits = self.allowed & (costs <= budget[:, None])
        compared = self.allowed if skipped_cover else None
        return replace(self, allowed=fits, costs=costs, budget=budget, compared=compared)

    def after(self, indices: Int[Array, "batch picks"]) -> Room:
        """What is left of the room after some items, −1 for none; all other limits stay.

        Only a room with costs and skipped items needs it.
        """
        xp, costs, budget = namespace(self.allowed), self.costs, self.budget
        assert costs is not None  # noqa: S101
        assert budget is not None  # noqa: S101
        places = xp.arange(costs.shape[1], device=device_of(costs))
        chosen = xp.any(indices[:, :, None] == places[None, None, :], axis=1)
        spent = [
            [cost for cost, own in zip(*row, strict=True) if own]
            for row in zip(costs.tolist(), chosen.tolist(), strict=True)
        ]
        rest = [remainder(*row) for row in zip(budget.tolist(), spent, strict=True)]
        left = xp.asarray(rest, dtype=budget.dtype, device=device_of(budget))
        counts = self.counts - xp.sum(chosen, axis=1, dtype=self.counts.dtype)
        quotas = self.quotas
        allowed = self.allowed & ~chosen & (costs <= left[:, None]) & (counts > 0)[:, None]
        if quotas is not None and self.groups is not None:
            numbers = xp.arange(quotas.shape[1], device=device_of(costs))
            in_group = (self.groups[:, :, None] == numbers) & chosen[:, :, None]
            quotas = quotas - xp.sum(in_group, axis=1, dtype=quotas.dtype)
            allowed = allowed & (xp.take_along_axis(quotas, self.groups, axis=1) > 0)
        return Room(allowed, counts, self.groups, quotas, costs, left)

    def largest_gain(
        self, gains: Float[Array, "batch items"], scale: Float[Array, "batch 1"] | None = None
    ) -> Float[Array, " batch"]:
        """The largest sum of gains of an allowed set, or more: no set within all limits has more.

        Args:
            gains: [batch, items], of every item.
            scale: [batch, 1], the powers of 2 that scale gains to about 1, for a budget.
        """
        xp = namespace(gains)
        gains = xp.where(self.allowed & ~(gains < 0), gains, xp.zeros_like(gains))
        counted = gains
        if self.groups is not None:
            counted = _within_quotas(gains, self.groups, self.quotas)
        found = largest_sum(counted, self.counts)
        if self.costs is None or self.budget is None:
            return found
        powers: Array = xp.ones_like(gains[:, :1]) if scale is None else scale
        # No set within several limits exceeds what one of them alone allows.
        by_cost = fractional_knapsack(gains * powers, self.costs, self.budget) / powers[:, 0]
        return xp.minimum(by_cost, found)


class Quotas:
    """How many items of every group may still be selected from one set."""

    def __init__(self, room: Room) -> None:
        self._groups = None if room.groups is None else as_numpy(room.groups)[0]
        self._left = None if room.quotas is None else as_numpy(room.quotas)[0].copy()

    def allow(self, item: int) -> bool:
        """Whether the group of an item has room."""
        if self._groups is None or self._left is None:
            return True
        return bool(self._left[self._groups[item]] > 0)

    def take(self, item: int) -> None:
        """Count a selected item."""
        if self._groups is not None and self._left is not None:
            self._left[self._groups[item]] -= 1


def _within_quotas(
    gains: Float[Array, "batch items"],
    groups: Int[Array, "batch items"],
    quotas: Int[Array, "batch groups"],
) -> Float[Array, "batch items"]:
    """The largest gains of every group, as many as its quota, and 0 for the others.

    They are in another order than the items: by groups, and within a group by decreasing gain.
    """
    xp = namespace(gains)
    by_gain = xp.argsort(-gains, axis=1, stable=True)
    numbers = xp.take_along_axis(groups, by_gain, axis=1)
    by_group = xp.argsort(numbers, axis=1, stable=True)
    numbers = xp.take_along_axis(numbers, by_group, axis=1)
    gains = xp.take_along_axis(gains, xp.take_along_axis(by_gain, by_group, axis=1), axis=1)
    size = gains.shape[1]
    place = xp.broadcast_to(xp.arange(size, device=device_of(gains))[None, :], gains.shape)
    is_new = xp.concat(
        [xp.ones_like(numbers[:, :1]) > 0, numbers[:, 1:] != numbers[:, :-1]], axis=1
    )
    starts = xp.sort(xp.where(is_new, place, xp.full_like(place, size)), axis=1)
    run = xp.cumulative_sum(xp.astype(is_new, xp.int64), axis=1) - 1
    rank = place - xp.take_along_axis(starts, run, axis=1)
    counts = rank < xp.take_along_axis(quotas, numbers, axis=1)
    return xp.where(counts, gains, xp.zeros_like(gains))


def remainder(amount: float, costs: list[float]) -> float:
    """The amount less the costs, rounded down: fsum rounds once, to the nearest number."""
    terms = [amount, *(-cost for cost in costs)]
    left = math.fsum(terms)
    return math.nextafter(left, -math.inf) if math.fsum([*terms, -left]) < 0 else left


def as_numpy(values: Any) -> NDArray[Any]:
    """Values of any array library, or in lists, as a NumPy array."""
    if hasattr(values, "detach"):  # a torch tensor, on whatever device
        values = values.detach().cpu()
    return np.asarray(values)
