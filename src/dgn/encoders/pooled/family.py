"""The family of the pooled features: what training, model folders and the command line need."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

from numpy.typing import NDArray

from dgn.data import Batches, Place
from dgn.encoders.base import (
    EncoderFamily,
    FeatureOptions,
    FeatureWriter,
    require,
    require_sizes,
)
from dgn.encoders.pooled.encoder import PooledEncoder
from dgn.encoders.pooled.table import PooledBatches, PooledTable, PooledWriter
from dgn.errors import BrokenInput, InvalidInput
from dgn.settings import check_above, check_choices, setting
from dgn.text import open_vectors

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

    def __post_init__(self) -> None:
        check_choices(self)
        check_above(self, 0, "scale")

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
class PooledFamily(EncoderFamily):
    """Pooled vectors: the paper's features."""

    name = "pooled"
    settings = PooledSettings
    description = (
        "The features are computed from X = query ⊙ passage, the element-wise product of the mean "
        "word vectors of query and passage, as in the paper."
    )
    limits = (
        "It sees one mean vector per text: no word order, no title, no single words, and no other "
        "vectors than those that it was trained with."
    )

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

    def batches(self, table: Any, batch_size: int, seed: int, place: Place) -> Batches:
        return PooledBatches(table, batch_size, seed, place)

    def trainable(
        self, architecture: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        import torch

        from dgn.encoders.pooled.network import PooledScorer
        from dgn.unfolding import FeatureEncoder, FeedForward, LearnedWeights

        widths = settings.all_widths(architecture, inputs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            features = FeedForward(widths, dropout)
            if architecture == "dgn":
                module: Any = FeatureEncoder(features, LearnedWeights(widths[-1]))
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
        }

    def load(
        self,
        description: Mapping[str, Any],
        arrays: Callable[[Mapping[str, tuple[int, ...]]], dict[str, NDArray[Any]]],
        vectors: str | None,
    ) -> PooledEncoder:
        require(description, vectors=str, source=str, unit=bool, widths=list, pointwise=bool)
        widths = cast("list[int]", description["widths"])
        require_sizes(widths)
        if len(widths) < 2:
            raise InvalidInput("widths", found=str(widths), allowed="at least two sizes")
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (before, after) in enumerate(itertools.pairwise(widths)):
            shapes[f"features.layers.{layer}.weight"] = (after, before)
            shapes[f"features.layers.{layer}.bias"] = (after,)
        if description["pointwise"]:
            shapes |= {"score.weight": (1, widths[-1]), "score.bias": (1,)}
        else:
            shapes["objective.raw"] = (widths[-1],)
        weights = arrays(shapes)
        source = vectors or description["source"]
        opened = _open(source, description["vectors"])
        if opened.dimension != widths[0]:
            raise InvalidInput(
                "widths",
                message=f"The model has {widths[0]} inputs, and the vectors have the dimension "
                f"{opened.dimension}.",
            )
        return PooledEncoder(opened, unit=description["unit"], weights=weights, source=source)


def _open(source: str, fingerprint: str) -> Any:
    hint = "pass vectors=, the file or the name of the vectors that the model was trained with"
    if not source:
        raise InvalidInput(
            "vectors", message=f"The model does not say which vectors it needs; {hint}."
        )
    try:
        opened = open_vectors(source)
    except (BrokenInput, InvalidInput) as error:
        raise InvalidInput(
            "vectors", message=f"The vectors of the model cannot be opened ({error}); {hint}."
        ) from error
    if opened.fingerprint != fingerprint:
        raise InvalidInput(
            "vectors", message=f"{source} is not what the model was trained with; {hint}."
        )
    return opened
