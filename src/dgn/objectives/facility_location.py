"""Facility location: every place is served by the best of the chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dgn.arrays import Array, Float, namespace
from dgn.objectives.coverage import WeightedCoverage
from dgn.objectives.items import Items, State


@final
@dataclass(frozen=True, eq=False)
class FacilityLocation(WeightedCoverage):
    """f(A) = Σ_u w_u · max_{a∈A} h_{a,u}, where h_{a,u} says how well item a serves place u.

    With a similarity matrix as the features (the places are the items themselves), a set is worth
    how well it represents them all. A soft set serves u with max_a s_a · h_{a,u}.
    """

    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return level

    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        xp = namespace(items.features)
        better = items.features - state.level[:, None, :]
        return xp.maximum(better, xp.zeros_like(better))

    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        xp = namespace(items.features)
        inside = 1 - state.outside + joining
        served = inside[..., None] * items.features
        return xp.maximum(state.level, xp.max(served, axis=1))
