"""The networks that learn to select, and the paper's one: encoder, objective and greedy layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import torch
from torch import Tensor, nn

from dgn.arrays import Float
from dgn.errors import InvalidInput
from dgn.maximizers import Selections, greedy
from dgn.objectives import Items, SetFunction
from dgn.unfolding.feedforward import FeedForwardEncoder
from dgn.unfolding.layer import Unfolded, UnfoldedGreedy
from dgn.unfolding.losses import LayerwiseCrossEntropy


class SelectionNetwork(nn.Module, ABC):
    """A network that is trained with `loss` and used with `select`.

    Inputs are X, [batch, items, inputs] or what the network's encoder takes, and mask, [batch,
    items] (left out: no padding).
    """

    @abstractmethod
    def loss(
        self, x: Any, gold: Tensor, mask: Tensor | None = None, rivals: Tensor | None = None
    ) -> Float[Tensor, ""]:
        """What training minimises, for gold, [batch, items]: a mean, over `loss_terms` terms.

        rivals: [batch, items], how much each item that is not gold counts against the gold; left
        out, 1. Less where gold is incomplete: the item may be evidence that nobody labelled.
        """

    @abstractmethod
    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        """How many terms the loss is a mean of; 0 where there is nothing to learn.

        Processes that share a batch need it: the batch's mean is the weighted mean of theirs.
        """

    @abstractmethod
    def start_as_identity(self, scale: float) -> None:
        """Let training start at the untrained baseline on relu(scale · X)."""

    @abstractmethod
    def select(self, x: Any, mask: Tensor | None = None, k: int | None = None) -> Selections:
        """Pick up to k items of every set."""


def without_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """X with zeros for padding: a NaN there would come back through the encoder's gradient."""
    return x if mask is None else torch.where(mask[..., None], x, 0.0)


@final
class DifferentiableGreedyNetwork(SelectionNetwork):
    """The paper's network: greedy layers on learned features, under a learned set function.

    encoder: any module from X to non-negative features, [batch, items, features].
    objective: a module without inputs whose forward builds the set function (LearnedWeights).
    greedy: the layers.

    In `train()` mode a call unfolds the soft search; in `eval()` mode it selects by argmax, with
    the very same objective, so that the guarantee of greedy holds; k may then differ from K.
    """

    def __init__(
        self,
        encoder: nn.Module,
        objective: nn.Module,
        greedy: UnfoldedGreedy | None = None,
        criterion: LayerwiseCrossEntropy | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.objective = objective
        self.greedy = greedy or UnfoldedGreedy()
        self.criterion = criterion or LayerwiseCrossEntropy()

    def forward(
        self, x: Tensor, mask: Tensor | None = None, k: int | None = None
    ) -> Unfolded | Selections:
        if not self.training:
            return self.select(x, mask, k)
        if k is not None:
            raise InvalidInput(
                "k", found=f"{k} in training mode", allowed="eval() first; K layers train"
            )
        return self.unfold(x, mask)

    def unfold(
        self, x: Tensor, mask: Tensor | None = None, prior: Tensor | None = None
    ) -> Unfolded:
        """The soft search, differentiable."""
        return self.greedy(self.objective(), self.encode(x, mask), prior=prior)

    def loss(
        self, x: Any, gold: Tensor, mask: Tensor | None = None, rivals: Tensor | None = None
    ) -> Float[Tensor, ""]:
        prior = None if rivals is None else torch.where(gold, 1.0, rivals)
        return self.criterion(self.unfold(x, mask, prior), gold if mask is None else gold & mask)

    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        return (gold & mask).any(dim=1).sum().to(torch.float32)

    def start_as_identity(self, scale: float) -> None:
        """Start at the untrained greedy; for the paper's encoder."""
        if not isinstance(self.encoder, FeedForwardEncoder):
            raise InvalidInput(
                "encoder", found=type(self.encoder).__name__, allowed="a FeedForwardEncoder"
            )
        self.encoder.start_as_identity(scale)

    @torch.no_grad()
    def select(self, x: Tensor, mask: Tensor | None = None, k: int | None = None) -> Selections:
        k = self.greedy.layers if k is None else k
        return greedy(self.objective(), self.encode(x, mask), k)

    def encode(self, x: Tensor, mask: Tensor | None = None) -> Items:
        """The items as the objective sees them."""
        # Mixed precision ends here: sums and logarithms of the search are float32's.
        return Items(self.encoder(without_padding(x, mask)).to(x.dtype), mask)

    def set_function(self) -> SetFunction:
        """The objective as it stands, to maximise or to explain by hand."""
        built: Any = self.objective()
        return built
