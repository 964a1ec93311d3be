"""The networks of the paper from settings, and what it leaves open as choices of them.

The layers, the losses and the networks are those of `dgn.learn`. Here are three readings of the
loss that nobody should train with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dgn.core.functions import FeatureCoverage, Log1p, OneMinusExp, Power
from dgn.learn import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    FitConfig,
    Gumbel,
    LayerwiseCrossEntropy,
    LearnedWeights,
    Loss,
    PointwiseNetwork,
    PointwiseScorer,
    Softmax,
    StraightThrough,
    Unfolded,
    UnfoldedGreedy,
)

_CONCAVE = {"log": Log1p(), "sqrt": Power(0.5), "one-minus-exp": OneMinusExp()}
_RELAXATIONS = {"softmax": Softmax(), "gumbel": Gumbel(), "straight-through": StraightThrough()}

_WARM_UP, _LOWEST_TEMPERATURE = 50, 1e-3

Network = DifferentiableGreedyNetwork | PointwiseNetwork


@dataclass(frozen=True)
class Settings:
    """A network and its training.

    Attributes:
        architecture: "dgn", or "encoder", which scores every sentence by itself.
        widths: The units of every layer after the inputs.
        listwise: Whether an encoder is trained with the loss of the DGN.
        positive_weight: How often gold counts in the pointwise loss.
        layers: K, the number of greedy layers.
        relaxation: How a layer chooses: softmax, gumbel or straight-through.
        labels: Which gold sentence is the label of a layer: matched, ordered or set.
        loss: "layers", the paper's; "cumulative", "last layer" or "naive log", see below.
        concave: φ: log, sqrt or one-minus-exp.
        identity: Whether training starts at untrained greedy.
        scale: What X is multiplied with at the start.
        weights_start: α, the weight of every feature at the start.
        dropout: The share of hidden units that are left out of a step.
        temperature: τ at the start.
        annealing: What τ is multiplied with per epoch; .9 is the paper's annealing by 10%.
        weight_decay: The decay of the weights (AdamW); without it, the optimizer is Adam.
        learning_rate: Its rate.
        cosine: Whether the rate falls to 0 as a cosine, after 50 steps of warm-up.
        ema_decay: The decay of a moving average of the weights; 0 for none.
        epochs: The largest number of epochs.
        patience: Training stops after so many epochs without an improvement; 0 for never.
        claims: How many claims it learns from, drawn by the seed; 0 for all.
        candidates: The candidates of the claims that it learns from: "as they are", "1 per gold",
            or "4 pages".
        batch_size: Claims per step.
    """

    architecture: str = "dgn"
    widths: tuple[int, ...] = (300, 254)
    listwise: bool = False
    positive_weight: float = 5.0
    layers: int = 7
    relaxation: str = "softmax"
    labels: str = "matched"
    loss: str = "layers"
    concave: str = "log"
    identity: bool = False
    scale: float = 1.0
    weights_start: float = 1.0
    dropout: float = 0.0
    temperature: float = 4.0
    annealing: float = 1.0
    weight_decay: float = 0.0
    learning_rate: float = 1e-3
    cosine: bool = False
    ema_decay: float = 0.0
    epochs: int = 20
    patience: int = 5
    claims: int = 0
    candidates: str = "as they are"
    batch_size: int = 256

    @classmethod
    def of(cls, row: dict[str, Any]) -> Settings:
        """The settings that JSON has kept; the others have their defaults."""
        settings: dict[str, Any] = {**row, "widths": tuple(row.get("widths", cls.widths))}
        return cls(**settings)

    def fit_config(self, seed: int) -> FitConfig:
        """The training."""
        return FitConfig(
            epochs=self.epochs,
            patience=self.patience,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule="cosine" if self.cosine else "constant",
            warmup=_WARM_UP if self.cosine else 0,
            weight_decay=self.weight_decay,
            ema_decay=self.ema_decay,
            temperature=self.temperature,
            annealing=self.annealing,
            min_temperature=_LOWEST_TEMPERATURE,
            seed=seed,
        )


class CumulativeLoss(Loss):
    """The state of the paper's equation read as the soft set after the layer.

    With 1 − Π (1 − p) over all layers so far in place of p, it works against a claim with two gold
    sentences, whose state contains both where the equation allows one; the paper remarks on that.
    """

    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Tensor:
        labels = matched_labels(unfolded.log_probs, gold)
        log_out = unfolded.log_others.cumsum(dim=1).clamp(min=torch.finfo(torch.float32).min / 8)
        first, *others = unfolded.log_probs.unbind(dim=1)
        log_in = [first]
        for before, log_p in zip(log_out.unbind(dim=1), others, strict=False):
            # s ∪ p = s + (1 − s) p. In logarithms, what is far outside keeps its gradient.
            log_in.append(torch.logaddexp(log_in[-1], before + log_p))
        losses = -torch.where(labels, torch.stack(log_in, dim=1), log_out).sum(dim=2)
        return mean_of_layers(losses, gold)


class LastLayerLoss(Loss):
    """The cross-entropy of the soft set at the end alone; the paper computes it at each layer."""

    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Tensor:
        log_out = unfolded.log_others.sum(dim=1)
        log_in = torch.log(-torch.expm1(log_out.clamp(max=-1e-6)))
        losses = -torch.where(gold, log_in, log_out.clamp(min=-1e6)).sum(dim=1)
        has_gold = gold.any(dim=1)
        return torch.where(has_gold, losses, 0.0).sum() / has_gold.sum().clamp(min=1)


class NaiveLogLoss(Loss):
    """The loss of the paper with the logarithm of probabilities, as one would first write it."""

    def __call__(self, unfolded: Unfolded, gold: Tensor) -> Tensor:
        labels = matched_labels(unfolded.log_probs, gold)
        probs = unfolded.log_probs.exp()
        return mean_of_layers(-torch.where(labels, probs, 1 - probs).log().sum(dim=2), gold)


def matched_labels(log_probs: Tensor, gold: Tensor) -> Tensor:
    """[batch, layers, candidates]: the label of a layer is the most probable gold that is left."""
    left, labels = gold, list[Tensor]()
    for log_p in log_probs.detach().unbind(dim=1):
        best = torch.where(left, log_p, -torch.inf).argmax(dim=1, keepdim=True)
        label = torch.zeros_like(left).scatter(1, best, True) & left
        labels.append(label)
        left = left & ~label
    return torch.stack(labels, dim=1)


def mean_of_layers(losses: Tensor, gold: Tensor) -> Tensor:
    """The mean over claims with gold of the losses, [batch, layers], of the first |gold| layers."""
    layer = torch.arange(losses.shape[1], device=gold.device)
    counted = torch.where(layer < gold.sum(dim=1, keepdim=True), losses, 0.0)
    return counted.sum() / gold.any(dim=1).sum().clamp(min=1)


_LOSSES = {"cumulative": CumulativeLoss, "last layer": LastLayerLoss, "naive log": NaiveLogLoss}


def build_network(settings: Settings, inputs: int, seed: int) -> Network:
    """The network at its start; the same seed gives the same start."""
    layers = UnfoldedGreedy(
        settings.layers, settings.temperature, _RELAXATIONS[settings.relaxation]
    )
    if settings.loss == "layers":
        criterion: Loss = LayerwiseCrossEntropy(settings.labels)
    else:
        criterion = _LOSSES[settings.loss]()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        features = FeedForward((inputs, *settings.widths), settings.dropout)
        if settings.architecture == "encoder":
            features.start_with_scale(settings.scale)
            greedy = layers if settings.listwise else None
            return PointwiseNetwork(
                PointwiseScorer(features), settings.positive_weight, greedy, criterion
            )
        concave = _CONCAVE[settings.concave]

        def build(weights: Any) -> FeatureCoverage:
            return FeatureCoverage(weights, concave)

        alpha = LearnedWeights(settings.widths[-1], build, initial=settings.weights_start)
        if settings.identity:
            features.start_as_identity(settings.scale)
        else:
            features.start_with_scale(settings.scale)
        return DifferentiableGreedyNetwork(FeatureEncoder(features, alpha), layers, criterion)


def parameter_count(network: nn.Module) -> int:
    """The number of learned parameters."""
    return sum(parameter.numel() for parameter in network.parameters())
