"""What the searches of one large ground set share: gains in chunks, and growing one pick at a time.

A large set never meets its own size again: chunks bound the memory of the gains to a few megabytes
beside the features, and a state is kept as a level alone, without a membership of every item.
"""

from __future__ import annotations

from collections.abc import Sequence

from dgn.arrays import Array, Float, device_of, namespace
from dgn.maximizers.certificate import Certificate, largest_sum
from dgn.maximizers.selection import Selection
from dgn.objectives import Items, SetFunction, State

_ELEMENTS_AT_ONCE = 1 << 20


class GrowingSelection:
    """A selection from one large set that grows item by item."""

    def __init__(
        self, objective: SetFunction, items: Items, context: State | None, stop_share: float
    ) -> None:
        self.objective, self.items, self.stop_share = objective, items, stop_share
        self.xp = namespace(items.features)
        nothing = items.slice(0, 1)
        self.level = objective.empty(nothing, context)
        self.indices: list[int] = []
        self.gains: list[float] = []
        self.values: list[float] = []

    @property
    def value(self) -> float:
        """What the picks so far are worth."""
        return self.values[-1] if self.values else 0.0

    def gains_of(self, indices: Sequence[int] | Array) -> Float[Array, " chosen"]:
        """f(v | picks so far) of these items, [chosen]."""
        index = self.xp.asarray(indices, device=device_of(self.items.features))
        chosen = self.items.gather(index[None, :])
        return self.objective.gains(chosen, self.objective.empty(chosen, self.level))[0]

    def all_gains(self) -> Float[Array, " items"]:
        """f(v | picks so far) of every item, [items]; 0 for those picked."""
        rows = max(1, _ELEMENTS_AT_ONCE // self.items.features.shape[2])
        chunks: list[Array] = []
        for start in range(0, self.items.size, rows):
            part = self.items.slice(start, start + rows)
            chunks.append(self.objective.gains(part, self.objective.empty(part, self.level))[0])
        gains = self.xp.concat(chunks)
        for index in self.indices:
            gains[index] = 0
        return gains

    def too_little(self, gain: float) -> bool:
        """Whether a pick of this gain falls under the share of the first gain that was asked."""
        if not self.gains:
            return False
        # In the features' own precision, as greedy compares.
        first = self.xp.asarray(self.gains[:1], dtype=self.items.features.dtype)
        return gain < (self.stop_share * first)[0].item()

    def pick(self, index: int, gain: float) -> None:
        """Add one item."""
        item = self.items.slice(index, index + 1)
        state = self.objective.empty(item, self.level)
        self.level = self.objective.add(item, state, self.xp.ones_like(state.outside))
        self.indices.append(index)
        self.gains.append(gain)
        # Gains add up to the value; the difference of two values would drown in the context's.
        self.values.append(self.value + gain)

    def bound(self, ceilings: Float[Array, " items"], k: int) -> float:
        """What no set of k items can exceed, if no gain given the picks exceeds its ceiling."""
        return self.value + largest_sum(ceilings[None, :], k)[0].item()

    def finish(self, bound: float) -> Selection:
        """The selection as it stands."""
        certificate = Certificate(self.value, self.value if bound < self.value else bound)
        return Selection(tuple(self.indices), tuple(self.gains), tuple(self.values), certificate)
