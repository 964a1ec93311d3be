"""Which networks are trained for the report, and with which settings.

The settings of the three models come from a random search on fever-eraser
(experiments/results/README.md describes it); the studies vary them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SHARED: dict[str, Any] = {"schedule": "cosine", "warmup": 50, "ema_decay": 0.995}
DGN: dict[str, Any] = {
    **SHARED,
    "architecture": "dgn",
    "scale": 3.0,
    "dropout": 0.1,
    "layers": 3,
    "temperature": 4.0,
    "optimizer": "adamw",
    "learning_rate": 4.5e-3,
    "weight_decay": 0.1,
    "epochs": 20,
}
ENCODER: dict[str, Any] = {
    **SHARED,
    "architecture": "encoder",
    "scale": 10.0,
    "dropout": 0.1,
    "learning_rate": 5e-3,
    "positive_weight": 2.0,
    "epochs": 30,
}
DEEP_ENCODER: dict[str, Any] = {
    **SHARED,
    "architecture": "deep-encoder",
    "scale": 10.0,
    "optimizer": "adamw",
    "learning_rate": 1.7e-3,
    "weight_decay": 0.1,
    "positive_weight": 2.0,
    "epochs": 20,
}
MODELS = {"Encoder": ENCODER, "DeepEncoder": DEEP_ENCODER, "DGN": DGN}
# On vectors that are good untrained: stay close to the start, and never end below it.
NEAR_THE_START: dict[str, Any] = {
    **SHARED,
    "architecture": "dgn",
    "start": "identity",
    "scale": 100.0,
    "ema_decay": 0.99,
    "dropout": 0.3,
    "layers": 3,
    "temperature": 4.3,
    "learning_rate": 1.25e-4,
    "decay_to_start": 200.0,
    "never_below_start": "every-k",
    "epochs": 8,
}
HIDDEN_NEAR_THE_START = 1024

TEMPERATURES = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0)
POSITIVE_WEIGHTS = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
SHARES_OF_CLAIMS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
ABLATIONS: dict[str, dict[str, Any]] = {
    "labels `ordered`": {"assignment": "ordered"},
    "labels `matched`": {"assignment": "matched"},
    "K = 1": {"layers": 1},
    "K = 7, the paper's": {"layers": 7},
    "start at the identity": {"start": "identity"},
    "straight-through": {"relaxation": "straight-through"},
    "no dropout": {"dropout": 0.0},
    "no average of weights": {"ema_decay": 0.0},
    "Adam, constant rate of .001": {
        "optimizer": "adam",
        "weight_decay": 0.0,
        "learning_rate": 1e-3,
        "schedule": "constant",
        "warmup": 0,
    },
}


@dataclass(frozen=True)
class PlannedRun:
    """One network to train.

    Attributes:
        study: The study that it belongs to.
        variant: The variant of the study.
        seed: The seed.
        settings: What differs from the defaults.
        second_vectors: Whether it is trained on the second vectors.
    """

    study: str
    variant: str
    seed: int
    settings: dict[str, Any]
    second_vectors: bool = False

    @property
    def folder(self) -> str:
        """The name of its folder."""
        plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in self.variant)
        return f"{self.study}/{plain.strip('-')}-seed{self.seed}"


@dataclass(frozen=True)
class Effort:
    """How much to train.

    Attributes:
        seeds: The number of seeds of the tables.
        study_seeds: The number of seeds of each point of a study.
        studies: Whether the studies are run at all.
        epochs: The number of epochs, in place of each model's own.
    """

    seeds: int = 5
    study_seeds: int = 2
    studies: bool = True
    epochs: int | None = None


def make_plan(effort: Effort, training_claims: int, second_inputs: int) -> list[PlannedRun]:
    """All runs of a report, those of the tables first.

    Args:
        effort: How much to train.
        training_claims: The number of training claims.
        second_inputs: The dimension of the second vectors.
    """
    runs = list(_tables(effort, second_inputs))
    if effort.studies:
        runs += _studies(effort, training_claims)
    return [_completed(run, effort, training_claims) for run in runs]


def _completed(run: PlannedRun, effort: Effort, training_claims: int) -> PlannedRun:
    """The run with a batch size that gives about 64 steps per epoch."""
    claims = run.settings.get("max_queries", training_claims)
    batch_size = 2 ** min(8, max(2, round(math.log2(max(claims, 1) / 64))))
    settings = {**run.settings, "batch_size": batch_size}
    if effort.epochs is not None:
        settings["epochs"] = effort.epochs
    return dataclasses.replace(run, settings=settings)


def _tables(effort: Effort, second_inputs: int) -> Iterator[PlannedRun]:
    for seed in range(effort.seeds):
        for name, settings in MODELS.items():
            yield PlannedRun("table", name, seed, settings)
    widths = [max(HIDDEN_NEAR_THE_START, second_inputs), second_inputs]
    near = {**NEAR_THE_START, "widths": widths}
    for seed in range(effort.seeds):
        yield PlannedRun("second-vectors", "DGN", seed, near, second_vectors=True)


def _studies(effort: Effort, training_claims: int) -> Iterator[PlannedRun]:
    for seed in range(effort.study_seeds):
        low = {**DGN, "learning_rate": DGN["learning_rate"] / 10}
        yield PlannedRun("learning-rate", "a tenth", seed, low)
        for temperature in TEMPERATURES:
            fixed = {**DGN, "temperature": temperature}
            yield PlannedRun("temperature", f"fixed {temperature}", seed, fixed)
            annealed = {**fixed, "annealing": "geometric", "min_temperature": 1e-3}
            yield PlannedRun("temperature", f"annealed {temperature}", seed, annealed)
        for weight in POSITIVE_WEIGHTS:
            settings = {**ENCODER, "positive_weight": weight}
            yield PlannedRun("imbalance", f"Encoder {weight}", seed, settings)
        for name, change in ABLATIONS.items():
            yield PlannedRun("ablation", name, seed, {**DGN, **change})
        for share in SHARES_OF_CLAIMS:
            claims = max(1, round(share * training_claims))
            yield PlannedRun("claims", f"{claims}", seed, {**DGN, "max_queries": claims})
    for weight in (POSITIVE_WEIGHTS[0], POSITIVE_WEIGHTS[-1]):
        settings = {**DGN, "positive_weight": weight}
        yield PlannedRun("imbalance", f"DGN {weight}", 0, settings)
