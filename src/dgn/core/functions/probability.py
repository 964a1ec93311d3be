"""Probabilistic coverage: every item covers a feature with some probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from dgn.core.arrays import Array, Float, namespace
from dgn.core.functions.base import WeightedCoverage
from dgn.core.items import Items, State
from dgn.core.numerics import safe_divide


@final
@dataclass(frozen=True, eq=False)
class ProbabilisticCoverage(WeightedCoverage):
    """f(A) = Σ_u w_u · (1 − Π_{a∈A} (1 − p_{a,u})), with p_{a,u} in [0, 1].

    The probability that at least one selected item covers u. Choose it when features are
    probabilities, such as those of a classifier. The level is the probability of a
    miss, Π (1 − s_a p_{a,u}); for a soft set, each item is present with probability s_a,
    independently.
    """

    initial_level: ClassVar[float] = 1.0
    feature_ceiling: ClassVar[float] = 1.0
    level_ceiling: ClassVar[float] = 1.0

    @property
    def monotone(self) -> bool | None:
        return True

    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return 1 - level

    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        # With v completely in the set, its factor 1 − s·p becomes 1 − p, so the miss shrinks by
        # 1 − (1−p)/(1−s·p) = p·(1−s)/(1−s·p). Where s·p = 1 nothing is missed any more.
        p, outside = items.features, state.outside[..., None]
        share = safe_divide(p * outside, 1 - (1 - outside) * p, at_zero=0.0)
        level: Array = state.level
        return level[:, None, :] * share

    def highest(self, best: Float[Array, "batch features"], items: int) -> Array:
        return best if items == 1 else namespace(best).ones_like(best)

    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        xp, p = namespace(items.features), items.features
        inside = 1 - state.outside
        before = 1 - inside[..., None] * p
        after = 1 - (inside + joining)[..., None] * p
        return state.level * xp.prod(safe_divide(after, before, at_zero=1.0), axis=1)
