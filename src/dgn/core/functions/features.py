"""Coverage of features with diminishing returns, the objective of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from dgn.core.arrays import Array, Float, cast_like, is_array, namespace
from dgn.core.functions.base import WeightedCoverage, as_array
from dgn.core.functions.concave import INCREASING, Concave, Log1p, OneMinusExp, Power, Saturated
from dgn.core.items import Items, State
from dgn.errors import InvalidInput

_FINEST_SHARE = 1e-5
"""The rounding of a level may not exceed this share of the largest feature."""

_LOG1P = Log1p()
_SCALE_FREE = (Log1p, Power, OneMinusExp)
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
