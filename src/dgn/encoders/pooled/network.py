"""The paper's encoder as torch modules: for a DGN, and for the pointwise baselines."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.unfolding import FeedForward


@final
class PooledScorer(nn.Module):
    """A score for each passage by itself: the paper's layers and a linear score.

    Args:
        features: The layers, from X to features.
    """

    def __init__(self, features: FeedForward) -> None:
        super().__init__()
        self.features = features
        self.score = nn.Linear(features.features, 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "batch items"]:
        """[batch, items], before the sigmoid."""
        # A NaN in the padding would come back through the gradient.
        x = x if mask is None else torch.where(mask[..., None], x, 0.0)
        return self.score(self.features(x))[..., 0].to(x.dtype)

    @torch.no_grad()
    def start_as_identity(self, scale: float) -> None:
        """Start at top-k of the sum of relu(scale · X)."""
        self.features.start_as_identity(scale)
        self.score.weight.fill_(1.0)
        self.score.bias.fill_(0.0)
