"""Fit a network of your own to sets that are in memory: the trainer without files."""

from __future__ import annotations

from collections.abc import Callable

from dgn.data.batches import Batches
from dgn.training.config import FitConfig
from dgn.training.trainer import EpochReport, Trainer
from dgn.unfolding import SelectionNetwork


def fit(
    network: SelectionNetwork,
    train: Batches,
    validation: Batches,
    config: FitConfig,
    on_epoch: Callable[[EpochReport], None] = lambda _: None,
) -> list[EpochReport]:
    """Train in place; in the end the network holds the weights of its best epoch.

    train, validation: ClaimBatches or DenseBatches whose arrays are torch's, on the network's
    device. Returns a report for the start and one for every epoch.
    """
    trainer = Trainer(network, train, validation, config)
    trainer.run(on_epoch=on_epoch)
    return trainer.reports
