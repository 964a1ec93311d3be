"""Trains all runs of a plan, several at a time; finished runs are not repeated."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import torch

from dgn.threads import available_cores
from dgn.training import RunConfig, Trainer, is_finished, train
from dgn.training.processes import interrupts_ignored, is_orphan
from experiments.reproduce.plan import PlannedRun


@dataclass(frozen=True)
class TrainingData:
    """Folders of features to learn from and to choose the epoch with, for both kinds of vectors."""

    train: tuple[str, ...]
    validation: str
    second_train: tuple[str, ...]
    second_validation: str


def config_of(run: PlannedRun, data: TrainingData, device: str, threads: int = 0) -> RunConfig:
    """The whole configuration of a planned run."""
    second = run.second_vectors
    return RunConfig().with_settings(
        {
            "train": data.second_train if second else data.train,
            "validation": data.second_validation if second else data.validation,
            "seed": run.seed,
            "device": device,
            "threads": threads,
            **run.settings,
        }
    )


def train_all(
    plan: Sequence[PlannedRun],
    data: TrainingData,
    folder: Path,
    *,
    workers: int = 1,
    device: str = "auto",
    on_run: Callable[[PlannedRun, int], None] = lambda _run, _done: None,
) -> None:
    """Train every run in its folder; `on_run` is called with each finished run and their number."""
    threads = max(1, available_cores() // workers)
    jobs = [
        (run, config_of(run, data, device, threads), folder / run.folder) for run in _unique(plan)
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _use_threads, (threads,)) as pool:
        with interrupts_ignored():
            futures = {pool.submit(_train_one, config, out): run for run, config, out in jobs}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                on_run(futures[future], done)
        except BaseException:
            # A run may be ended at any moment: the next call resumes it.
            for worker in multiprocessing.active_children():
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _unique(plan: Sequence[PlannedRun]) -> list[PlannedRun]:
    seen: dict[str, PlannedRun] = {}
    for run in plan:
        seen.setdefault(run.folder, run)
    return list(seen.values())


def _use_threads(count: int) -> None:
    torch.set_num_threads(count)


def _train_one(config: RunConfig, folder: Path) -> None:
    if not is_finished(config, folder):
        train(config, folder, on_step=_stop_as_orphan)


def _stop_as_orphan(_: Trainer) -> None:
    if is_orphan():
        raise SystemExit(1)
