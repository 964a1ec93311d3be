"""A run: features and a configuration in, a model folder out.

A run may be killed at any moment. The same call resumes it from the last checkpoint, and ends with
the same weights as a run that was not interrupted (bit for bit on a CPU). A checkpoint is one file:
tensors as safetensors, plain values as JSON in its metadata. It is written atomically, and without
pickle, so that a checkpoint from elsewhere cannot run code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dgn.errors import BrokenInput, InvalidInput
from dgn.files import only_writer, write_atomically
from dgn.learn.config import RunConfig, config_of
from dgn.learn.networks import SelectionNetwork
from dgn.learn.report import (
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
from dgn.learn.setup import (
    batches_of,
    build_network,
    choose_threads,
    describe_encoder,
    feature_keys,
    find_device,
    name_of,
    parameter_count,
    read_tables,
)
from dgn.learn.trainer import EpochReport, Trainer
from dgn.selector.model_folder import (
    CONFIG,
    ModelConfig,
    read_arrays,
    read_config,
    write_arrays,
    write_config,
)

_HEADER, _DIGEST = "dgn", "digest"
CHECKPOINT = "checkpoint.safetensors"


def write_checkpoint(path: Path, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Replace the checkpoint completely."""
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    header = json.dumps(values)
    metadata = {_HEADER: header, _DIGEST: _digest_of(contiguous, header)}
    write_atomically(path, save(contiguous, metadata=metadata))


def _digest_of(tensors: dict[str, Tensor], header: str) -> str:
    """A hash of everything in a checkpoint: a run must not resume from a damaged one."""
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_checkpoint` wrote."""
    try:
        with cast("Any", safe_open)(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            header, digest = (file.metadata()[name] for name in (_HEADER, _DIGEST))
        values = json.loads(header)
        if _digest_of(tensors, header) != digest:
            raise ValueError("its content was changed")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenInput(
            path,
            None,
            found=f"something else ({type(error).__name__})",
            allowed="a checkpoint of dgn train (delete the file to start again)",
        ) from None
    return cast("dict[str, Tensor]", tensors), values


@dataclass(frozen=True, eq=False)
class RunResult:
    """A finished run.

    Attributes:
        folder: The model folder.
        network: The trained network.
        reports: The report of the start and of every epoch.
        best_epoch: The epoch whose weights were kept.
        stopped: Why training stopped.
        resumed_at: The epoch at which it was resumed; None if it began in this call.
        was_finished: Whether it was already finished.
    """

    folder: Path
    network: SelectionNetwork
    reports: tuple[EpochReport, ...]
    best_epoch: int
    stopped: str
    resumed_at: int | None = None
    was_finished: bool = False


def train(
    config: RunConfig,
    folder: Path,
    on_step: Callable[[Trainer], None] = lambda _: None,
    on_epoch: Callable[[EpochReport], None] = lambda _: None,
) -> RunResult:
    """Train, or resume training, in this folder.

    Args:
        config: The configuration.
        folder: The folder of the run.
        on_step: Called after every step.
        on_epoch: Called after every epoch, and once before the first.
    """
    device = find_device(config.machine.device)
    train_table, validation_table = read_tables(config)
    if is_finished(config, folder):
        return open_run(folder)
    inputs = train_table.dimension
    network = build_network(config, inputs).to(device)
    training = batches_of(train_table, config, device)
    validation = batches_of(validation_table, config, device)
    checkpoint = folder / CHECKPOINT
    saved = read_checkpoint(checkpoint) if checkpoint.is_file() else None
    # The number of threads can change the rounding: a resumed run keeps it.
    threads = 0 if saved is None else int(saved[1].get("threads", 0))
    work = parameter_count(network) * config.fit.batch_size * float(np.mean(training.lengths))
    choose_threads(config.machine.threads or threads, work)
    trainer = Trainer(network, training, validation, config.fit, records=_is_recordable(config))
    resumed_at = None
    if saved is not None:
        trainer.restore(*saved)
        resumed_at = trainer.position.epoch
    with only_writer(folder):
        _run_and_write(trainer, folder, config, inputs, device, on_step, on_epoch)
    return RunResult(
        folder,
        trainer.network,
        tuple(trainer.reports),
        trainer.best_epoch,
        trainer.stopped,
        resumed_at,
    )


def load_network(folder: Path | str) -> SelectionNetwork:
    """The trained network of a finished run, on the CPU, ready to select."""
    folder = Path(folder)
    described = read_config(folder)
    if described.training is None:
        raise InvalidInput("model", message=f"{folder} was not written by dgn train.")
    config = _run_config(described, folder)
    network = build_network(config, described.training["inputs"])
    own = {name: tuple(weight.shape) for name, weight in network.encoder.state_dict().items()}
    arrays = read_arrays(folder, own)
    network.encoder.load_state_dict({name: torch.from_numpy(arrays[name]) for name in own})
    return network.eval()


def open_run(folder: Path) -> RunResult:
    """A run that is finished."""
    summary = read_summary(folder)
    return RunResult(
        folder,
        load_network(folder),
        tuple(read_metrics(folder)),
        summary.best_epoch,
        summary.stopped,
        was_finished=True,
    )


def is_finished(config: RunConfig, folder: Path) -> bool:
    """Whether there is nothing left to do.

    Raises:
        InvalidInput: The folder belongs to something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A run that was killed immediately leaves only hidden files.
    if all(path.name.startswith(".") for path in folder.iterdir()):
        return False
    if not (folder / CONFIG).is_file():
        raise InvalidInput(
            "out",
            message=f"{folder} contains other files; choose a new folder, or that of a run.",
        )
    before = read_config(folder)
    if before.training is None:
        raise InvalidInput(
            "out", message=f"{folder} contains a model that dgn train did not write."
        )
    tables = _run_config(before, folder).to_tables()
    changed = [
        f"{section}.{name}"
        for section, settings in config.to_tables().items()
        for name, value in settings.items()
        if section != "machine" and tables.get(section, {}).get(name) != value
    ]
    if before.training["features"] != feature_keys(config):
        changed.append("features")
    if changed:
        raise InvalidInput(
            "out",
            message=f"{folder} contains a run with other settings ({', '.join(changed)}); use the "
            "same settings to resume it, or choose another folder.",
        )
    return (folder / SUMMARY).is_file()


def _run_and_write(
    trainer: Trainer,
    folder: Path,
    config: RunConfig,
    inputs: int,
    device: torch.device,
    on_step: Callable[[Trainer], None],
    on_epoch: Callable[[EpochReport], None],
) -> None:
    checkpoint, features = folder / CHECKPOINT, feature_keys(config)
    training = {"inputs": inputs, "features": features, **config.to_tables()}
    write_config(folder, ModelConfig(describe_encoder(config, inputs), training))
    events = Events(folder, config.fit.eval_ks, trainer.reports)
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
    draw_curves(folder, config.fit.eval_ks, trainer.reports, trainer.best_epoch)
    size = parameter_count(trainer.network)
    write_card(folder, config, features, trainer.reports, trainer.best_epoch, size)
    learned = trainer.network.encoder.state_dict().items()
    write_arrays(folder, {name: weight.detach().cpu().numpy() for name, weight in learned})
    # The summary comes last: where it exists, the run is finished.
    write_summary(folder, RunSummary(trainer.best_epoch, trainer.stopped, size, name_of(device)))
    checkpoint.unlink(missing_ok=True)


def _is_recordable(config: RunConfig) -> bool:
    """Whether steps can be recorded: parts of the user may decide something in Python."""
    return all(
        one.metadata["parts"].is_own(getattr(section, one.name))
        for section in (config.network, config.encoder)
        for one in dataclasses.fields(section)
        if one.metadata["parts"] is not None
    )


def _run_config(described: ModelConfig, folder: Path) -> RunConfig:
    tables = dict(cast("dict[str, Any]", described.training))
    inputs, features = tables.get("inputs"), tables.get("features")
    if type(inputs) is not int or not 0 < inputs <= 4096 or type(features) is not dict:
        raise BrokenInput(
            folder / CONFIG, None, message="the section training has no valid inputs or features."
        )
    del tables["inputs"], tables["features"]
    return config_of(tables, folder / CONFIG)
