"""The paper's three networks, in its sizes (for 300-dimensional inputs)."""

from __future__ import annotations

from dgn.unfolding.baselines import DeepEncoderNetwork, EncoderNetwork
from dgn.unfolding.feedforward import FeedForwardEncoder
from dgn.unfolding.layer import UnfoldedGreedy
from dgn.unfolding.network import DifferentiableGreedyNetwork
from dgn.unfolding.weights import LearnedWeights


def paper_dgn() -> DifferentiableGreedyNetwork:
    """The paper's DGN: 300 → 300 → 254 features and their weights; 167,008 parameters, K = 7."""
    encoder = FeedForwardEncoder((300, 300, 254))
    return DifferentiableGreedyNetwork(encoder, LearnedWeights(254), UnfoldedGreedy())


def paper_encoder() -> EncoderNetwork:
    """The paper's Encoder: 300 → 300 → 270 → 1; 171,841 parameters."""
    return EncoderNetwork((300, 300, 270))


def paper_deep_encoder() -> DeepEncoderNetwork:
    """The paper's DeepEncoder: one more layer, 300 → 701 → 702 → 300 → 1; 915,006 parameters.

    The paper gives the number of layers and 915K parameters; the widths are ours. With a last
    layer as wide as the inputs it can start as the identity, as the other two can.
    """
    return DeepEncoderNetwork((300, 701, 702, 300))
