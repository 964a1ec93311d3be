"""How does the search learn? Unfolded layers, losses, networks, and training runs.

    UnfoldedGreedy(layers=5)(objective, items)      a trainable, diverse "choose k" layer
    DifferentiableGreedyNetwork(encoder)            the paper's network
    fit(network, train, validation, FitConfig())    training in memory
    train(RunConfig(...), folder)                   a run that can be stopped and resumed
    train_on_rows(["rows.jsonl"], folder)           from your own labels to a model
    fit_outcomes(OutcomeNetwork(...), outcomes, …)  from verdicts alone, without evidence labels

Most of it needs torch (`dgn[train]`) and is imported when it is first used; the configuration and
the families do not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dgn.errors import require_extra
from dgn.learn.config import (
    DataConfig,
    FitConfig,
    Fixed,
    Geometric,
    Linear,
    MachineConfig,
    NetworkConfig,
    RunConfig,
    Schedule,
    read_config,
)

if TYPE_CHECKING:
    from dgn.learn.layers import GreedyLayer, SoftState, Unfolded, UnfoldedGreedy
    from dgn.learn.losses import (
        Distillation,
        LayerwiseCrossEntropy,
        Loss,
        weighted_binary_cross_entropy,
    )
    from dgn.learn.networks import (
        DifferentiableGreedyNetwork,
        FeatureEncoder,
        FeedForward,
        LearnedWeights,
        PointwiseNetwork,
        SelectionNetwork,
    )
    from dgn.learn.outcomes import (
        EvidenceReader,
        OutcomeConfig,
        OutcomeNetwork,
        OutcomeReport,
        Outcomes,
        SoftSelector,
        fit_outcomes,
        measure_outcomes,
        outcome_losses,
    )
    from dgn.learn.relaxations import (
        Choice,
        GreedyLikelihood,
        Gumbel,
        ImplicitMLE,
        Perturbed,
        Relaxation,
        Softmax,
        Sparsemax,
        StraightThrough,
    )
    from dgn.learn.rows import RowsResult, train_on_rows
    from dgn.learn.run import RunResult, is_finished, load_network, open_run, train
    from dgn.learn.setup import build_network, find_device, parameter_count, to_device
    from dgn.learn.trainer import EpochReport, Trainer, fit, select_all

_MODULES = {
    "layers": ("GreedyLayer", "SoftState", "Unfolded", "UnfoldedGreedy"),
    "losses": ("Distillation", "LayerwiseCrossEntropy", "Loss", "weighted_binary_cross_entropy"),
    "networks": (
        *("DifferentiableGreedyNetwork", "FeatureEncoder", "FeedForward", "LearnedWeights"),
        *("PointwiseNetwork", "SelectionNetwork"),
    ),
    "outcomes": (
        *("EvidenceReader", "OutcomeConfig", "OutcomeNetwork", "OutcomeReport", "Outcomes"),
        *("SoftSelector", "fit_outcomes", "measure_outcomes", "outcome_losses"),
    ),
    "rows": ("RowsResult", "train_on_rows"),
    "relaxations": (
        *("Choice", "GreedyLikelihood", "Gumbel", "ImplicitMLE", "Perturbed", "Relaxation"),
        *("Softmax", "Sparsemax", "StraightThrough"),
    ),
    "run": ("RunResult", "is_finished", "load_network", "open_run", "train"),
    "setup": ("build_network", "find_device", "parameter_count", "to_device"),
    "trainer": ("EpochReport", "Trainer", "fit", "select_all"),
}
_TORCH = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Choice",
    "DataConfig",
    "DifferentiableGreedyNetwork",
    "Distillation",
    "EpochReport",
    "EvidenceReader",
    "FeatureEncoder",
    "FeedForward",
    "FitConfig",
    "Fixed",
    "Geometric",
    "GreedyLayer",
    "GreedyLikelihood",
    "Gumbel",
    "ImplicitMLE",
    "LayerwiseCrossEntropy",
    "LearnedWeights",
    "Linear",
    "Loss",
    "MachineConfig",
    "NetworkConfig",
    "OutcomeConfig",
    "OutcomeNetwork",
    "OutcomeReport",
    "Outcomes",
    "Perturbed",
    "PointwiseNetwork",
    "Relaxation",
    "RowsResult",
    "RunConfig",
    "RunResult",
    "Schedule",
    "SelectionNetwork",
    "SoftSelector",
    "SoftState",
    "Softmax",
    "Sparsemax",
    "StraightThrough",
    "Trainer",
    "Unfolded",
    "UnfoldedGreedy",
    "build_network",
    "find_device",
    "fit",
    "fit_outcomes",
    "is_finished",
    "load_network",
    "measure_outcomes",
    "open_run",
    "outcome_losses",
    "parameter_count",
    "read_config",
    "select_all",
    "to_device",
    "train",
    "train_on_rows",
    "weighted_binary_cross_entropy",
]


def __getattr__(name: str) -> Any:
    if name not in _TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("dgn.learn", package="torch", extra="train")
    return getattr(importlib.import_module(f"dgn.learn.{_TORCH[name]}"), name)
