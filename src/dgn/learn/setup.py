"""From a configuration to what a run needs: a device, tables of features, batches and a network."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.data import Batches, ToDevice
from dgn.errors import InvalidInput
from dgn.files import fingerprint_of
from dgn.learn.config import RunConfig
from dgn.learn.families import Table, find_family
from dgn.learn.features import TEACHER_LOGITS, read_key, read_source
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import Distillation
from dgn.learn.named_parts import LOSSES, RELAXATIONS
from dgn.learn.networks import DifferentiableGreedyNetwork, PointwiseNetwork, SelectionNetwork
from dgn.parallel import threads_for


def find_device(name: str) -> torch.device:
    """The device with this name."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise InvalidInput("device", found=repr(name), allowed="auto, cpu, cuda or cuda:N")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            "device", message=f"The device {name} is not available: {reason}"
        ) from None
    if device.type == "cuda" and ":" in name:
        torch.cuda.set_device(device)
    return device


def name_of(device: torch.device) -> str:
    """A description of the device."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    threads = torch.get_num_threads()
    return f"{platform.machine()} CPU, {threads} threads, torch {torch.__version__}"


def to_device(device: torch.device | str) -> ToDevice:
    """A function that moves NumPy arrays to a device, so that batches are formed there."""
    on_gpu = torch.device(device).type == "cuda"

    def move(array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        # Copies from pinned memory do not block; from other memory, each one would.
        return tensor.pin_memory().to(device, non_blocking=True) if on_gpu else tensor.to(device)

    return move


def choose_threads(asked: int, work_per_step: float) -> int:
    """Set the number of CPU threads of torch, and return it.

    Args:
        asked: The number that the user asked for; 0 to choose one. OMP_NUM_THREADS also counts as
            a choice of the user.
        work_per_step: The number of multiplications of a training step, approximately.
    """
    if asked:
        torch.set_num_threads(asked)
    elif "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads_for(work_per_step))
    return torch.get_num_threads()


def build_network(config: RunConfig, inputs: int) -> SelectionNetwork:
    """The network at its start; the same seed gives the same start.

    Args:
        config: The configuration.
        inputs: The number of inputs per item.
    """
    network, fit = config.network, config.fit
    encoder = find_family(network.encoder).module(
        network.architecture, config.encoder, inputs, network.dropout, fit.seed
    )
    layers = UnfoldedGreedy(network.layers, relaxation=RELAXATIONS.build(network.relaxation))
    criterion = LOSSES.build(network.loss, assignment=network.assignment)
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
    for name, table in (("train", train), ("validation", validation)):
        if not np.any(table.gold):
            raise InvalidInput(
                name,
                message=f"No passage of the {name} features is gold, so that nothing can be "
                "learned from them; make them of queries with evidence.",
            )
    return train, validation


def batches_of(table: Table, config: RunConfig, device: torch.device) -> Batches:
    """The queries of a table, batch by batch, formed on the device."""
    family = find_family(config.network.encoder)
    return family.batches(table, config.fit.batch_size, config.fit.seed, to_device(device))


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
