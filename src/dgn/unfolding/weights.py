"""Trainable weights that cannot become negative, and the set function that they build."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from dgn.errors import InvalidInput
from dgn.objectives import FeatureCoverage, SetFunction


class LearnedWeights(nn.Module):
    """Holds α ≥ 0 as softplus of a free parameter, and builds a set function from it.

    size: how many weights: the features of a coverage function, or the parts of a mixture.
    build: makes the set function of the weights, `FeatureCoverage` unless told otherwise; for a
        mixture, `lambda weights: Mixture((f, g), weights)`.
    initial: what every weight is at the start.
    """

    def __init__(
        self,
        size: int,
        build: Callable[[Tensor], SetFunction] = FeatureCoverage,
        *,
        initial: float = 1.0,
    ) -> None:
        super().__init__()
        if not initial > 0:
            raise InvalidInput("initial", found=f"{initial}", allowed="a number above 0")
        self.build = build
        # The inverse of softplus, so that softplus gives `initial` back.
        self.raw = nn.Parameter(torch.full((size,), initial + math.log(-math.expm1(-initial))))

    @property
    def weights(self) -> Tensor:
        """[size], at least 0."""
        return nn.functional.softplus(self.raw)

    def forward(self) -> SetFunction:
        return self.build(self.weights)
