"""The networks that a configuration names."""

from __future__ import annotations

import torch

from dgn.encoders import FacetSizes
from dgn.errors import InvalidInput
from dgn.training.config import NetworkConfig
from dgn.training.facet_network import FacetNetwork
from dgn.unfolding import (
    DeepEncoderNetwork,
    DifferentiableGreedyNetwork,
    EncoderNetwork,
    FeedForwardEncoder,
    Gumbel,
    LayerwiseCrossEntropy,
    LearnedWeights,
    Relaxation,
    SelectionNetwork,
    Softmax,
    StraightThrough,
    UnfoldedGreedy,
)

_RELAXATIONS: dict[str, type[Relaxation]] = {
    "softmax": Softmax,
    "straight-through": StraightThrough,
    "gumbel": Gumbel,
}


def build_network(config: NetworkConfig, inputs: int, seed: int) -> SelectionNetwork:
    """The network, at its start; the same seed gives the same start."""
    if config.encoder == "facets":
        sizes = FacetSizes(
            inputs, config.rank, config.compared, config.more_features, config.hidden
        )
        greedy = UnfoldedGreedy(config.layers, relaxation=_RELAXATIONS[config.relaxation]())
        criterion = LayerwiseCrossEntropy(config.assignment)
        return FacetNetwork(sizes, greedy, criterion, config.dropout, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, encoder = _unstarted(config, (inputs, *_widths(config, inputs)))
        if config.start == "identity":
            network.start_as_identity(config.scale)
        else:
            encoder.start_with_scale(config.scale)
    return network


def parameter_count(network: SelectionNetwork) -> int:
    """How many numbers are learned."""
    return sum(parameter.numel() for parameter in network.parameters())


def _unstarted(
    config: NetworkConfig, widths: tuple[int, ...]
) -> tuple[SelectionNetwork, FeedForwardEncoder]:
    if config.model == "dgn":
        encoder = FeedForwardEncoder(widths, config.dropout)
        greedy = UnfoldedGreedy(config.layers, relaxation=_RELAXATIONS[config.relaxation]())
        criterion = LayerwiseCrossEntropy(config.assignment)
        weights = LearnedWeights(widths[-1])
        return DifferentiableGreedyNetwork(encoder, weights, greedy, criterion), encoder
    kind, layers = (EncoderNetwork, 2) if config.model == "encoder" else (DeepEncoderNetwork, 3)
    if len(widths) != layers + 1:
        raise InvalidInput(
            "widths", found=str(widths[1:]), allowed=f"{layers} layers for the {config.model}"
        )
    scorer = kind(widths, config.positive_weight, config.dropout)  # pyright: ignore[reportArgumentType]
    return scorer, scorer.encoder


def _widths(config: NetworkConfig, inputs: int) -> tuple[int, ...]:
    """As told, or the paper's; a start as the identity keeps as many features as there are."""
    if config.widths:
        return config.widths
    if config.model == "dgn":
        return (inputs, inputs if config.start == "identity" else 254)
    if config.model == "encoder":
        return (inputs, min(inputs, 270) if config.start == "identity" else 270)
    return (max(701, inputs), max(702, inputs), min(300, inputs))
