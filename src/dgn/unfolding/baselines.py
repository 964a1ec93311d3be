"""The paper's baselines: the encoder without greedy layers, every item scored by itself."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.errors import InvalidInput
from dgn.maximizers import Selections, top_k
from dgn.unfolding.feedforward import FeedForwardEncoder
from dgn.unfolding.layer import PAPER_LAYERS
from dgn.unfolding.losses import weighted_binary_cross_entropy
from dgn.unfolding.network import SelectionNetwork, without_padding


class ScoringNetwork(SelectionNetwork):
    """Scores each item alone, and selects the k best scores."""

    def __init__(self, encoder: FeedForwardEncoder, positive_weight: float) -> None:
        super().__init__()
        if not positive_weight > 0:
            raise InvalidInput(
                "positive_weight", found=f"{positive_weight}", allowed="a number above 0"
            )
        self.encoder = encoder
        self.score = nn.Linear(encoder.features, 1)
        self.positive_weight = positive_weight

    @final
    def forward(
        self, x: Tensor, mask: Tensor | None = None, k: int | None = None
    ) -> Tensor | Selections:
        return self.scores(x, mask) if self.training else self.select(x, mask, k)

    @final
    def scores(self, x: Tensor, mask: Tensor | None = None) -> Float[Tensor, "batch items"]:
        """A score for every item, [batch, items], before the sigmoid."""
        return self.score(self.encoder(without_padding(x, mask)))[..., 0].to(x.dtype)

    @final
    def loss(
        self, x: Tensor, gold: Tensor, mask: Tensor | None = None, rivals: Tensor | None = None
    ) -> Float[Tensor, ""]:
        real = torch.ones_like(gold) if mask is None else mask
        return weighted_binary_cross_entropy(
            self.scores(x, mask), gold, real, self.positive_weight, rivals
        )

    @final
    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:  # noqa: ARG002
        return mask.sum().to(torch.float32)

    @final
    @torch.no_grad()
    def start_as_identity(self, scale: float) -> None:
        """Start at Top-k of the sum of relu(scale · X)."""
        self.encoder.start_as_identity(scale)
        self.score.weight.fill_(1.0)
        self.score.bias.fill_(0.0)

    @final
    @torch.no_grad()
    def select(self, x: Tensor, mask: Tensor | None = None, k: int | None = None) -> Selections:
        return top_k(self.scores(x, mask), PAPER_LAYERS if k is None else k, mask)


@final
class EncoderNetwork(ScoringNetwork):
    """The paper's Encoder: two layers and a linear score."""

    def __init__(
        self,
        widths: tuple[int, int, int] = (300, 300, 270),
        positive_weight: float = 5.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(FeedForwardEncoder(widths, dropout), positive_weight)


@final
class DeepEncoderNetwork(ScoringNetwork):
    """The paper's DeepEncoder: one more encoding layer."""

    def __init__(
        self,
        widths: tuple[int, int, int, int] = (300, 701, 702, 300),
        positive_weight: float = 5.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(FeedForwardEncoder(widths, dropout), positive_weight)
