"""From a configuration to what a run needs: tables of features, batches and a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgn.data import Batches
from dgn.encoders import Table, find_family, read_key, read_source
from dgn.encoders.features import TEACHER_LOGITS
from dgn.errors import InvalidInput
from dgn.files import fingerprint_of
from dgn.training.config import RunConfig
from dgn.training.devices import placed_on
from dgn.unfolding import (
    DifferentiableGreedyNetwork,
    Distillation,
    Gumbel,
    LayerwiseCrossEntropy,
    PointwiseNetwork,
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


def build_network(config: RunConfig, inputs: int) -> SelectionNetwork:
    """The network at its start; the same seed gives the same start.

    Args:
        config: The configuration.
        inputs: The number of inputs per item.
    """
    network, fit = config.network, config.fit
    encoder = find_family(network.encoder).trainable(
        network.architecture, config.encoder, inputs, network.dropout, fit.seed
    )
    layers = UnfoldedGreedy(network.layers, relaxation=_RELAXATIONS[network.relaxation]())
    criterion = LayerwiseCrossEntropy(network.assignment)
    if network.architecture != "dgn":
        listwise = layers if network.encoder_loss == "listwise" else None
        return PointwiseNetwork(encoder, network.positive_weight, listwise, criterion)
    distillation = Distillation(fit.distill_weight, fit.distill_temperature)
    return DifferentiableGreedyNetwork(
        encoder,
        layers,
        criterion,
        distillation if fit.distill_weight else None,
    )


def parameter_count(network: SelectionNetwork) -> int:
    """The number of learned parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def read_tables(config: RunConfig) -> tuple[Table, Table]:
    """The features to learn from, and those that choose the best epoch."""
    data, family = config.data, find_family(config.network.encoder)
    for name in ("train", "validation"):
        if not getattr(data, name):
            raise InvalidInput(
                name, message=f"{name} is not set; pass a folder that dgn data features wrote."
            )
    _check_encoders(config)
    train = family.load_tables(
        [Path(folder) for folder in data.train],
        partial=[Path(folder) for folder in data.partial],
        negative_weight=data.negative_weight,
    )
    validation = family.load_tables([Path(data.validation)])
    if config.fit.distill_weight and not _folders_with_logits(config):
        raise InvalidInput(
            "distill_weight",
            message="The features have no teacher logits; write them with: "
            "python -m experiments.teach",
        )
    if validation.dimension != train.dimension:
        raise InvalidInput(
            "validation",
            found=f"features of dimension {validation.dimension}",
            allowed=f"features of dimension {train.dimension}, as in train",
        )
    if data.max_queries > len(train):
        found = f"{data.max_queries:,}"
        raise InvalidInput("max_queries", found=found, allowed=f"at most {len(train):,}")
    if data.max_queries:
        drawn = np.random.default_rng(config.fit.seed).permutation(len(train))
        train = train.rows(np.sort(drawn[: data.max_queries]))
    return train, validation


def batches_of(table: Table, config: RunConfig, device: torch.device) -> Batches:
    """The queries of a table, batch by batch, formed on the device."""
    family = find_family(config.network.encoder)
    return family.batches(table, config.fit.batch_size, config.fit.seed, placed_on(device))


def feature_keys(config: RunConfig) -> dict[str, Any]:
    """What identifies the features of each folder."""
    keys = {folder: read_key(Path(folder)) for folder in config.data.folders}
    for folder in _folders_with_logits(config) if config.fit.distill_weight else ():
        # A run is resumed with the logits that it began with.
        keys[folder]["teacher_logits"] = fingerprint_of(Path(folder, TEACHER_LOGITS))
    return keys


def describe_encoder(config: RunConfig, inputs: int) -> dict[str, Any]:
    """The description of the encoder that a run trains, for config.json."""
    first = Path(config.data.train[0])
    features = {**read_key(first), "source": read_source(first)}
    return find_family(config.network.encoder).describe(
        config.network.architecture, config.encoder, inputs, features
    )


def _folders_with_logits(config: RunConfig) -> list[str]:
    return [f for f in dict.fromkeys(config.data.folders) if Path(f, TEACHER_LOGITS).is_file()]


def _check_encoders(config: RunConfig) -> None:
    """Raise InvalidInput unless all features were made for the encoder, with the same vectors."""
    wanted = config.network.encoder
    made_with: set[str] = set()
    for folder in config.data.folders:
        key = read_key(Path(folder))
        found = key.get("encoder", "pooled")
        if found != wanted:
            raise InvalidInput(
                "encoder",
                message=f"{folder} contains features for the encoder {found}, not {wanted}; pass "
                f"--encoder {found}, or make features with: dgn data features --encoder {wanted}",
            )
        made_with.add(f"{key.get('vectors')}, unit {key.get('unit')}")
    if len(made_with) > 1:
        raise InvalidInput(
            "train",
            message="The features were made with different vectors: "
            + "; ".join(sorted(made_with)),
        )
