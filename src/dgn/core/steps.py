"""A search replayed step by step: what every item was worth when each one was selected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array
from dgn.core.constraints import Constraints, as_numpy
from dgn.core.functions import SetFunction
from dgn.core.items import Items, State, as_items
from dgn.core.plain import joined
from dgn.core.selection import Selection
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
    context: State | Any = None,
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
    is_state = context is None or isinstance(context, State)
    (constraints,) = Constraints.of_sets(
        items.mask,
        None,
        single=items.single,
        present=None if is_state else context,
        pinned=pinned,
        groups=groups,
        max_per_group=max_per_group,
        costs=costs,
        budget=budget,
    )
    steps, _ = replay(objective, items, selection, constraints, context if is_state else None)
    return steps


def replay(
    objective: SetFunction,
    items: Items,
    selection: Selection,
    constraints: Constraints,
    context: State | None = None,
) -> tuple[tuple[Step, ...], NDArray[np.float64]]:
    """The steps of a search in one set, and [items], what each item would add after them."""
    state = objective.empty(items, context)
    for index in constraints.present:
        _, state = joined(objective, items, state, index)
    left = constraints
    steps: list[Step] = []
    for index in selection.indices:
        gains: list[float] = objective.gains(items, state)[0].tolist()
        contributions: list[float] = objective.contributions(items, state)[0, index].tolist()
        is_pinned = index in constraints.pinned
        others = [] if is_pinned else np.flatnonzero(left.open()).tolist()
        others = [item for item in others if item != index]
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
        left = left.after(index)
        _, state = joined(objective, items, state, index)
    return tuple(steps), np.asarray(as_numpy(objective.gains(items, state)), np.float64)[0]
