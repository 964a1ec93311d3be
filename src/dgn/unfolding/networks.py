"""The networks that learn to select: the paper's DGN, and its pointwise baselines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.errors import InvalidInput
from dgn.maximizers import Selections, greedy, top_k
from dgn.objectives import FeatureCoverage, Items, Power, SetFunction
from dgn.unfolding.layers import PAPER_LAYERS, Unfolded, UnfoldedGreedy
from dgn.unfolding.losses import (
    Distillation,
    LayerwiseCrossEntropy,
    weighted_binary_cross_entropy,
)


class SelectionNetwork(nn.Module, ABC):
    """A network that is trained with `loss` and used with `select`.

    Attributes:
        encoder: The part that is learned.
    """

    encoder: nn.Module

    @abstractmethod
    def loss(
        self,
        x: Any,
        gold: Tensor,
        mask: Tensor | None = None,
        negative_weight: Tensor | None = None,
        teacher_logits: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        """What training minimizes: a mean over `loss_terms` terms.

        Args:
            x: What the encoder takes, for example [batch, items, inputs].
            gold: [batch, items], True for gold items.
            mask: [batch, items], False for padding.
            negative_weight: [batch, items], how much each item that is not gold counts against
                the gold; by default 1. Less where gold is incomplete: the item may be evidence
                that nobody labelled.
            teacher_logits: [batch, items], logits of a stronger model, NaN where there are none.
        """

    @abstractmethod
    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        """The number of terms that the loss is a mean of; 0 if there is nothing to learn.

        Processes that share a batch need it: the mean of the batch is the weighted mean of theirs.
        """

    @abstractmethod
    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        """Select up to k items of every set."""

    @abstractmethod
    def set_temperature(self, temperature: float) -> None:
        """Set the temperature of the soft search, if there is one."""


@final
class DifferentiableGreedyNetwork(SelectionNetwork):
    """The paper's network: greedy layers on learned features, under a learned set function.

    In `train()` mode a call unfolds the soft search; in `eval()` mode it selects by argmax with
    the same objective, so that the guarantee of greedy holds; k may then differ from K.

    Args:
        encoder: A module with `forward(x, mask) -> (SetFunction, Items)`, for example a
            FeatureEncoder.
        greedy: The layers.
        criterion: The loss of the layers.
        distillation: How much a stronger model's logits count, where there are some.
    """

    def __init__(
        self,
        encoder: nn.Module,
        greedy: UnfoldedGreedy | None = None,
        criterion: LayerwiseCrossEntropy | None = None,
        distillation: Distillation | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.greedy = greedy or UnfoldedGreedy()
        self.criterion = criterion or LayerwiseCrossEntropy()
        self.distillation = distillation

    def forward(
        self, x: Any, mask: Tensor | None = None, k: int | None = None
    ) -> Unfolded | Selections:
        if not self.training:
            return self.select(x, mask, k)
        if k is not None:
            raise InvalidInput(
                "k",
                message="k cannot be chosen in training mode, where the number of layers "
                "determines it; call eval() first.",
            )
        return self.unfold(x, mask)

    def encode(self, x: Any, mask: Tensor | None = None) -> tuple[SetFunction, Items]:
        """The set function, and the items of each set."""
        return self.encoder(x, mask)

    def unfold(self, x: Any, mask: Tensor | None = None, prior: Tensor | None = None) -> Unfolded:
        """The soft search, which is differentiable."""
        return self.greedy(*self.encode(x, mask), prior=prior)

    def loss(
        self,
        x: Any,
        gold: Tensor,
        mask: Tensor | None = None,
        negative_weight: Tensor | None = None,
        teacher_logits: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        prior = None if negative_weight is None else torch.where(gold, 1.0, negative_weight)
        real = torch.ones_like(gold) if mask is None else mask
        unfolded, gold = self.unfold(x, mask, prior), gold & real
        if self.distillation is None or teacher_logits is None:
            return self.criterion(unfolded, gold)
        return self.distillation.mix(self.criterion, unfolded, gold, real, teacher_logits, prior)

    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        return (gold & mask).any(dim=1).sum().to(torch.float32)

    @torch.no_grad()
    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        k = self.greedy.layers if k is None else k
        return cast("Selections", greedy(*self.encode(x, mask), k))

    def set_temperature(self, temperature: float) -> None:
        self.greedy.temperature = temperature


@final
class PointwiseNetwork(SelectionNetwork):
    """A baseline without diversity: it scores each item by itself and selects the k best.

    It learns from each item by itself, as in the paper; or, given `greedy`, with the loss of the
    DGN: then it is the DGN whose set function is the sum of the scores, log(1 + eˢ) each, and any
    difference to a DGN is due to the set function alone.

    Args:
        encoder: A module with `forward(x, mask)` that returns scores, [batch, items].
        positive_weight: How often gold counts in the loss of each item by itself.
        greedy: The layers, for the loss of the DGN.
        criterion: The loss of the layers.
    """

    def __init__(
        self,
        encoder: nn.Module,
        positive_weight: float = 5.0,
        greedy: UnfoldedGreedy | None = None,
        criterion: LayerwiseCrossEntropy | None = None,
    ) -> None:
        super().__init__()
        if not positive_weight > 0:
            raise InvalidInput(
                "positive_weight", found=f"{positive_weight}", allowed="greater than 0"
            )
        self.encoder = encoder
        self.positive_weight = positive_weight
        self.greedy = greedy
        self.criterion = criterion or LayerwiseCrossEntropy()

    def forward(
        self, x: Any, mask: Tensor | None = None, k: int | None = None
    ) -> Tensor | Selections:
        return self.scores(x, mask) if self.training else self.select(x, mask, k)

    def scores(self, x: Any, mask: Tensor | None = None) -> Float[Tensor, "batch items"]:
        """[batch, items], before the sigmoid."""
        return self.encoder(x, mask)

    def loss(
        self,
        x: Any,
        gold: Tensor,
        mask: Tensor | None = None,
        negative_weight: Tensor | None = None,
        teacher_logits: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        del teacher_logits
        real = torch.ones_like(gold) if mask is None else mask
        scores = self.scores(x, mask)
        if self.greedy is None:
            return weighted_binary_cross_entropy(
                scores, gold, real, self.positive_weight, negative_weight
            )
        prior = None if negative_weight is None else torch.where(gold, 1.0, negative_weight)
        items = Items(nn.functional.softplus(scores)[..., None], mask)
        unfolded = self.greedy(FeatureCoverage(concave=Power(1.0)), items, prior=prior)
        return self.criterion(unfolded, gold & real)

    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        counted = mask if self.greedy is None else (gold & mask).any(dim=1)
        return counted.sum().to(torch.float32)

    @torch.no_grad()
    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        k = PAPER_LAYERS if k is None else k
        return cast("Selections", top_k(self.scores(x, mask), k, mask))

    def set_temperature(self, temperature: float) -> None:
        if self.greedy is not None:
            self.greedy.temperature = temperature
