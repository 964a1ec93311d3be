"""Facility location: every feature is served by its best item alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dgn.core.arrays import Array, Float, namespace
from dgn.core.functions.base import WeightedCoverage
from dgn.core.items import Items, State


@final
@dataclass(frozen=True, eq=False)
class FacilityLocation(WeightedCoverage):
    """f(A) = Σ_u w_u · max_{a∈A} h_{a,u}, where h_{a,u} says how well item a serves place u.

    With a similarity matrix as features (the places are the items themselves), the value of a set
    is how well it represents all items. Choose it to summarize a set by typical items. A soft set
    serves u with max_a s_a · h_{a,u}.
    """

    @property
    def monotone(self) -> bool | None:
        return True

    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return level

    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        xp = namespace(items.features)
        better = items.features - state.level[:, None, :]
        return xp.maximum(better, xp.zeros_like(better))

    def highest(self, best: Float[Array, "batch features"], items: int) -> Array:
        del items
        return best

    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        xp = namespace(items.features)
        inside = 1 - state.outside + joining
        served = inside[..., None] * items.features
        return xp.maximum(state.level, xp.max(served, axis=1))
