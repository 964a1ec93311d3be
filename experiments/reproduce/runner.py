"""Trains all runs of a plan, several at a time; finished runs are not repeated.

A run leaves run.json: its settings, and a report of every epoch. A run of the tables also leaves
its model, and what it selected from the reported claims (picks.npz).
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgn.data import Batches
from dgn.files import write_atomically
from dgn.learn import RunConfig, Trainer, build_network, parameter_count, select_all, to_device
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.networks import PointwiseNetwork, SelectionNetwork
from dgn.learn.setup import (
    batches_of,
    describe_encoder,
    feature_keys,
    find_device,
    name_of,
    read_tables,
)
from dgn.parallel import available_cores, interrupts_ignored, is_orphan
from dgn.selector.model_folder import ModelConfig, write_arrays, write_config
from experiments.reproduce.candidates import harder_sets, others_per_gold, varied
from experiments.reproduce.data import FeatureFolders
from experiments.reproduce.plan import PlannedRun

RUN, PICKS = "run.json", "picks.npz"
LARGEST_K = 7


def config_of(run: PlannedRun, data: Mapping[str, FeatureFolders], device: str) -> RunConfig:
    """The whole configuration of a planned run."""
    folders = data[run.features]
    return RunConfig().with_settings(
        {
            "train": folders.train,
            "validation": folders.choose,
            "seed": run.seed,
            "device": device,
            **run.settings,
        }
    )


def train_all(
    plan: Sequence[PlannedRun],
    data: Mapping[str, FeatureFolders],
    folder: Path,
    *,
    workers: int = 1,
    device: str = "auto",
    on_run: Callable[[PlannedRun, int], None] = lambda _run, _done: None,
) -> None:
    """Train every run in its folder; `on_run` is called with each finished run and their number."""
    jobs = {run.folder: run for run in plan if not is_finished(run, folder / run.folder)}
    if not jobs:
        return
    threads = int(os.environ.get("OMP_NUM_THREADS", 0)) or max(1, available_cores() // workers)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, torch.set_num_threads, (threads,)) as pool:
        with interrupts_ignored():
            futures = {
                pool.submit(
                    _train_one, run, config_of(run, data, device), data, folder / run.folder
                ): run
                for run in jobs.values()
            }
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                on_run(futures[future], done)
        except BaseException:
            # A run may be ended at any moment: the next call begins it again.
            for worker in multiprocessing.active_children():
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def is_finished(run: PlannedRun, folder: Path) -> bool:
    """Whether the folder has the results of this run, with its settings."""
    try:
        found = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return found["settings"] == json.loads(json.dumps(run.settings))


def _train_one(
    run: PlannedRun, config: RunConfig, data: Mapping[str, FeatureFolders], folder: Path
) -> None:
    device = find_device(config.machine.device)
    train, choose = (varied(table, run.candidates) for table in _tables(config))
    network = build_network(config, train.dimension).to(device)
    training, validation = (batches_of(table, config, device) for table in (train, choose))
    trainer = Trainer(network, training, validation, config.fit)
    trainer.run(on_step=_stop_as_orphan)
    folder.mkdir(parents=True, exist_ok=True)
    if run.is_reported:
        picks: dict[str, Any] = {}
        for name, table in _reported(data[run.features].report).items():
            batches = PooledBatches(table, config.fit.batch_size, 0, to_device(device))
            picks[name] = select_all(network, batches, LARGEST_K)[0].astype(np.int16)
        np.savez_compressed(folder / PICKS, **picks)
        save_network(folder, network, config, train.dimension)
    found = {
        "settings": run.settings,
        "best_epoch": trainer.best_epoch,
        "stopped": trainer.stopped,
        "parameters": parameter_count(network),
        "machine": name_of(device),
        "accepted": accepted_share(network, validation),
        "others_per_gold": others_per_gold(train),
        "reports": [asdict(report) for report in trainer.reports],
    }
    # Last: where it exists, the run is finished.
    write_atomically(folder / RUN, json.dumps(found) + "\n")


def save_network(folder: Path, network: SelectionNetwork, config: RunConfig, inputs: int) -> None:
    """Write the model of a run, which `load_network` and `Selector.from_pretrained` read."""
    described = {"inputs": inputs, "features": feature_keys(config), **config.to_tables()}
    write_config(folder, ModelConfig(describe_encoder(config, inputs), described))
    learned = network.encoder.state_dict().items()
    write_arrays(folder, {name: weight.detach().cpu().numpy() for name, weight in learned})


@torch.no_grad()
def accepted_share(network: SelectionNetwork, batches: Batches) -> float | None:
    """The share of all passages that a pointwise encoder calls evidence: a probability over ½."""
    if not isinstance(network, PointwiseNetwork):
        return None
    accepted = total = 0
    for batch in batches.once():
        scores = network.scores(batch.x, batch.mask)[batch.mask]
        accepted += int((scores > 0).sum())
        total += len(scores)
    return accepted / total


@cache
def _tables_of(train: tuple[str, ...], choose: str) -> tuple[PooledTable, PooledTable]:
    joined = PooledTable.join([PooledTable.load(folder) for folder in train])
    return joined, PooledTable.load(choose)


def _tables(config: RunConfig) -> tuple[Any, Any]:
    """The features of a run; every process reads them once."""
    if config.data.max_queries:
        return read_tables(config)
    return _tables_of(config.data.train, config.data.validation)


@cache
def _reported(folder: str) -> dict[str, PooledTable]:
    return harder_sets(PooledTable.load(folder))


def _stop_as_orphan() -> None:
    if is_orphan():
        raise SystemExit(1)
