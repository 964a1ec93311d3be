"""Which sets are allowed: the constraints of a search, from its arguments to its last step.

    greedy(f, items, 5, context=[0, 3])                 are there already: f(· | context)
    greedy(f, items, 5, pinned=[7])                     item 7 must be selected, and comes first
    greedy(f, items, 5, groups=pages, max_per_group=2)  at most two of every page
    greedy(f, items, costs=tokens, budget=800)          at most 800 tokens together

`Constraints` says what one ground set allows, takes an item, and bounds what is left. Groups with
quotas and a number of items together are a truncated partition matroid, in which greedy reaches at
least 1/2 of the best value (Fisher, Nemhauser and Wolsey, 1978), and in which the largest sum is
that of the largest gains of every group, and of those the largest.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array
from dgn.core.selection import fractional_knapsack, largest_sum, power_below
from dgn.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Constraints:
    """What may still be added to a set of one ground set.

    Attributes:
        k: How many items.
        allowed: [items], False for padding, for items that are there already, and for selected
            ones.
        present: The items that are there already.
        pinned: The items that must be selected, in their order.
        groups: [items], the number of the group of each item; None without groups.
        quotas: [groups], how many items of each group.
        costs: [items], in float64; None without a budget. Costs and budget are multiplied by a
            power of 2 that makes the budget about 1.
        budget: What may be spent.
    """

    k: int
    allowed: NDArray[np.bool_]
    present: tuple[int, ...] = ()
    pinned: tuple[int, ...] = ()
    groups: NDArray[np.int64] | None = None
    quotas: NDArray[np.int64] | None = None
    costs: NDArray[np.float64] | None = None
    budget: float = math.inf

    @classmethod
    def of_sets(
        cls,
        mask: Array,
        k: int | None,
        *,
        single: bool,
        present: Any = None,
        pinned: Any = None,
        groups: Any = None,
        max_per_group: Any = None,
        costs: Any = None,
        budget: Any = None,
    ) -> list[Constraints]:
        """The constraints of every set of a batch, from the arguments of a search.

        Args:
            mask: [batch, items], False for padding.
            k: The most items that may be selected; None if there is no such limit.
            single: Whether the caller passed one set and not a batch.
            present: Items that are there already: indices or booleans, for every set.
            pinned: Items that must be selected, in the same form.
            groups: [items] or [batch, items], integers; below 0 for items without a group.
            max_per_group: One quota for all groups, or one for each.
            costs: [items] or [batch, items].
            budget: One number, or [batch].
        """
        for first, second in (("groups", "max_per_group"), ("costs", "budget")):
            pair = {"groups": groups, "max_per_group": max_per_group}
            pair |= {"costs": costs, "budget": budget}
            if (pair[first] is None) != (pair[second] is None):
                missing, other = (first, second) if pair[first] is None else (second, first)
                raise InvalidInput(
                    missing, message=f"{other} was passed without {missing}; pass both or neither."
                )
        real = as_numpy(mask)
        batch = len(real)
        empty: list[tuple[int, ...]] = [()] * batch
        there = empty if present is None else _indices("context", present, real, single=single)
        must = empty if pinned is None else _indices("pinned", pinned, real, single=single)
        numbers, quotas = (None, None) if groups is None else _quotas(groups, max_per_group, real)
        paid = None if costs is None else checked_costs(costs, real)
        limits = None if budget is None else checked_budget(budget, batch)
        sets: list[Constraints] = []
        for row in range(batch):
            where = "" if single else f" of set {row}"
            size = real.shape[1]
            if batch > 1:  # as `Items.of_set` leaves out the padding at the end
                size = int(np.flatnonzero(real[row])[-1]) + 1
            allowed = real[row, :size].copy()
            allowed[list(there[row])] = False
            constraints = cls(
                size if k is None else min(k, size),
                allowed,
                there[row],
                must[row],
                None if numbers is None else numbers[row, :size],
                quotas,
            )
            constraints._check_pinned(k, where)
            if paid is not None and limits is not None:
                constraints = constraints._within(paid[row, :size], float(limits[row]), where)
            sets.append(constraints)
        return sets

    def open(self) -> NDArray[np.bool_]:
        """[items], True for the items that may be added now."""
        if self.k < 1:
            return np.zeros_like(self.allowed)
        found = self.allowed
        if self.groups is not None and self.quotas is not None:
            found = found & (self.quotas[self.groups] > 0)
        return found if self.costs is None else found & (self.costs <= self.budget)

    def after(self, item: int) -> Constraints:
        """What is left after an item was added."""
        allowed = self.allowed.copy()
        allowed[item] = False
        quotas = self.quotas
        if quotas is not None and self.groups is not None:
            quotas = quotas.copy()
            quotas[self.groups[item]] -= 1
        budget = self.budget
        if self.costs is not None:
            budget = remainder(budget, [float(self.costs[item])])
        return replace(self, k=self.k - 1, allowed=allowed, quotas=quotas, budget=budget)

    def ordered(self, order: NDArray[np.int64]) -> Constraints:
        """The same for the items in another order."""
        place = np.argsort(order).tolist()
        return replace(
            self,
            allowed=self.allowed[order],
            present=tuple(place[item] for item in self.present),
            pinned=tuple(place[item] for item in self.pinned),
            groups=None if self.groups is None else self.groups[order],
            costs=None if self.costs is None else self.costs[order],
        )

    def after_pinned(self) -> Constraints:
        """What is left after the pinned items."""
        left = self
        for item in self.pinned:
            left = left.after(item)
        if self.costs is not None and self.pinned:
            # Rounded once, and not once for each of them.
            spent = [float(self.costs[item]) for item in self.pinned]
            left = replace(left, budget=remainder(self.budget, spent))
        return left

    def largest_gain(self, gains: NDArray[Any]) -> float:
        """The largest sum of gains of a set that may be added, or more; [items] gains."""
        gains = np.where(self.open() & (gains > 0), gains, 0).astype(np.float64)
        counted = gains
        if self.groups is not None and self.quotas is not None:
            counted = _within_quotas(gains, self.groups, self.quotas)
        bound = float(largest_sum(counted, max(1, self.k)))
        if self.costs is None:
            return bound
        # No set within several limits exceeds what one of them alone allows.
        scale = power_below(float(gains.max(initial=0.0)))
        by_cost = fractional_knapsack(gains * scale, self.costs, self.budget) / scale
        return min(bound, by_cost)

    def _within(self, costs: NDArray[np.float64], budget: float, where: str) -> Constraints:
        """The same within a budget as well."""
        pinned = [float(costs[item]) for item in self.pinned]
        if remainder(budget, pinned) < 0:
            raise InvalidInput(
                "pinned",
                message=f"The pinned items{where} cost {math.fsum(pinned):g}, more than the "
                f"budget, {budget:g}.",
            )
        # A gain per cost would be infinite for tiny costs, and their order lost. A cost below
        # 2⁻⁶⁴ of the budget counts as that much, which is less than the rounding of a sum; one
        # that exceeds the budget can be anything that does.
        scale = power_below(budget)
        fits = costs <= budget
        budget *= scale
        paid = np.maximum(np.where(fits, costs, 0) * scale, budget * 2.0**-64)
        paid = np.where(fits, paid, 2 * budget)
        return replace(self, costs=paid, budget=budget)

    def _check_pinned(self, k: int | None, where: str) -> None:
        pinned = self.pinned
        repeated = [item for item in pinned if pinned.count(item) > 1]
        there = [item for item in pinned if item in self.present]
        problem = ""
        if repeated:
            problem = f"pinned contains item {repeated[0]}{where} more than once."
        elif there:
            problem = f"Item {there[0]}{where} is in both context and pinned; it can be only one."
        elif k is not None and len(pinned) > k:
            problem = f"{len(pinned)} items{where} are pinned, more than k, which is {k}."
        elif self.groups is not None and self.quotas is not None:
            used = np.bincount(self.groups[list(pinned)], minlength=len(self.quotas))
            if (used > self.quotas).any():
                problem = (
                    f"The pinned items{where} are more of one group than max_per_group allows."
                )
        if problem:
            raise InvalidInput("pinned", message=problem)


def checked_costs(costs: Any, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """[batch, items], the costs in float64, after they were checked; 1 for padding."""
    paid = _numbers("costs", costs)
    paid = paid[None, :] if paid.ndim == 1 else paid
    if paid.shape != mask.shape:
        raise InvalidInput(
            "costs",
            found=f"shape {paid.shape}",
            allowed=f"an array of shape {mask.shape}, one cost for each item",
        )
    paid = np.where(mask, paid, 1.0)
    _raise_unless_positive("costs", paid)
    return paid


def checked_budget(budget: Any, batch: int) -> NDArray[np.float64]:
    """[batch], the budgets in float64, after they were checked."""
    limit = _numbers("budget", budget)
    if limit.ndim > 1 or (limit.ndim == 1 and limit.shape[0] not in {1, batch}):
        raise InvalidInput(
            "budget",
            found=f"shape {limit.shape}",
            allowed=f"one number, or an array of shape ({batch},)",
        )
    limit = np.broadcast_to(limit, (batch,))
    _raise_unless_positive("budget", limit)
    return limit


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


def _indices(
    argument: str, values: Any, mask: NDArray[np.bool_], *, single: bool
) -> list[tuple[int, ...]]:
    """The items of every set that are named by indices or by booleans."""
    batch, size = mask.shape
    rows = values if batch > 1 or _is_nested(values) else [values]
    if single:
        allowed = f"the indices of items, or {size} booleans"
    else:
        allowed = (
            f"booleans of shape {(batch, size)}, or a list of indices for each of {batch} sets"
        )
    try:
        arrays = [as_numpy(row) for row in rows]
    except (TypeError, ValueError):
        raise InvalidInput(argument, found=f"{values!r:.40}", allowed=allowed) from None
    if len(arrays) != batch:
        raise InvalidInput(argument, found=f"{len(arrays)} rows", allowed=allowed)
    found: list[tuple[int, ...]] = []
    for row, array in enumerate(arrays):
        where = "" if single else f" in set {row}"
        if array.ndim == 1 and array.dtype.kind == "b" and array.shape == (size,):
            array = np.flatnonzero(array)
        elif array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            name = f"dtype {array.dtype} and shape {array.shape}{where}"
            raise InvalidInput(argument, found=name, allowed=allowed)
        wrong = array[(array < 0) | (array >= size)]
        if len(wrong):
            raise InvalidInput(
                argument, found=f"{wrong[0]}{where}", allowed=f"indices from 0 to {size - 1}"
            )
        array = array.astype(np.int64)
        padding = array[~mask[row, array]]
        if len(padding):
            raise InvalidInput(
                argument,
                message=f"{argument} contains item {padding[0]}{where}, which is padding; name "
                "real items only.",
            )
        found.append(tuple(array.tolist()))
    return found


def _is_nested(values: Any) -> bool:
    """Whether this is one row in a list, or in an array with one row."""
    try:
        return len(values) == 1 and as_numpy(values[0]).ndim == 1
    except (TypeError, ValueError, KeyError):
        return False


def _quotas(
    groups: Any, max_per_group: Any, mask: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of items, numbered without gaps, and the quota of each number.

    Items without a group have the last number, whose quota is the number of items.
    """
    batch, size = mask.shape
    allowed = f"integers of shape ({size},) or {(batch, size)}, one for each item"
    try:
        numbers = as_numpy(groups)
    except (TypeError, ValueError):
        raise InvalidInput("groups", found=f"{groups!r:.40}", allowed=allowed) from None
    if numbers.dtype.kind not in "iu" or numbers.shape not in {(size,), (batch, size)}:
        found = f"dtype {numbers.dtype} and shape {numbers.shape}"
        raise InvalidInput("groups", found=found, allowed=allowed)
    numbers = np.broadcast_to(numbers, (batch, size))
    has_group = mask & (numbers >= 0)
    names, places = np.unique(numbers[has_group], return_inverse=True)
    quotas = np.append(_quota_of(names, max_per_group), size)
    numbered = np.full((batch, size), len(names), np.int64)
    numbered[has_group] = places
    return numbered, quotas.astype(np.int64)


def _quota_of(names: NDArray[Any], max_per_group: Any) -> NDArray[Any]:
    """The quotas of these groups."""
    allowed = "an integer of at least 1, or one integer of at least 0 for each group"
    try:
        shared = None if isinstance(max_per_group, bool) else operator.index(max_per_group)
    except TypeError:
        shared = None
    if shared is not None:
        if shared < 1:
            raise InvalidInput("max_per_group", found=str(shared), allowed=allowed)
        return np.full(len(names), min(shared, 2**31))
    try:
        quotas = as_numpy(max_per_group)
    except (TypeError, ValueError):
        quotas = np.zeros(0)
    if quotas.ndim != 1 or quotas.dtype.kind not in "iu" or (quotas < 0).any():
        raise InvalidInput("max_per_group", found=f"{max_per_group!r:.40}", allowed=allowed)
    if len(names) and names[-1] >= len(quotas):
        raise InvalidInput(
            "max_per_group",
            message=f"max_per_group has {len(quotas)} quotas, and groups contains {names[-1]}; "
            "pass one quota for each group number from 0 on, or one integer for all groups.",
        )
    return np.minimum(quotas, 2**31)[names]


def _within_quotas(
    gains: NDArray[Any], groups: NDArray[np.int64], quotas: NDArray[np.int64]
) -> NDArray[Any]:
    """The largest gains of every group, as many as its quota, and 0 for the others."""
    order = np.lexsort((-gains, groups))
    numbers = groups[order]
    place = np.arange(len(gains))
    is_first = np.append(True, numbers[1:] != numbers[:-1])
    rank = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return np.where(rank < quotas[numbers], gains[order], 0)


def _numbers(argument: str, amounts: Any) -> NDArray[np.float64]:
    """Costs are added in float64, whatever dtype the features have: a budget is not rounded."""
    try:
        found = as_numpy(amounts)
        if found.dtype.kind == "c":
            raise TypeError("complex numbers")
        return found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        found = f"{amounts!r:.40}"
        raise InvalidInput(argument, found=found, allowed="numbers") from None


def _raise_unless_positive(argument: str, values: NDArray[np.float64]) -> None:
    good = (values > 0) & np.isfinite(values)
    if not good.all():
        index = [int(axis[0]) for axis in np.nonzero(~good)]
        raise InvalidInput(
            argument,
            found=f"{values[tuple(index)]:g} at {index}",
            allowed="finite and greater than 0",
        )
