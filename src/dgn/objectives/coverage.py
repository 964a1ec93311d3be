"""The common shape of the coverage functions: f(A) = Σ_u weight_u · coverage_u(A)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

from dgn.arrays import Array, Float, cast_like, device_of, is_learning, namespace
from dgn.errors import InvalidInput
from dgn.objectives.base import SetFunction
from dgn.objectives.checks import check_maker, check_range, check_sum
from dgn.objectives.items import Items, State


@dataclass(frozen=True, eq=False)
class WeightedCoverage(SetFunction):
    """f(A) = Σ_u weight_u · coverage_u(A), where a subclass says how a feature gets covered.

    weights: [features], shared by all sets of a batch, or [batch, features], one row a set;
        at least 0. Left out, every feature weighs 1.
    """

    weights: Array = None

    initial_level: ClassVar[float] = 0.0
    feature_ceiling: ClassVar[float] = math.inf
    level_ceiling: ClassVar[float] = math.inf
    adds_up: ClassVar[bool] = False

    @abstractmethod
    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        """coverage_u at this level."""

    @abstractmethod
    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        """How much coverage_u grows by each item."""

    @abstractmethod
    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        """The level after `joining`, that much of each item which was outside, came inside."""

    @final
    def empty(self, items: Items, context: State | None = None) -> State:
        features = items.features
        xp, device = namespace(features), device_of(features)
        self._check_weights_fit(items)
        if context is None:
            shape = (items.batch, features.shape[2])
            level = xp.full(shape, self.initial_level, dtype=features.dtype, device=device)
        else:
            check_maker(context, type(self).__name__)
            level = _context_level(context, items)
        outside = xp.ones((items.batch, items.size), dtype=features.dtype, device=device)
        return State(level, outside, maker=type(self).__name__)

    @final
    def gains(self, items: Items, state: State) -> Float[Array, "batch items"]:
        increases = self.increases(items, state)
        xp = namespace(increases)
        if self.weights is None:
            return xp.sum(increases, axis=-1)
        weights = self._weights_by_item(items)
        if is_learning(increases):
            # Ten times as fast with its gradient; nobody picks by these gains.
            if weights.ndim == 1:
                return xp.matmul(increases, weights)
            return xp.matmul(increases, weights[:, 0, :, None])[..., 0]
        # vecdot sums each item by itself, so that an item's gain does not depend on the others
        # around it: a matrix product may round the same item differently in another batch.
        return xp.vecdot(increases, weights)

    @final
    def contributions(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        increases = self.increases(items, state)
        return increases if self.weights is None else increases * self._weights_by_item(items)

    @final
    def add(self, items: Items, state: State, member: Float[Array, "batch items"]) -> State:
        level = self.raised(items, state, state.outside * member)
        return State(level, state.outside * (1 - member), maker=state.maker)

    @final
    def value(self, state: State) -> Float[Array, " batch"]:
        covered = self.covered(state.level)
        xp = namespace(covered)
        if self.weights is None:
            return xp.sum(covered, axis=-1)
        return xp.vecdot(covered, cast_like(self.weights, covered))

    @final
    def check(self, items: Items, context: State | None = None) -> None:
        largest = check_range("features", items.features, ceiling=self.feature_ceiling)
        if self.adds_up:
            check_sum(largest, items.features)
        if self.weights is not None:
            self._check_weights_fit(items)
            check_range("weights", cast_like(self.weights, items.features))
        if context is not None:
            check_maker(context, type(self).__name__)
            check_range("context", context.level, ceiling=self.level_ceiling)

    def _check_weights_fit(self, items: Items) -> None:
        if self.weights is None:
            return
        shape = tuple(cast_like(self.weights, items.features).shape)
        width = items.features.shape[2]
        # One row will do for any batch: a search may look at one set in many states at once.
        if shape not in {(width,), (1, width), (items.batch, width)}:
            raise InvalidInput(
                "weights",
                found=f"shape {shape}",
                allowed=f"({width},) or ({items.batch}, {width}), to fit the features",
            )

    def _weights_by_item(self, items: Items) -> Float[Array, "... features"]:
        weights = cast_like(self.weights, items.features)
        return weights if weights.ndim == 1 else weights[:, None, :]


def _context_level(context: State, items: Items) -> Array:
    level = cast_like(context.level, items.features)
    batch, width = items.batch, items.features.shape[2]
    if level.shape[-1] != width or level.shape[0] not in {1, batch}:
        raise InvalidInput(
            "context",
            found=f"a level of shape {tuple(level.shape)}",
            allowed=f"({batch}, {width}), or (1, {width}) for all sets",
        )
    return namespace(level).broadcast_to(level, (batch, width))
