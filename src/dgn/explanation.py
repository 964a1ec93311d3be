"""Why each pick was made: the search played again, with what every item was worth at every step."""

from __future__ import annotations

from dataclasses import dataclass

from dgn.arrays import Array, device_of, namespace
from dgn.errors import InvalidInput
from dgn.maximizers import Selection
from dgn.objectives import Items, SetFunction, State, as_items


@dataclass(frozen=True)
class Step:
    """One pick: what it added, who came second, and what each item would have added.

    gains: of every item at this step; 0 for those already picked.
    contributions: of the pick, feature by feature.
    """

    index: int
    gain: float
    runner_up: int | None
    runner_up_gain: float
    gains: tuple[float, ...]
    contributions: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """A selection, step by step."""

    steps: tuple[Step, ...]

    def history(self, index: int) -> tuple[float, ...]:
        """What this item would have added at each step: why it was picked, or why it was not."""
        return tuple(step.gains[index] for step in self.steps)


def explain(
    objective: SetFunction,
    items: Items | Array,
    selection: Selection,
    *,
    context: State | None = None,
) -> Explanation:
    """Play a selection from a single set again, and write down what the search saw."""
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
        picked = xp.arange(items.size, device=device_of(items.features)) == index
        state = objective.add(items, state, xp.astype(picked, items.features.dtype)[None, :])
    return Explanation(tuple(steps))
