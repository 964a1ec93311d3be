"""Training: one network, and all networks of a plan, several at a time.

A run leaves `run.json` (its settings and a report of every epoch); a run that is reported also
leaves its weights, and what it selects from the reported claims (`picks.npz`). A run may be ended
at any moment: the next call begins it again, and does not repeat those that are finished.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.files import write_atomically
from dgn.learn import EpochReport, PointwiseNetwork, fit, select_all
from dgn.parallel import available_cores, end_with_parent, interrupts_ignored
from experiments.paper.features import (
    ClaimTable,
    harder_sets,
    others_per_gold,
    thinned,
    with_pages,
)
from experiments.paper.networks import Network, Settings, build_network, parameter_count

KS = (1, 3, 5, 7)
LARGEST_K = 7
RUN, PICKS, WEIGHTS = "run.json", "picks.npz", "weights.npz"

Picks = NDArray[np.int64]
"""[claims, 7], the selected candidates in the order of selection, −1 for none."""


@dataclass(frozen=True)
class Epoch:
    """What is measured after an epoch; epoch 0 is the start, before anything is learned.

    Attributes:
        loss: The mean training loss.
        validation_loss: That of the claims that choose.
        recalls: The macro recall on the claims that choose, at each of KS.
    """

    loss: float | None
    validation_loss: float | None
    recalls: tuple[float, ...]

    @classmethod
    def of(cls, report: EpochReport) -> Epoch:
        """What is kept of a report; a loss that is not finite is None."""
        loss = report.validation_loss
        is_finite = loss is not None and math.isfinite(loss)
        return cls(report.loss, loss if is_finite else None, report.recalls)

    @property
    def recall(self) -> float:
        """The mean over k, which chooses the best epoch."""
        return sum(self.recalls) / len(self.recalls)


def train(
    network: Network, learn: ClaimTable, choose: ClaimTable, settings: Settings, seed: int
) -> tuple[list[Epoch], int, str]:
    """Train a network in place; at the end it has the weights of its best epoch.

    Returns:
        The epochs, the number of the best one, and why training stopped.
    """
    reports = fit(network, learn, settings.fit_config(seed), validation=choose)
    epochs = [Epoch.of(report) for report in reports]
    best = max(range(len(epochs)), key=lambda number: epochs[number].recall)
    last, patience = len(epochs) - 1, settings.patience
    if last == settings.epochs:
        return epochs, best, "all epochs are done"
    if patience and last - best >= patience:
        return epochs, best, f"no improvement in {patience} epochs"
    return epochs, best, f"not finite in epoch {len(epochs)}"


@dataclass(frozen=True)
class Run:
    """One network to train.

    Attributes:
        study: "search", "table", or the study that it belongs to.
        variant: The row of the table, or the variant of the study.
        seed: The seed.
        kind: The kind of features.
        settings: The network and its training.
    """

    study: str
    variant: str
    seed: int
    kind: str
    settings: Settings

    @property
    def folder(self) -> str:
        """The name of its folder."""
        plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in self.variant)
        return f"{self.study}/{plain.strip('-')}-seed{self.seed}"

    @property
    def is_reported(self) -> bool:
        """Whether it selects from the reported claims."""
        return self.study in ("table", "start", "imbalance")


@dataclass(frozen=True, eq=False)
class Record:
    """What a run left.

    Attributes:
        accepted: The share of sentences that a pointwise encoder calls evidence.
        others_per_gold: The number of sentences that are not gold, for each that is, in training.
    """

    folder: Path
    settings: Settings
    best_epoch: int
    stopped: str
    parameters: int
    machine: str
    accepted: float | None
    others_per_gold: float
    epochs: tuple[Epoch, ...]

    @property
    def best(self) -> Epoch:
        """The best epoch."""
        return self.epochs[self.best_epoch]

    def picks(self) -> dict[str, Picks]:
        """What it selects from the reported claims and the harder sets, by name."""
        with np.load(self.folder / PICKS) as arrays:
            return {name: arrays[name].astype(np.int64) for name in arrays.files}

    def network(self, inputs: int) -> Network:
        """The trained network."""
        network = build_network(self.settings, inputs, 0)
        with np.load(self.folder / WEIGHTS) as arrays:
            weights = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        network.load_state_dict(weights)
        return network.eval()


def read_run(folder: Path) -> Record:
    """Read what a run left."""
    row: dict[str, Any] = json.loads((folder / RUN).read_text(encoding="utf-8"))
    settings = Settings.of(row.pop("settings"))
    epochs = tuple(
        Epoch(one["loss"], one["validation_loss"], tuple(one["recalls"]))
        for one in row.pop("epochs")
    )
    return Record(folder, settings, epochs=epochs, **row)


def is_finished(run: Run, folder: Path) -> bool:
    """Whether the folder has the results of this run, with its settings."""
    return (folder / RUN).is_file() and read_run(folder).settings == run.settings


def train_all(
    plan: Sequence[Run],
    features: Path,
    folder: Path,
    *,
    workers: int = 1,
    device: str = "cpu",
    on_run: Callable[[Run, int], None] = lambda _run, _done: None,
) -> None:
    """Train every run in its folder; `on_run` is called with each finished run and their number."""
    jobs = [run for run in plan if not is_finished(run, folder / run.folder)]
    done = len(plan) - len(jobs)
    if workers == 1:
        for number, run in enumerate(jobs, start=done + 1):
            train_one(run, features, folder / run.folder, device)
            on_run(run, number)
        return
    threads = max(1, available_cores() // workers)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin_worker, (threads,)) as pool:
        with interrupts_ignored():
            futures = {
                pool.submit(train_one, run, features, folder / run.folder, device): run
                for run in jobs
            }
        try:
            for number, future in enumerate(as_completed(futures), start=done + 1):
                future.result()
                on_run(futures[future], number)
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def train_one(run: Run, features: Path, folder: Path, device: str) -> None:
    """Train a run, and write what it leaves."""
    learn, choose = _tables(features / run.kind)
    settings = run.settings
    if settings.claims and settings.claims < len(learn):
        random = np.random.default_rng(run.seed)
        learn = learn.rows(np.sort(random.permutation(len(learn))[: settings.claims]))
    learn, choose = (_varied(table, settings.candidates) for table in (learn, choose))
    network = build_network(settings, learn.claims.shape[1], run.seed).to(device)
    learn, choose = learn.changed(device=device), choose.changed(device=device)
    epochs, best_epoch, stopped = train(network, learn, choose, settings, run.seed)
    folder.mkdir(parents=True, exist_ok=True)
    if run.is_reported:
        picks = {
            name: select_all(network, table.changed(device=device), LARGEST_K)[0].astype(np.int16)
            for name, table in _reported(features / run.kind).items()
        }
        np.savez_compressed(folder / PICKS, **picks)  # pyright: ignore[reportArgumentType]
        weights = {name: w.cpu().numpy() for name, w in network.state_dict().items()}
        np.savez(folder / WEIGHTS, **weights)
    row = {
        "settings": asdict(settings),
        "best_epoch": best_epoch,
        "stopped": stopped,
        "parameters": parameter_count(network),
        "machine": _machine(device),
        "accepted": _accepted_share(network, choose),
        "others_per_gold": others_per_gold(learn),
        "epochs": [asdict(epoch) for epoch in epochs],
    }
    # Last: where it exists, the run is finished.
    write_atomically(folder / RUN, json.dumps(row) + "\n")


def _begin_worker(threads: int) -> None:
    end_with_parent()
    torch.set_num_threads(threads)


@cache
def _tables(folder: Path) -> tuple[ClaimTable, ClaimTable]:
    return ClaimTable.load(folder / "learn.npz"), ClaimTable.load(folder / "choose.npz")


@cache
def _reported(folder: Path) -> dict[str, ClaimTable]:
    return harder_sets(ClaimTable.load(folder / "report.npz"))


def _varied(table: ClaimTable, candidates: str) -> ClaimTable:
    if candidates == "as they are":
        return table
    if candidates == "1 per gold":
        return thinned(table)
    return with_pages(table, int(candidates.removesuffix(" pages")))


@torch.no_grad()
def _accepted_share(network: Network, table: ClaimTable) -> float | None:
    """The share of sentences that a pointwise encoder calls evidence: a probability over ½."""
    if not isinstance(network, PointwiseNetwork):
        return None
    accepted = total = 0
    for _, batch in table.once(256):
        scores = network.scores(batch.x, batch.mask)[batch.mask]
        accepted += int((scores > 0).sum())
        total += len(scores)
    return accepted / total


def _machine(device: str) -> str:
    name = (
        torch.cuda.get_device_name() if device.startswith("cuda") else f"{platform.machine()} CPU"
    )
    return f"{name}, torch {torch.__version__}"
