"""A search replayed step by step: what every item was worth when each one was selected."""

from __future__ import annotations

from dataclasses import dataclass

from dgn.core.arrays import Array, device_of, namespace
from dgn.core.functions import Items, SetFunction, State, as_items
from dgn.core.search.selection import Selection
from dgn.errors import InvalidInput


@dataclass(frozen=True)
class Step:
    """One selected item.

    Attributes:
        index: The item.
        gain: What it added.
        runner_up: The item with the second largest gain; None if there was no other item.
        runner_up_gain: What that item would have added.
        gains: What each item would have added at this step; 0 for those already selected.
        contributions: The gain of the selected item, feature by feature.
    """

    index: int
    gain: float
    runner_up: int | None
    runner_up_gain: float
    gains: tuple[float, ...]
    contributions: tuple[float, ...]


def explain(
    objective: SetFunction,
    items: Items | Array,
    selection: Selection,
    *,
    context: State | None = None,
) -> tuple[Step, ...]:
    """Replay a selection from a single set.

    Args:
        objective: The set function that was maximized.
        items: The items that were searched.
        selection: What a maximizer returned.
        context: The context of the search, if it had one.

    Returns:
        One step for each selected item. `[step.gains[i] for step in steps]` is the history of
        item i: why it was selected, or why it was not.
    """
    items = as_items(items)
    if items.batch != 1:
        raise InvalidInput("items", found=f"a batch of {items.batch} sets", allowed="one set")
    xp = namespace(items.features)
    state = objective.empty(items, context)
    left = {i for i, real in enumerate(items.mask[0].tolist()) if real}
    steps: list[Step] = []
    for index in selection.indices:
        gains: list[float] = objective.gains(items, state)[0].tolist()
        contributions: list[float] = objective.contributions(items, state)[0, index].tolist()
        left.discard(index)
        runner_up = max(left, key=lambda i: (gains[i], -i), default=None)
        steps.append(
            Step(
                index=index,
                gain=gains[index],
                runner_up=runner_up,
                runner_up_gain=0.0 if runner_up is None else gains[runner_up],
                gains=tuple(gains),
                contributions=tuple(contributions),
            )
        )
        selected = xp.arange(items.size, device=device_of(items.features)) == index
        state = objective.add(items, state, xp.astype(selected, items.features.dtype)[None, :])
    return tuple(steps)
