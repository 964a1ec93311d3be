"""What a run learns from: the features that its configuration names, whatever their encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from dgn.data.batches import Batches, ClaimBatches
from dgn.data.feature_table import FeatureTable, read_key
from dgn.encoders.match_table import SOFT_LABELS, MatchTable
from dgn.errors import InvalidInput
from dgn.features import MatchBatches
from dgn.fingerprint import fingerprint_of
from dgn.training.config import RunConfig
from dgn.training.devices import placed_on

Table: TypeAlias = FeatureTable | MatchTable


def batches_of(table: Table, config: RunConfig, device: torch.device) -> Batches:
    """The claims of a table, batch by batch, formed on the device."""
    place, size, seed = placed_on(device), config.fit.batch_size, config.fit.seed
    if isinstance(table, MatchTable):
        return MatchBatches(table, size, seed, place)
    return ClaimBatches(table, size, seed, place)


def read_tables(config: RunConfig) -> tuple[Table, Table]:
    """The features to learn from, and those that judge."""
    data = config.data
    if not data.train or not data.validation:
        missing = "train" if not data.train else "validation"
        raise InvalidInput(missing, found="no folder", allowed="what dgn data features wrote")
    _check_encoders(config)
    train_table: Table
    validation_table: Table
    if config.network.encoder == "facets":
        parts = [MatchTable.load(folder) for folder in data.train]
        parts += [MatchTable.load(folder).with_rivals(data.unlabelled) for folder in data.partial]
        train_table = MatchTable.join(parts)
        if config.fit.distill and np.isnan(train_table.soft).all():
            raise InvalidInput(
                "distill", found="no soft labels beside the features", allowed="dgn teach first"
            )
        validation_table = MatchTable.load(data.validation)
    else:
        if data.partial:
            raise InvalidInput(
                "partial", found="pooled vectors", allowed="encoder facets; train takes all folders"
            )
        train_table = FeatureTable.join([FeatureTable.load(folder) for folder in data.train])
        validation_table = FeatureTable.load(data.validation)
    if validation_table.dimension != train_table.dimension:
        raise InvalidInput(
            "validation",
            found=f"vectors of {validation_table.dimension} dimensions",
            allowed=f"{train_table.dimension}, as in train",
        )
    if data.claims > len(train_table):
        raise InvalidInput("claims", found=f"{data.claims:,}", allowed=f"≤ {len(train_table):,}")
    if data.claims:
        drawn = np.random.default_rng(config.fit.seed).permutation(len(train_table))
        train_table = train_table.of_claims(np.sort(drawn[: data.claims]))
    return train_table, validation_table


def made_from(config: RunConfig) -> dict[str, Any]:
    """What each folder of features was made from: the key in its own meta.json."""
    made = {folder: read_key(Path(folder)) for folder in _folders(config)}
    if config.fit.distill:  # a run goes on with the labels that it began with
        for folder in made:
            labels = Path(folder, SOFT_LABELS)
            if labels.is_file():
                made[folder]["soft_labels"] = fingerprint_of(labels)
    return made


def _folders(config: RunConfig) -> tuple[str, ...]:
    return (*config.data.train, *config.data.partial, config.data.validation)


def _check_encoders(config: RunConfig) -> None:
    """That the features were made for the network's encoder."""
    wanted = config.network.encoder
    for folder in _folders(config):
        if not Path(folder, "meta.json").is_file():
            raise InvalidInput(
                "folder", found=f"no features in {folder}", allowed="what dgn data features wrote"
            )
        found = read_key(Path(folder)).get("encoder", "pooled")
        if found != wanted:
            raise InvalidInput(
                "encoder",
                found=f"{wanted}, but {folder} holds features for {found}",
                allowed=f"--encoder {found}, or features of dgn data features --encoder {wanted}",
            )
