"""How long the training of a reproduction takes on this machine, before it begins."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from dgn.learn import Trainer, build_network
from dgn.learn.families.pooled_table import PooledTable
from dgn.learn.setup import batches_of, find_device, name_of
from experiments.reproduce.candidates import varied
from experiments.reproduce.data import FeatureFolders
from experiments.reproduce.plan import Effort, PlannedRun, plan_search, plan_tables, trials_of
from experiments.reproduce.runner import config_of, is_finished
from experiments.reproduce.training import best_settings, kinds_of

_BATCHES, _LARGEST_SAMPLE = 2, 512


def estimated_time(effort: Effort, out: Path, workers: int, device: str) -> str:
    """The longest time that the runs which are left can take, in a sentence.

    Every model is trained for a few steps with the settings of its first trial. A run may stop
    early, so that the true time is usually shorter; several workers share the processor, which the
    sentence says where it matters.

    Args:
        effort: How much to train.
        out: The folder of the reproduction, with its features.
        workers: How many runs at a time.
        device: Where to train.
    """
    data = {kind: FeatureFolders.under(out / "features" / kind) for kind in kinds_of(effort)}
    tables = {
        kind: (
            PooledTable.join([PooledTable.load(folder) for folder in of.train]),
            PooledTable.load(of.choose),
        )
        for kind, of in data.items()
    }
    train, choose = next(iter(tables.values()))
    search = plan_search(effort, len(train), train.dimension)
    folder = out / "runs"
    settings: dict[str, dict[str, Any]] = {}
    for name in effort.models:
        trials = trials_of(search, name)
        is_searched = all(is_finished(run, folder / run.folder) for run in trials)
        settings[name] = best_settings(trials, folder) if is_searched else trials[0].settings
    runs = [*search, *plan_tables(effort, len(train), settings)]
    left = [run for run in runs if not is_finished(run, folder / run.folder)]
    if not left:
        return f"Training: all {len(runs):,} runs are finished."
    speeds: dict[tuple[str, str], tuple[float, float]] = {}
    seconds = 0.0
    for run in left:
        claims = min(run.settings.get("max_queries", len(train)), len(train))
        kind = _kind_of(run)
        if kind not in speeds:
            speeds[kind] = _seconds_per_claim(run, tables[run.features], data, device)
        learning, choosing = speeds[kind]
        epochs = config_of(run, data, device).fit.epochs
        seconds += epochs * claims * learning + (epochs + 1) * len(choose) * choosing
    at_once = f", {workers} at a time if the machine has room for them" if workers > 1 else ""
    return (
        f"Training: at most {_written(seconds / workers)} on {name_of(find_device(device))} for "
        f"{len(left):,} of {len(runs):,} runs{at_once}; runs usually stop before their last epoch."
    )


def _kind_of(run: PlannedRun) -> tuple[str, str]:
    """Runs of the same kind take about the same time per claim."""
    network = (run.settings.get(name) for name in ("architecture", "encoder_loss", "layers"))
    hidden = run.settings.get("widths", [0])[:-1]
    return run.candidates, f"{run.features} {list(network)} {hidden}"


def _seconds_per_claim(
    run: PlannedRun,
    tables: tuple[PooledTable, PooledTable],
    data: dict[str, FeatureFolders],
    device: str,
) -> tuple[float, float]:
    """Of an epoch of training, and of choosing the best epoch."""
    found = find_device(device)
    config = config_of(run, data, device).with_settings({"epochs": 1, "patience": 0})
    count = min(_LARGEST_SAMPLE, _BATCHES * config.fit.batch_size)
    few: list[PooledTable] = []
    for table in tables:
        rows = np.linspace(0, len(table) - 1, min(count, len(table))).astype(np.int64)
        few.append(varied(table.rows(rows), run.candidates))
    seconds = speed = 0.0
    for _ in range(2):  # the first time includes whatever torch prepares
        network = build_network(config, few[0].dimension).to(found)
        learn, choose = (batches_of(one, config, found) for one in few)
        trainer = Trainer(network, learn, choose, config.fit)
        started = time.perf_counter()
        trainer.run()
        seconds = time.perf_counter() - started
        speed = trainer.reports[-1].queries_per_second
    learning = 1 / max(speed, 1e-9)
    choosing = max(0.0, seconds - len(few[0]) * learning) / (2 * len(few[1]))
    return learning, choosing


def _written(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
