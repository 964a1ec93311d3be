"""Claim facets with greedy layers on top: the encoder's weights as parameters that are learned."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.encoders import FacetSizes, FacetWeights, Matches, encode, start_weights
from dgn.maximizers import Selections, greedy
from dgn.numerics import lowest_log
from dgn.objectives import FeatureCoverage, Items
from dgn.unfolding import LayerwiseCrossEntropy, SelectionNetwork, Unfolded, UnfoldedGreedy


@final
class FacetNetwork(SelectionNetwork):
    """Learns FacetWeights through K greedy layers; x is Matches of torch tensors."""

    def __init__(
        self,
        sizes: FacetSizes,
        greedy: UnfoldedGreedy | None = None,
        criterion: LayerwiseCrossEntropy | None = None,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.sizes = sizes
        start = start_weights(sizes, seed)
        self.facets = nn.ParameterDict(
            {name: nn.Parameter(torch.from_numpy(w.copy())) for name, w in vars(start).items()}
        )
        self.greedy = greedy or UnfoldedGreedy()
        self.criterion = criterion or LayerwiseCrossEntropy("set")
        self.dropout = nn.Dropout(dropout)

    def encode(self, matches: Matches) -> tuple[FeatureCoverage, Items]:
        """The objective of each claim, and its sentences."""
        facets = encode(FacetWeights(**dict(self.facets.items())), matches, self.dropout)
        return FeatureCoverage(facets.weights), Items(facets.features, matches.mask)

    def unfold(self, matches: Matches, prior: Tensor | None = None) -> Unfolded:
        """The soft search, differentiable."""
        return self.greedy(*self.encode(matches), prior=prior)

    def loss(
        self,
        x: Matches,
        gold: Tensor,
        mask: Tensor | None = None,
        rivals: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        prior = None if rivals is None else torch.where(gold, 1.0, rivals)
        return self.criterion(self.unfold(x, prior), gold if mask is None else gold & mask)

    def distilled_loss(
        self,
        x: Matches,
        gold: Tensor,
        mask: Tensor,
        rivals: Tensor | None,
        soft: Tensor,
        share: float,
        temperature: float,
    ) -> Float[Tensor, ""]:
        """The loss, mixed with the first layer's cross-entropy against a stronger model's choice.

        soft: [batch, items], its logits; claims with a NaN among them have the plain loss. share:
        how much the soft labels count. temperature: what the logits are divided by.
        """
        prior = None if rivals is None else torch.where(gold, 1.0, rivals)
        unfolded, real_gold = self.unfold(x, prior), gold & mask
        plain = LayerwiseCrossEntropy(self.criterion.assignment, "none")(unfolded, real_gold)
        has_gold = real_gold.any(dim=1)
        taught = ~(soft.isnan() & mask).any(dim=1) & has_gold
        logits = soft / temperature
        if prior is not None:  # the layer's chances have it too, and agreement must be at rest
            logits = logits + prior.log()
        logits = torch.where(mask & taught[:, None], logits, lowest_log(soft))
        wanted = torch.softmax(logits, dim=1)
        distilled = -(wanted * unfolded.log_probs[:, 0].clamp(min=-50)).sum(dim=1)
        mixed = torch.where(taught, (1 - share) * plain + share * distilled, plain)
        return torch.where(has_gold, mixed, 0.0).sum() / has_gold.sum().clamp(min=1)

    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        return (gold & mask).any(dim=1).sum().to(torch.float32)

    def start_as_identity(self, scale: float) -> None:
        """Nothing to do: the start is the untrained selector."""

    @torch.no_grad()
    def select(self, x: Matches, mask: Tensor | None = None, k: int | None = None) -> Selections:  # noqa: ARG002
        objective, items = self.encode(x)
        return greedy(objective, items, self.greedy.layers if k is None else k)

    def weights(self) -> FacetWeights:
        """What was learned, as NumPy arrays: all that selecting needs."""
        arrays: dict[str, NDArray[np.float32]] = {
            name: weight.detach().cpu().numpy().copy() for name, weight in self.facets.items()
        }
        return FacetWeights(**arrays)

    def described(self) -> dict[str, Any]:
        """Its sizes, as a configuration holds them."""
        return asdict(self.sizes)
