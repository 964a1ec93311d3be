"""How the encoder of the paper is trained: its settings, its features and its torch modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from dgn.data import Batches, ToDevice
from dgn.errors import InvalidInput
from dgn.learn.families.base import FeatureOptions, FeatureWriter, TrainableFamily
from dgn.learn.families.pooled_table import PooledBatches, PooledTable, PooledWriter
from dgn.settings import check_above, check_choices, setting
from dgn.text.pooled import CONCAVE, OBJECTIVES, PooledEncoder, objective_of

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class PooledSettings:
    """The layers of the paper's encoder, and where training starts."""

    widths: tuple[int, ...] = setting((), "units of each layer; the paper's by default")
    start: str = setting(
        "random",
        "identity: start exactly at the untrained greedy (or top-k)",
        choices=("random", "identity"),
    )
    scale: float = setting(1.0, "what the inputs are multiplied with at the start")
    weights_start: float = setting(1.0, "α, the weight of every feature of a DGN at the start")
    objective: str = setting("feature-coverage", "the set function of a DGN", parts=OBJECTIVES)
    concave: str = setting(
        "log", "φ, how the features of a DGN saturate; log is the paper's", parts=CONCAVE
    )

    def __post_init__(self) -> None:
        check_choices(self)
        check_above(self, 0, "scale", "weights_start")

    def all_widths(self, architecture: str, inputs: int) -> tuple[int, ...]:
        """The inputs and the width of every layer; the paper's where none are given.

        A start as the identity keeps as many features as there are inputs.
        """
        identity = self.start == "identity"
        if self.widths:
            widths = self.widths
        elif architecture == "dgn":
            widths = (inputs, inputs if identity else 254)
        elif architecture == "encoder":
            widths = (inputs, min(inputs, 270) if identity else 270)
        else:
            widths = (max(701, inputs), max(702, inputs), min(300, inputs))
        layers = {"encoder": 2, "deep-encoder": 3}.get(architecture, len(widths))
        if len(widths) != layers:
            raise InvalidInput(
                "widths",
                found=str(widths),
                allowed=f"{layers} layers for the {architecture}",
            )
        return (inputs, *widths)


@final
class PooledFamily(TrainableFamily):
    """Trains PooledEncoder, the encoder of the paper, and its pointwise baselines."""

    encoder = PooledEncoder
    settings = PooledSettings

    def check_options(self, options: FeatureOptions) -> None:
        if not options.titles:
            raise InvalidInput(
                "titles", message="The pooled encoder never uses titles; leave out --no-titles."
            )

    def feature_key(self, options: FeatureOptions) -> dict[str, Any]:
        del options
        return {}

    def open_writer(self, folder: Path, options: FeatureOptions, workers: int) -> FeatureWriter:
        return PooledWriter(folder, options, workers)

    def load_tables(
        self,
        folders: Sequence[Path],
        *,
        partial: Sequence[Path] = (),
        negative_weight: float = 1.0,
    ) -> PooledTable:
        del negative_weight
        if partial:
            raise InvalidInput(
                "partial",
                message="The pooled encoder does not weight incomplete gold; pass all folders as "
                "train.",
            )
        return PooledTable.join([PooledTable.load(folder) for folder in folders])

    def batches(self, table: Any, batch_size: int, seed: int, to_device: ToDevice) -> Batches:
        return PooledBatches(table, batch_size, seed, to_device)

    def module(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        import torch

        from dgn.learn.families.modules import PooledScorer
        from dgn.learn.networks import FeatureEncoder, FeedForward, LearnedWeights

        widths = settings.all_widths(architecture, inputs)
        # Made before any random number is drawn: a part of the user may draw some.
        build = objective_of(settings.objective, settings.concave)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            features = FeedForward(widths, dropout)
            if architecture == "dgn":
                alpha = LearnedWeights(widths[-1], build, initial=settings.weights_start)
                module: Any = FeatureEncoder(features, alpha)
            else:
                module = PooledScorer(features)
            if settings.start == "identity":
                module.start_as_identity(settings.scale)
            else:
                features.start_with_scale(settings.scale)
        return module

    def describe(
        self, architecture: str, settings: Any, inputs: int, features: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "family": self.name,
            "vectors": features.get("vectors", ""),
            "source": features.get("source", ""),
            "unit": bool(features.get("unit", False)),
            "widths": list(settings.all_widths(architecture, inputs)),
            "pointwise": architecture != "dgn",
            "objective": settings.objective,
            "concave": settings.concave,
        }
