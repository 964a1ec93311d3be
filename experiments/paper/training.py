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
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dgn.evaluation.metrics import scores_at
from dgn.files import write_atomically
from dgn.learn import PointwiseNetwork
from dgn.parallel import available_cores, end_with_parent, interrupts_ignored
from experiments.paper.features import (
    Batches,
    Table,
    harder_sets,
    others_per_gold,
    thinned,
    with_pages,
)
from experiments.paper.networks import Network, Settings, build_network, parameter_count

KS = (1, 3, 5, 7)
LARGEST_K = 7
RUN, PICKS, WEIGHTS = "run.json", "picks.npz", "weights.npz"
_WARM_UP = 50
_LOWEST_TEMPERATURE = 1e-3

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

    @property
    def recall(self) -> float:
        """The mean over k, which chooses the best epoch."""
        return sum(self.recalls) / len(self.recalls)


def fit(
    network: Network,
    learn: Batches,
    choose: Batches,
    settings: Settings,
    seed: int,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
) -> tuple[list[Epoch], int, str]:
    """Train a network in place; at the end it has the weights of its best epoch.

    Returns:
        The epochs, the number of the best one, and why training stopped.
    """
    optimizer = _Optimizer(network, settings, -(-len(learn.table) // settings.batch_size))
    epochs: list[Epoch] = []
    best: dict[str, Tensor] = {}
    best_epoch, stopped = 0, "all epochs are done"
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for number in range(settings.epochs + 1):
            loss = None
            if number:
                network.set_temperature(_temperature(settings, number - 1))
                loss = _learn(network, learn, optimizer, seed, number - 1)
                if not math.isfinite(loss) or not all(
                    w.isfinite().all() for w in network.parameters()
                ):
                    stopped = f"not finite in epoch {number}"
                    break
            with optimizer.averaged():
                picks, gold = _selected(network, choose)
                recalls = tuple(scores_at(k, picks, gold).recall for k in KS)
                epochs.append(Epoch(loss, _mean_loss(network, choose), recalls))
                if epochs[-1].recall > epochs[best_epoch].recall or number == 0:
                    best_epoch = number
                    best = {name: w.clone() for name, w in network.state_dict().items()}
            on_epoch(epochs[-1])
            if settings.patience and number - best_epoch >= settings.patience:
                stopped = f"no improvement in {settings.patience} epochs"
                break
    network.load_state_dict(best)
    network.eval()
    return epochs, best_epoch, stopped


def select_all(network: Network, batches: Batches) -> Picks:
    """What a network selects from every claim."""
    return _selected(network, batches)[0]


class _Optimizer:
    """Adam or AdamW, with the rates of the settings and an average of the weights."""

    def __init__(self, network: nn.Module, settings: Settings, steps_per_epoch: int) -> None:
        self._settings, self._weights = settings, dict(network.named_parameters())
        self._total, self._step = settings.epochs * steps_per_epoch, 0
        kind = torch.optim.AdamW if settings.adamw else torch.optim.Adam
        weights = self._weights.values()
        self._optimizer = kind(weights, settings.learning_rate, weight_decay=settings.weight_decay)
        self._average = self._copies() if settings.ema_decay else {}

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights with their gradients, then clear the gradients."""
        if self._settings.cosine:
            share = min(1.0, (self._step + 1) / _WARM_UP)
            share *= 0.5 * (1 + math.cos(math.pi * min(1.0, self._step / self._total)))
            for group in self._optimizer.param_groups:
                group["lr"] = self._settings.learning_rate * share
        self._optimizer.step()
        self._optimizer.zero_grad()
        # At first the average is short, so that the start is soon forgotten.
        decay = min(self._settings.ema_decay, (1 + self._step) / (10 + self._step))
        for name, average in self._average.items():
            average.lerp_(self._weights[name], 1 - decay)
        self._step += 1

    @contextmanager
    def averaged(self) -> Generator[None]:
        """Within the block, the network has the averaged weights, if there are any."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, average in self._average.items():
            learned = self._weights[name].detach().clone()
            self._weights[name].copy_(average)
            average.copy_(learned)

    def _copies(self) -> dict[str, Tensor]:
        return {name: weight.detach().clone() for name, weight in self._weights.items()}


def _temperature(settings: Settings, epoch: int) -> float:
    if settings.annealing == 1:
        return settings.temperature
    return max(_LOWEST_TEMPERATURE, settings.temperature * settings.annealing**epoch)


def _learn(network: Network, learn: Batches, optimizer: _Optimizer, seed: int, epoch: int) -> float:
    """Learn from every claim once; returns the mean loss."""
    network.train()
    total = terms = 0.0
    for batch in learn.shuffled(seed, epoch):
        loss = network.loss(batch.x, batch.gold, batch.mask)
        loss.backward()
        count = float(network.loss_terms(batch.gold, batch.mask))
        total, terms = total + float(loss.detach()) * count, terms + count
        if not math.isfinite(total):
            return math.nan  # no later step can repair the weights
        optimizer.step()
    return total / max(1.0, terms)


@torch.no_grad()
def _mean_loss(network: Network, batches: Batches) -> float | None:
    network.eval()
    total = terms = 0.0
    for batch in batches.once():
        count = float(network.loss_terms(batch.gold, batch.mask))
        total += float(network.loss(batch.x, batch.gold, batch.mask)) * count
        terms += count
    return total / terms if terms and math.isfinite(total) else None


def _selected(network: Network, batches: Batches) -> tuple[Picks, NDArray[np.bool_]]:
    network.eval()
    picks = np.full((len(batches.table), LARGEST_K), -1, np.int64)
    for batch in batches.once():
        indices = network.select(batch.x, batch.mask, LARGEST_K).indices
        picks[batch.rows, : indices.shape[1]] = np.asarray(indices.cpu())
    return picks, batches.table.wanted


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
    choosing = Batches(choose, settings.batch_size, device)
    learning = Batches(learn, settings.batch_size, device)
    epochs, best_epoch, stopped = fit(network, learning, choosing, settings, run.seed)
    folder.mkdir(parents=True, exist_ok=True)
    if run.is_reported:
        picks = {
            name: select_all(network, Batches(table, settings.batch_size, device)).astype(np.int16)
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
        "accepted": _accepted_share(network, choosing),
        "others_per_gold": others_per_gold(learn),
        "epochs": [asdict(epoch) for epoch in epochs],
    }
    # Last: where it exists, the run is finished.
    write_atomically(folder / RUN, json.dumps(row) + "\n")


def _begin_worker(threads: int) -> None:
    end_with_parent()
    torch.set_num_threads(threads)


@cache
def _tables(folder: Path) -> tuple[Table, Table]:
    return Table.load(folder / "learn.npz"), Table.load(folder / "choose.npz")


@cache
def _reported(folder: Path) -> dict[str, Table]:
    return harder_sets(Table.load(folder / "report.npz"))


def _varied(table: Table, candidates: str) -> Table:
    if candidates == "as they are":
        return table
    if candidates == "1 per gold":
        return thinned(table)
    return with_pages(table, int(candidates.removesuffix(" pages")))


@torch.no_grad()
def _accepted_share(network: Network, batches: Batches) -> float | None:
    """The share of sentences that a pointwise encoder calls evidence: a probability over ½."""
    if not isinstance(network, PointwiseNetwork):
        return None
    accepted = total = 0
    for batch in batches.once():
        scores = network.scores(batch.x, batch.mask)[batch.mask]
        accepted += int((scores > 0).sum())
        total += len(scores)
    return accepted / total


def _machine(device: str) -> str:
    name = (
        torch.cuda.get_device_name() if device.startswith("cuda") else f"{platform.machine()} CPU"
    )
    return f"{name}, torch {torch.__version__}"
