"""How does the search learn? Greedy, unfolded into network layers; needs torch (`dgn[train]`)."""

from dgn.errors import require_extra

require_extra("dgn.unfolding", package="torch", extra="train")

from dgn.unfolding.encoders import FeatureEncoder, FeedForward, LearnedWeights
from dgn.unfolding.layers import GreedyLayer, SoftState, Unfolded, UnfoldedGreedy
from dgn.unfolding.losses import (
    Distillation,
    LayerwiseCrossEntropy,
    weighted_binary_cross_entropy,
)
from dgn.unfolding.networks import (
    DifferentiableGreedyNetwork,
    PointwiseNetwork,
    SelectionNetwork,
)
from dgn.unfolding.relaxations import Gumbel, Relaxation, Softmax, StraightThrough

__all__ = [
    "DifferentiableGreedyNetwork",
    "Distillation",
    "FeatureEncoder",
    "FeedForward",
    "GreedyLayer",
    "Gumbel",
    "LayerwiseCrossEntropy",
    "LearnedWeights",
    "PointwiseNetwork",
    "Relaxation",
    "SelectionNetwork",
    "SoftState",
    "Softmax",
    "StraightThrough",
    "Unfolded",
    "UnfoldedGreedy",
    "weighted_binary_cross_entropy",
]
