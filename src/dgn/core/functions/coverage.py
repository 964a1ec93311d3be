"""The coverage functions: f(A) = Σ_u weight_u · coverage_u(A), three ways to cover a feature.

    FeatureCoverage(weights)        a little of every feature is worth more than much of one
    FacilityLocation(weights)       every feature is served by its best item alone
    ProbabilisticCoverage(weights)  every item covers a feature with some probability

`WeightedCoverage` (weighted.py) is what they have in common, and the base class of a fourth one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from dgn.core.arrays import (
    Array,
    Float,
    cast_like,
    is_array,
    namespace,
)
from dgn.core.functions.base import (
    Items,
    SetFunction,
    State,
)
from dgn.core.functions.concave import (
    INCREASING,
    Concave,
    Log1p,
    OneMinusExp,
    Power,
    Saturated,
    Sqrt,
)
from dgn.core.functions.weighted import WeightedCoverage, as_array
from dgn.core.numerics import safe_divide
from dgn.errors import InvalidInput
from dgn.parts import Registry

_FINEST_SHARE = 1e-5
"""The rounding of a level may not exceed this share of the largest feature."""

_LOG1P = Log1p()
_SCALE_FREE = (Log1p, Power, Sqrt, OneMinusExp)
"""Functions whose values are neither tiny nor huge where their argument is not."""

_DEFAULT: Any = None
"""Stands for log(1 + x): torch.compile cannot trace a default value that is an object."""


@final
@dataclass(frozen=True, eq=False)
class FeatureCoverage(WeightedCoverage):
    """The objective of the paper: f(A) = Σ_u α_u · φ(Σ_{a∈A} h_{a,u}).

    A little of every feature is worth more than much of one. Choose it when several items may
    share the work of covering a feature; with FacilityLocation, only the best one counts.

    Args:
        weights: α, [features] or [batch, features].
        concave: φ, log(1 + x) in the paper.
        target: The level at which a feature counts as completely covered, [features] or
            [batch, features]; half of it is half covered. It is 0 for features that do not count
            in `coverage`. Without a target, `coverage` is not defined. It does not change f.

    Examples:
        >>> import numpy as np
        >>> f = FeatureCoverage(np.ones(2))
        >>> items = Items(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        >>> state = f.add(items, f.empty(items), np.array([[1.0, 0.0, 0.0]]))
        >>> f.gains(items, state).round(3)
        array([[0.   , 0.405, 0.693]])
    """

    concave: Concave = _DEFAULT
    target: Array = None

    adds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.concave is _DEFAULT:
            object.__setattr__(self, "concave", _LOG1P)
        if self.target is not None and not is_array(self.target):
            object.__setattr__(self, "target", as_array("target", self.target))

    @property
    def monotone(self) -> bool | None:
        return True if type(self.concave) in INCREASING else None

    @property
    def information_submodular(self) -> bool:
        return self.concave.has_convex_slope

    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return self.concave.of(level)

    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        step = state.outside[..., None] * items.features
        return self.concave.increase(state.level[:, None, :], step)

    def highest(self, best: Float[Array, "batch features"], items: int) -> Array:
        return self.concave.of(items * best)

    def _is_usual(self, largest: float, lightest: float, heaviest: float) -> bool:
        # What a concave function of the user does is not known.
        is_known = type(self.concave) in _SCALE_FREE
        if type(self.concave) is Saturated:
            is_known = 1e-6 <= self.concave.cap <= 1e6
        return is_known and super()._is_usual(largest, lightest, heaviest)

    def check_precision(self, items: Items, context: State, largest: float) -> None:
        if isinstance(self.concave, Saturated):
            _check_room(self.concave.cap, context.level, items.features, largest)

    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        return state.level + (joining[:, None, :] @ items.features)[:, 0, :]

    def coverage(self, state: State) -> tuple[Array, Array] | None:
        if self.target is None:
            return None
        xp, level = namespace(state.level), state.level
        target = xp.broadcast_to(cast_like(self.target, level), level.shape)
        counts = target > 0
        whole = xp.where(counts, target, xp.ones_like(target))
        share = xp.clip(level / whole, 0, 1)
        weights = xp.ones_like(level)
        if self.weights is not None:
            weights = xp.broadcast_to(cast_like(self.weights, level), level.shape)
        zeros = xp.zeros_like(level)
        return xp.where(counts, share, zeros), xp.where(counts, weights, zeros)

    def counted(self) -> FeatureCoverage:
        if self.target is None:
            return self
        xp = namespace(self.target)
        weights = xp.ones_like(self.target) if self.weights is None else self.weights
        zeros = xp.zeros_like(self.target)
        return replace(self, weights=xp.where(self.target > 0, weights, zeros))


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

    @property
    def information_submodular(self) -> bool:
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

    @property
    def information_submodular(self) -> bool:
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


OBJECTIVES: Registry[SetFunction] = Registry(
    "objective",
    "dgn.objectives",
    SetFunction,
    {"feature-coverage": FeatureCoverage, "facility-location": FacilityLocation},
)
"""Set functions over learned features by name: their argument `weights` is learned, [features].

Those with an argument `concave` get the concave function of the configuration.
"""


def _check_room(cap: float, level: Array, features: Array, largest: float) -> None:
    """Raise InvalidInput if a dtype cannot say how much room a context leaves below a cap.

    What is added to a large level is rounded to the spacing of numbers of its size. Next to the
    cap this rounding decides how much the next item may add.
    """
    xp = namespace(features)
    eps = float(xp.finfo(features.dtype).eps)
    reachable = (level < cap) & (level + features.shape[1] * largest >= cap)
    coarse = reachable & (level * eps > _FINEST_SHARE * largest)
    if bool(xp.any(coarse)):
        found = xp.max(xp.where(coarse, level, xp.zeros_like(level))).item()
        raise InvalidInput(
            "context",
            message=f"context has a level of {found:g}, next to which {features.dtype} rounds "
            f"features of {largest:g}. Use float64, or subtract the context from the cap.",
        )
