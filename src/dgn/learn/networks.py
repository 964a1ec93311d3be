"""Networks that learn to select: the paper's DGN, its pointwise baselines, and their encoders.

Any module with `forward(x, mask) -> (SetFunction, Items)` can be trained inside a
DifferentiableGreedyNetwork. `FeatureEncoder` makes one of a module that computes features and a
module that holds the weights of the set function.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from dgn.core import Selections, greedy, top_k
from dgn.core.arrays import Float
from dgn.core.functions import FeatureCoverage, Items, Power, SetFunction
from dgn.errors import InvalidInput
from dgn.learn.layers import PAPER_LAYERS, Unfolded, UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy, Loss, weighted_binary_cross_entropy

_LEAK = 0.1
"""The gradient of the mean of an item's features where all of them are zero."""


class FeedForward(nn.Module):
    """The paper's layers: H = relu(W₂ · relu(W₁ · X + b₁) + b₂), for any number of layers.

    ReLU makes the features non-negative, as a coverage function needs them. An item all of whose
    features are zero still gets a small gradient in training, so that a dead encoder can recover.

    Args:
        widths: The number of inputs, then the width of every layer; (300, 300, 254) in the paper.
        dropout: The share of hidden units that are left out of a training step.
    """

    def __init__(self, widths: tuple[int, ...], dropout: float = 0.0) -> None:
        super().__init__()
        if len(widths) < 2 or min(widths) < 1:
            raise InvalidInput(
                "widths",
                found=str(widths),
                allowed="the number of inputs and at least one layer, all at least 1",
            )
        if not 0 <= dropout < 1:
            raise InvalidInput("dropout", found=f"{dropout}", allowed="at least 0 and below 1")
        self.widths = widths
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    @property
    def features(self) -> int:
        """The width of the last layer."""
        return self.widths[-1]

    def forward(self, x: Float[Tensor, "batch items inputs"]) -> Float[Tensor, "batch items _"]:
        *hidden, last = self.layers
        for layer in hidden:
            x = self.dropout(torch.relu(layer(x)))
        x = last(x)
        return cast("Tensor", _LeakyReLU.apply(x)) if self.training else torch.relu(x)

    @torch.no_grad()
    def start_with_scale(self, scale: float) -> None:
        """Multiply the weights of the first layer: X of unit vectors is small."""
        self.layers[0].get_parameter("weight").mul_(scale)

    @torch.no_grad()
    def start_as_identity(self, scale: float = 1.0) -> None:
        """Make the output exactly relu(scale · X), so that training starts at untrained greedy.

        Hidden layers that are at least as wide as the inputs pass X on; their other units stay
        random, unused at first and free to learn. A last layer that is narrower than the inputs
        keeps the first of them.
        """
        inputs = self.widths[0]
        if min(self.widths[1:-1], default=inputs) < inputs or self.features > inputs:
            raise InvalidInput(
                "widths",
                message=f"widths {self.widths} cannot start as the identity: hidden layers need at "
                f"least {inputs} units, and the last layer at most {inputs}.",
            )
        for depth, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)  # noqa: S101
            rows = min(inputs, layer.out_features)
            layer.weight[:rows] = 0
            layer.weight[:rows, :rows] = torch.eye(rows) * (scale if depth == 0 else 1.0)
            layer.bias[:rows] = 0


class _LeakyReLU(torch.autograd.Function):
    """relu(x), where items that have no feature at all still get a small gradient.

    Without it, an encoder that gives every item zeros has no gradient, and learns nothing more.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.relu(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        del inputs
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (features,), (gradient,) = ctx.saved_tensors, gradients
        is_dead = features.amax(dim=-1, keepdim=True) == 0
        mean = gradient.mean(dim=-1, keepdim=True)
        return gradient * (features > 0) + torch.where(is_dead, _LEAK * mean, 0.0)


class LearnedWeights(nn.Module):
    """Holds weights α ≥ 0 as softplus of a free parameter, and builds a set function from them.

    Args:
        size: The number of weights: the features of a coverage function, or the parts of a
            mixture.
        build: Makes the set function from the weights; for a mixture,
            `lambda weights: Mixture((f, g), weights)`.
        initial: The value of every weight at the start.
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
            raise InvalidInput("initial", found=f"{initial}", allowed="greater than 0")
        self.build = build
        # The inverse of softplus, so that softplus gives `initial`.
        self.raw = nn.Parameter(torch.full((size,), initial + math.log(-math.expm1(-initial))))

    @property
    def weights(self) -> Tensor:
        """[size], at least 0."""
        return nn.functional.softplus(self.raw)

    def forward(self) -> SetFunction:
        return self.build(self.weights)


class FeatureEncoder(nn.Module):
    """A trainable encoder: features from one module, the set function from another.

    Args:
        features: Any module from X, [batch, items, inputs], to non-negative features,
            [batch, items, features].
        objective: A module without inputs that builds the set function, for example
            LearnedWeights.
    """

    def __init__(self, features: nn.Module, objective: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.objective = objective

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[SetFunction, Items]:
        """The set function, and the items of each set.

        Args:
            x: [batch, items, inputs].
            mask: [batch, items], False for padding.
        """
        # A NaN in the padding would come back through the gradient of the features.
        clean = x if mask is None else torch.where(mask[..., None], x, 0.0)
        # Mixed precision ends here: sums and logarithms of the search use the dtype of X.
        return self.objective(), Items(self.features(clean).to(x.dtype), mask)

    def start_as_identity(self, scale: float = 1.0) -> None:
        """Start at the untrained greedy on relu(scale · X), if the features are a FeedForward."""
        if not isinstance(self.features, FeedForward):
            raise InvalidInput(
                "features",
                found=f"a {type(self.features).__name__}",
                allowed="a FeedForward, to start as the identity",
            )
        self.features.start_as_identity(scale)


@final
class PointwiseScorer(nn.Module):
    """A score for each item by itself: the layers of the paper, and a linear score.

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
        clean = x if mask is None else torch.where(mask[..., None], x, 0.0)
        return self.score(self.features(clean))[..., 0].to(x.dtype)

    @torch.no_grad()
    def start_as_identity(self, scale: float = 1.0) -> None:
        """Start at top-k of the sum of relu(scale · X)."""
        self.features.start_as_identity(scale)
        self.score.weight.fill_(1.0)
        self.score.bias.fill_(0.0)


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
    ) -> Float[Tensor, ""]:
        """What training minimizes: a mean over `loss_terms` terms.

        Args:
            x: What the encoder takes, for example [batch, items, inputs].
            gold: [batch, items], True for gold items.
            mask: [batch, items], False for padding.
        """

    @abstractmethod
    def loss_terms(self, gold: Tensor, mask: Tensor) -> Float[Tensor, ""]:
        """The number of terms that the loss is a mean of; 0 if there is nothing to learn.

        The mean over several batches is the mean of theirs, weighted by it.
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
    """

    def __init__(
        self,
        encoder: nn.Module,
        greedy: UnfoldedGreedy | None = None,
        criterion: Loss | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.greedy = greedy or UnfoldedGreedy()
        self.criterion = criterion or LayerwiseCrossEntropy()

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

    def unfold(
        self,
        x: Any,
        mask: Tensor | None = None,
        prior: Tensor | None = None,
    ) -> Unfolded:
        """The soft search, which is differentiable."""
        return self.greedy(*self.encode(x, mask), prior=prior)

    def membership(self, x: Any, mask: Tensor | None = None) -> Float[Tensor, "batch items"]:
        """How far each item is in the soft set at the end, from 0 to 1."""
        return self.unfold(x, mask).membership

    def loss(
        self,
        x: Any,
        gold: Tensor,
        mask: Tensor | None = None,
    ) -> Float[Tensor, ""]:
        gold = gold if mask is None else gold & mask
        return self.criterion(self.unfold(x, mask), gold)

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
        criterion: Loss | None = None,
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
    ) -> Float[Tensor, ""]:
        real = torch.ones_like(gold) if mask is None else mask
        scores = self.scores(x, mask)
        if self.greedy is None:
            return weighted_binary_cross_entropy(scores, gold, real, self.positive_weight)
        items = Items(nn.functional.softplus(scores)[..., None], mask)
        modular, gold = FeatureCoverage(concave=Power(1.0)), gold & real
        return self.criterion(self.greedy(modular, items), gold)

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
