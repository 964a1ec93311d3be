"""A run: features and a configuration in, a folder with a trained model out.

The folder may be killed at any moment. The same call goes on from the last checkpoint, and ends
with the same weights as a run that nobody disturbed (bit for bit on a CPU).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from dgn.errors import DGNError, InvalidInput
from dgn.files import only_writer
from dgn.training.checkpoint import read_checkpoint, write_checkpoint
from dgn.training.config import RunConfig
from dgn.training.devices import find_device, name_of
from dgn.training.facet_network import FacetNetwork
from dgn.training.model_folder import (
    CONFIG,
    ModelDescription,
    load_network,
    read_description,
    write_description,
    write_selector,
    write_weights,
)
from dgn.training.networks import build_network, parameter_count
from dgn.training.processes import Processes, join_processes, leave_processes
from dgn.training.run_folder import (
    SUMMARY,
    Events,
    RunSummary,
    draw_curves,
    read_metrics,
    read_summary,
    write_card,
    write_metrics,
    write_summary,
)
from dgn.training.tables import batches_of, made_from, read_tables
from dgn.training.trainer import EpochReport, Trainer
from dgn.unfolding import SelectionNetwork

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run. resumed_at: the epoch it went on from, None if it began here."""

    folder: Path
    network: SelectionNetwork
    reports: tuple[EpochReport, ...]
    best_epoch: int
    stopped: str
    resumed_at: int | None = None
    was_finished: bool = False

    @property
    def speaks(self) -> bool:
        """Of several processes, one tells the user."""
        return os.environ.get("RANK", "0") == "0"


def train(
    config: RunConfig,
    folder: Path,
    on_step: Callable[[Trainer], None] = lambda _: None,
    on_epoch: Callable[[EpochReport], None] = lambda _: None,
) -> RunResult:
    """Train, or go on training, in this folder."""
    device = find_device(config.machine.device)
    processes = join_processes(device)
    try:
        return _train(config, folder, device, processes, on_step, on_epoch)
    finally:
        leave_processes()


def _train(
    config: RunConfig,
    folder: Path,
    device: torch.device,
    processes: Processes,
    on_step: Callable[[Trainer], None],
    on_epoch: Callable[[EpochReport], None],
) -> RunResult:
    train_table, validation_table = read_tables(config)
    description = ModelDescription(config, train_table.dimension, made_from(config))
    if _first_looks(config, folder, device, processes):
        return open_run(folder)
    network = build_network(config.network, train_table.dimension, config.fit.seed).to(device)
    trainer = Trainer(
        network,
        batches_of(train_table, config, device),
        batches_of(validation_table, config, device),
        config.fit,
        processes,
    )
    checkpoint = folder / CHECKPOINT
    resumed_at = None
    if checkpoint.is_file():
        trainer.restore(*read_checkpoint(checkpoint))
        resumed_at = trainer.position.epoch
    if not processes.writes:
        trainer.run()
        return _result(folder, trainer, resumed_at)
    with only_writer(folder):
        _run_and_write(trainer, folder, description, device, on_step, on_epoch)
    return _result(folder, trainer, resumed_at)


def _run_and_write(
    trainer: Trainer,
    folder: Path,
    description: ModelDescription,
    device: torch.device,
    on_step: Callable[[Trainer], None],
    on_epoch: Callable[[EpochReport], None],
) -> None:
    config, checkpoint = description.config, folder / CHECKPOINT
    write_description(folder, description)
    events = Events(folder, config.fit.judged_at, trainer.reports)
    saved_at = time.monotonic()

    def after_step() -> None:
        nonlocal saved_at
        if time.monotonic() - saved_at >= config.machine.checkpoint_seconds:
            write_checkpoint(checkpoint, *trainer.state())
            saved_at = time.monotonic()
        on_step(trainer)

    def after_epoch(report: EpochReport) -> None:
        write_checkpoint(checkpoint, *trainer.state())
        write_metrics(folder, trainer.reports)
        events.add(report)
        on_epoch(report)

    try:
        trainer.run(after_step, after_epoch)
    finally:
        events.close()
    write_metrics(folder, trainer.reports)
    draw_curves(folder, config.fit.judged_at, trainer.reports, trainer.best_epoch)
    size = parameter_count(trainer.network)
    write_card(folder, description, trainer.reports, trainer.best_epoch, size)
    write_weights(folder, trainer.network)
    if isinstance(trainer.network, FacetNetwork):
        write_selector(folder, trainer.network)
    # The summary comes last: where it is, the run is finished.
    write_summary(folder, RunSummary(trainer.best_epoch, trainer.stopped, size, name_of(device)))
    checkpoint.unlink(missing_ok=True)


def _first_looks(
    config: RunConfig, folder: Path, device: torch.device, processes: Processes
) -> bool:
    """Whether the run is finished. The first process looks for all: the others must neither see
    what it has begun to write, nor wait for it when it found a mistake.
    """
    mistake: DGNError | None = None
    found = 0.0
    if processes.writes:
        try:
            found = float(is_finished(config, folder))
        except DGNError as error:
            mistake, found = error, -1.0
    (found,) = processes.from_first([found], device)
    if mistake is not None:
        raise mistake
    if found < 0:
        raise SystemExit(1)  # the first process says why
    return found == 1.0


def is_finished(config: RunConfig, folder: Path) -> bool:
    """Whether there is nothing to do; an error if the folder belongs to something else."""
    folder.mkdir(parents=True, exist_ok=True)
    # A hidden file is what a run that was killed at once has left.
    if all(path.name.startswith(".") for path in folder.iterdir()):
        return False
    if not (folder / CONFIG).is_file():
        raise InvalidInput(
            "out", found=f"other files in {folder}", allowed="a new folder, or one of dgn train"
        )
    before = read_description(folder)
    changed = [
        f"{section}.{name}"
        for section, settings in config.as_tables().items()
        for name, value in settings.items()
        if section != "machine" and before.config.as_tables()[section][name] != value
    ]
    if before.features != made_from(config):
        changed.append("the features")
    if changed:
        raise InvalidInput(
            "out",
            found=f"a run in {folder} with another {', '.join(changed)}",
            allowed="the same settings, to go on; or another folder",
        )
    return (folder / SUMMARY).is_file()


def open_run(folder: Path) -> RunResult:
    """A run that is finished."""
    network, summary = load_network(folder), read_summary(folder)
    return RunResult(
        folder,
        network,
        tuple(read_metrics(folder)),
        summary.best_epoch,
        summary.stopped,
        was_finished=True,
    )


def _result(folder: Path, trainer: Trainer, resumed_at: int | None) -> RunResult:
    return RunResult(
        folder,
        trainer.network,
        tuple(trainer.reports),
        trainer.best_epoch,
        trainer.stopped,
        resumed_at,
    )
