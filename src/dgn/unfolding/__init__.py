"""How does the search learn? Greedy, unfolded into network layers; needs torch (`dgn[train]`)."""

from dgn.errors import require_extra

require_extra("dgn.unfolding", package="torch", extra="train")

from dgn.unfolding.baselines import DeepEncoderNetwork, EncoderNetwork
from dgn.unfolding.feedforward import FeedForwardEncoder
from dgn.unfolding.layer import GreedyLayer, SoftState, Unfolded, UnfoldedGreedy
from dgn.unfolding.losses import LayerwiseCrossEntropy, weighted_binary_cross_entropy
from dgn.unfolding.network import DifferentiableGreedyNetwork, SelectionNetwork
from dgn.unfolding.presets import paper_deep_encoder, paper_dgn, paper_encoder
from dgn.unfolding.relaxations import Gumbel, Relaxation, Softmax, StraightThrough
from dgn.unfolding.schedules import Fixed, Geometric, Linear, Schedule
from dgn.unfolding.weights import LearnedWeights

__all__ = [
    "DeepEncoderNetwork",
    "DifferentiableGreedyNetwork",
    "EncoderNetwork",
    "FeedForwardEncoder",
    "Fixed",
    "Geometric",
    "GreedyLayer",
    "Gumbel",
    "LayerwiseCrossEntropy",
    "LearnedWeights",
    "Linear",
    "Relaxation",
    "Schedule",
    "SelectionNetwork",
    "SoftState",
    "Softmax",
    "StraightThrough",
    "Unfolded",
    "UnfoldedGreedy",
    "paper_deep_encoder",
    "paper_dgn",
    "paper_encoder",
    "weighted_binary_cross_entropy",
]
