"""The paper's objective: a sum of concave functions of modular functions (SCMM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from dgn.arrays import Array, Float
from dgn.objectives.concave import Concave, Log1p
from dgn.objectives.coverage import WeightedCoverage
from dgn.objectives.items import Items, State


@final
@dataclass(frozen=True, eq=False)
class FeatureCoverage(WeightedCoverage):
    """f(A) = Σ_u α_u · φ(Σ_{a∈A} h_{a,u}): much of one thing is worth less than some of each.

    weights: α, [features] or [batch, features].
    concave: φ, log(1 + x) in the paper.

        >>> import numpy as np
        >>> f = FeatureCoverage(np.ones(2))
        >>> items = Items(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        >>> state = f.add(items, f.empty(items), np.array([[1.0, 0.0, 0.0]]))
        >>> f.gains(items, state).round(3)
        array([[0.   , 0.405, 0.693]])
    """

    concave: Concave = Log1p()

    adds_up: ClassVar[bool] = True

    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return self.concave.of(level)

    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        step = state.outside[..., None] * items.features
        return self.concave.increase(state.level[:, None, :], step)

    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        return state.level + (joining[:, None, :] @ items.features)[:, 0, :]
