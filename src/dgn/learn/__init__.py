"""How does the search learn? The layers of the paper, its networks and losses, and the trainer.

What the paper is made of (Differentiable Greedy Networks, equations by their subject):

| equation | class | file |
| --- | --- | --- |
| f(A) = Σ_d α_d φ(Σ_{v∈A} h_vd), the submodular function | `FeatureCoverage`, `Log1p` | core/functions/features.py, concave.py |
| a* = argmax f(a given A), K times: greedy | `greedy` | core/greedy.py |
| p = softmax(gain / τ), the layer | `GreedyLayer` | learn/layers.py |
| K layers, each on the soft set of the last | `UnfoldedGreedy` | learn/layers.py |
| the layers with noise, or with the argmax in the forward pass | `Gumbel`, `StraightThrough` | learn/relaxations.py |
| CE, the loss of the layers | `LayerwiseCrossEntropy` | learn/losses.py |
| H = relu(W₂ relu(W₁ X + b₁) + b₂), the encoder | `FeedForward` | learn/networks.py |
| α = softplus(w) | `LearnedWeights` | learn/networks.py |
| DGN | `DifferentiableGreedyNetwork` | learn/networks.py |
| Encoder and Deep Encoder, the baselines | `PointwiseNetwork(PointwiseScorer(…))` | learn/networks.py |

In use:

    UnfoldedGreedy(layers=5)(objective, Items(features, mask))  a trainable "choose k" layer
    fit(DifferentiableGreedyNetwork(encoder), table)            training in memory
    train_on_rows(["rows.jsonl"], folder)                       from labelled rows to a model

It needs torch (`pip install "dgn[train]"`).
"""  # noqa: E501

from dgn.errors import require_extra

require_extra("dgn.learn", package="torch", extra="train")

from dgn.learn.batches import Batch, DenseTable, Table
from dgn.learn.fit import EpochReport, FitConfig, Trainer, fit, select_all
from dgn.learn.layers import GreedyLayer, SoftState, Unfolded, UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy, Loss, weighted_binary_cross_entropy
from dgn.learn.networks import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
    PointwiseNetwork,
    PointwiseScorer,
    SelectionNetwork,
)
from dgn.learn.relaxations import Choice, Gumbel, Relaxation, Softmax, StraightThrough
from dgn.learn.rows import RowsResult, train_on_rows

__all__ = [
    "Batch",
    "Choice",
    "DenseTable",
    "DifferentiableGreedyNetwork",
    "EpochReport",
    "FeatureEncoder",
    "FeedForward",
    "FitConfig",
    "GreedyLayer",
    "Gumbel",
    "LayerwiseCrossEntropy",
    "LearnedWeights",
    "Loss",
    "PointwiseNetwork",
    "PointwiseScorer",
    "Relaxation",
    "RowsResult",
    "SelectionNetwork",
    "SoftState",
    "Softmax",
    "StraightThrough",
    "Table",
    "Trainer",
    "Unfolded",
    "UnfoldedGreedy",
    "fit",
    "select_all",
    "train_on_rows",
    "weighted_binary_cross_entropy",
]
