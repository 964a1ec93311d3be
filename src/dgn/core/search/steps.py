"""A search replayed step by step: what every item was worth when each one was selected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dgn.core.arrays import Array, device_of, namespace
from dgn.core.functions import Items, SetFunction, State, as_items
from dgn.core.search.budgeted import checked_budget, checked_costs
from dgn.core.search.constrained import begin
from dgn.core.search.constraints import Constraints
from dgn.core.search.room import Quotas, remainder
from dgn.core.search.selection import Selection
from dgn.errors import InvalidInput


@dataclass(frozen=True)
class Step:
    """One selected item.

    Attributes:
        index: The item.
        gain: What it added.
        runner_up: The allowed item with the largest gain apart from the selected one; None if
            there was no other, and for a pinned item, which was not chosen.
        runner_up_gain: What that item would have added.
        gains: What each item would have added at this step; 0 for those already selected.
        contributions: The gain of the selected item, feature by feature.
        is_pinned: Whether the item had to be selected.
    """

    index: int
    gain: float
    runner_up: int | None
    runner_up_gain: float
    gains: tuple[float, ...]
    contributions: tuple[float, ...]
    is_pinned: bool = False


def explain(
    objective: SetFunction,
    items: Items | Array,
    selection: Selection,
    *,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
    costs: Any = None,
    budget: Any = None,
) -> tuple[Step, ...]:
    """Replay a selection from a single set.

    Args:
        objective: The set function that was maximized.
        items: The items that were searched.
        selection: What a maximizer returned.
        context: The context of the search, if it had one; so for the constraints that follow.
        given: Items that were already there.
        pinned: Items that had to be selected.
        groups: The group of every item.
        max_per_group: The most items of each group.
        costs: The cost of every item.
        budget: What could be spent.

    Returns:
        One step for each selected item. `[step.gains[i] for step in steps]` is the history of
        item i: why it was selected, or why it was not.
    """
    items = as_items(items)
    if items.batch != 1:
        raise InvalidInput("items", found=f"a batch of {items.batch} sets", allowed="one set")
    if (costs is None) != (budget is None):
        missing, other = ("costs", "budget")[:: 1 if costs is None else -1]
        raise InvalidInput(
            missing, message=f"{other} was passed without {missing}; pass both or neither."
        )
    constraints = Constraints.of(
        items.mask,
        None,
        single=items.single,
        given=given,
        pinned=pinned,
        groups=groups,
        max_per_group=max_per_group,
    )
    xp = namespace(items.features)
    state = begin(objective, items, context, replace(constraints, pinned=None)).state
    allowed = _Allowed(constraints, items, costs, budget)
    steps: list[Step] = []
    for index in selection.indices:
        gains: list[float] = objective.gains(items, state)[0].tolist()
        contributions: list[float] = objective.contributions(items, state)[0, index].tolist()
        is_pinned = index in constraints.pinned_of(0)
        others = [] if is_pinned else [one for one in allowed.now() if one != index]
        runner_up = max(others, key=lambda i: (gains[i], -i), default=None)
        steps.append(
            Step(
                index=index,
                gain=gains[index],
                runner_up=runner_up,
                runner_up_gain=0.0 if runner_up is None else gains[runner_up],
                gains=tuple(gains),
                contributions=tuple(contributions),
                is_pinned=is_pinned,
            )
        )
        allowed.take(index)
        selected = xp.arange(items.size, device=device_of(items.features)) == index
        state = objective.add(items, state, xp.astype(selected, items.features.dtype)[None, :])
    return tuple(steps)


class _Allowed:
    """Which items may be selected at a step of one search."""

    def __init__(self, constraints: Constraints, items: Items, costs: Any, budget: Any) -> None:
        # Pinned items are counted when they are selected.
        room = replace(constraints, pinned=None).room(items.mask, items.size)
        self._free = [i for i, is_free in enumerate(room.allowed[0].tolist()) if is_free]
        self._quotas = Quotas(room)
        self._costs: list[float] | None = None
        if costs is not None:
            self._costs = checked_costs(costs, items)[0].tolist()
            self._budget = checked_budget(budget, items)[0].item()
        self._spent: list[float] = []

    def now(self) -> list[int]:
        """The items that may be selected."""
        free = [one for one in self._free if self._quotas.allow(one)]
        costs = self._costs
        if costs is None:
            return free
        left = remainder(self._budget, self._spent)
        return [one for one in free if costs[one] <= left]

    def take(self, item: int) -> None:
        """Select an item."""
        self._free = [one for one in self._free if one != item]
        self._quotas.take(item)
        if self._costs is not None:
            self._spent.append(self._costs[item])
