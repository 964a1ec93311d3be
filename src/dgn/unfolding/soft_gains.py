"""The gains of a soft search, with the gradient of the paper's objective written by hand.

For f(A) = Σ_u α_u log(1 + m_u), every layer computes Σ_u α_u log1p(o_a h_au / (1 + m_u)) for all
items a, where o is how much of an item is outside. Autograd would keep a new array of
[batch, items, features] for every multiplication, on the way there and back; by hand it takes half
of them. The numbers are those of `FeatureCoverage.gains`, which serves every other objective.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dgn.objectives import FeatureCoverage, Items, Log1p, SetFunction, State


def soft_gains(objective: SetFunction, items: Items, state: State) -> Tensor:
    """f(v | A) of every item, [batch, items], differentiable."""
    if (
        isinstance(objective, FeatureCoverage)
        and isinstance(objective.concave, Log1p)
        and isinstance(objective.weights, Tensor)
        and objective.weights.ndim == 1
        and objective.weights.dtype == items.features.dtype
    ):
        room = 1 / (1 + state.level)
        arguments = (items.features, room, state.outside, objective.weights)
        return cast(Tensor, _LogGains.apply(*arguments))
    return objective.gains(items, state)


class _LogGains(torch.autograd.Function):
    """Σ_u weights_u · log1p(outside_a · features_au · room_u)."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, room: Tensor, outside: Tensor, weights: Tensor
    ) -> Tensor:
        step = features * room[:, None, :]
        step *= outside[..., None]
        increase = torch.log1p(step)
        ctx.save_for_backward(features, room, outside, weights, step, increase)
        return increase @ weights

    @staticmethod
    @once_differentiable  # pyright takes the decorated function's arguments for nameless
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *gradients: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (gradient,) = gradients
        features, room, outside, weights, step, increase = ctx.saved_tensors
        flat = increase.reshape(-1, increase.shape[-1])
        for_weights = gradient.reshape(-1) @ flat
        # ∂/∂step, which all three factors of the step share.
        slope = weights / (1 + step)
        slope *= gradient[..., None]
        by_features = slope * features
        for_room = (outside[:, None, :] @ by_features)[:, 0, :]
        for_outside = (by_features @ room[:, :, None])[..., 0]
        slope *= outside[..., None]
        slope *= room[:, None, :]
        return slope, for_room, for_outside, for_weights
