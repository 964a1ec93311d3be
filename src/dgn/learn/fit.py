"""The trainer: epochs over a table in memory, and the choice of the best one.

    reports = fit(network, table, FitConfig(epochs=10), print, validation=others)

`fit` trains one network. `Trainer` is what it is made of: one epoch at a time, for those who train
several networks together, as the cross-validation of `dgn train` does, or who save their state
between epochs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.errors import InvalidInput
from dgn.evaluation.metrics import scores_at
from dgn.learn.batches import Table
from dgn.learn.networks import SelectionNetwork
from dgn.learn.optimizer import Optimizer

SCHEDULES = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class FitConfig:
    """How a network is trained.

    Attributes:
        epochs: The largest number of passes over the table.
        patience: Stop after this many epochs without an improvement; 0 for never.
        batch_size: The number of sets of a step.
        learning_rate: The largest learning rate of Adam.
        schedule: How the rate changes from the first step to the last: "constant", "linear" or
            "cosine".
        warmup: The steps over which the rate rises from 0.
        weight_decay: The decay towards 0, times the learning rate.
        decay_to_start: The decay towards the weights at the start, times the learning rate.
        max_grad_norm: The largest norm of the gradient; 0 for no limit.
        ema_decay: The decay of a moving average of the weights; 0 for none.
        temperature: τ of the greedy layers in the first epoch; the paper found 3 to 6 best.
        annealing: What τ is multiplied with after every epoch; the paper anneals by .9.
        min_temperature: Where annealing ends.
        eval_ks: The k whose mean validation recall chooses the best epoch.
        seed: Determines the order of the sets, and dropout.
    """

    epochs: int = 20
    patience: int = 0
    batch_size: int = 256
    learning_rate: float = 1e-3
    schedule: str = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    decay_to_start: float = 0.0
    max_grad_norm: float = 0.0
    ema_decay: float = 0.0
    temperature: float = 4.0
    annealing: float = 1.0
    min_temperature: float = 0.01
    eval_ks: tuple[int, ...] = (1, 3, 5, 7)
    seed: int = 0

    def __post_init__(self) -> None:
        checks = {
            "epochs": (self.epochs >= 1, "at least 1"),
            "patience": (self.patience >= 0, "at least 0"),
            "batch_size": (self.batch_size >= 1, "at least 1"),
            "learning_rate": (0 < self.learning_rate < math.inf, "greater than 0"),
            "schedule": (self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}"),
            "warmup": (self.warmup >= 0, "at least 0"),
            "weight_decay": (self.weight_decay >= 0, "at least 0"),
            "decay_to_start": (self.decay_to_start >= 0, "at least 0"),
            "max_grad_norm": (self.max_grad_norm >= 0, "at least 0"),
            "ema_decay": (0 <= self.ema_decay < 1, "at least 0 and below 1"),
            "temperature": (0 < self.temperature < math.inf, "greater than 0"),
            "annealing": (0 < self.annealing <= 1, "greater than 0 and at most 1"),
            "min_temperature": (self.min_temperature > 0, "greater than 0"),
            "eval_ks": (
                bool(self.eval_ks) and min(self.eval_ks) >= 1,
                "integers of at least 1",
            ),
            "seed": (0 <= self.seed < 2**63, "at least 0 and below 2⁶³"),
        }
        for name, (is_good, allowed) in checks.items():
            if not is_good:
                raise InvalidInput(name, found=str(getattr(self, name)), allowed=allowed)

    def temperature_at(self, epoch: int) -> float:
        """τ in this epoch; the first one is 0."""
        if self.annealing == 1:
            return self.temperature
        return max(self.min_temperature, self.temperature * self.annealing**epoch)


@dataclass(frozen=True)
class EpochReport:
    """What is measured after an epoch. Epoch 0 is the start, before anything is learned.

    Attributes:
        epoch: The number of the epoch.
        loss: The mean training loss; None for the start.
        ks: Where recall is measured.
        recalls: The validation recall at each of them; none without validation.
        seconds: How long the epoch took.
        validation_loss: The mean loss of the validation sets; None without validation.
    """

    epoch: int
    loss: float | None
    ks: tuple[int, ...]
    recalls: tuple[float, ...]
    seconds: float = 0.0
    validation_loss: float | None = None

    @property
    def recall(self) -> float:
        """The mean over k, which chooses the best epoch."""
        return sum(self.recalls) / len(self.recalls) if self.recalls else math.nan


class Trainer:
    """Trains a network, one epoch at a time.

    Random numbers are those of torch's global generator; `fit` seeds it.

    Args:
        network: Trained in place.
        table: The sets to learn from, on the device of the network.
        config: How to train.
        groups: Groups of parameters with rates of their own, as torch takes them.

    Attributes:
        epochs_done: The number of epochs so far.
    """

    def __init__(
        self,
        network: SelectionNetwork,
        table: Table,
        config: FitConfig,
        groups: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self.network, self.config, self.epochs_done = network, config, 0
        self._table = table
        steps = config.epochs * table.steps(config.batch_size)
        self._optimizer = Optimizer(network, config, steps, groups)
        self.averaged = self._optimizer.averaged

    def epoch(self) -> float:
        """Learn from every set once.

        Returns:
            The mean loss; not finite if the network has diverged.
        """
        config = self.config
        self.network.train()
        self.network.set_temperature(config.temperature_at(self.epochs_done))
        losses = _Mean(self.network)
        for batch in self._table.shuffled(config.batch_size, config.seed, self.epochs_done):
            try:
                loss = self.network.loss(batch.x, batch.gold, batch.mask)
            except InvalidInput:
                if not self._optimizer.step_count:
                    raise
                return math.nan  # the features are not finite any more
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            losses.add(loss.detach(), batch.gold, batch.mask)
            self._optimizer.step()
        self.epochs_done += 1
        if losses.terms == 0:
            raise InvalidInput("table", message="No item of the table is gold.")
        return losses.value if self._is_finite() else math.nan

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to continue after the last epoch."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "epochs_done": self.epochs_done,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.epochs_done = state["epochs_done"]

    def _is_finite(self) -> bool:
        return all(bool(weight.isfinite().all()) for weight in self.network.parameters())


def fit(
    network: SelectionNetwork,
    table: Table,
    config: FitConfig | None = None,
    on_epoch: Callable[[EpochReport], None] = lambda _: None,
    *,
    validation: Table | None = None,
    groups: Sequence[dict[str, Any]] | None = None,
) -> list[EpochReport]:
    """Train a network on sets in memory.

    Args:
        network: Trained in place. At the end it has the weights of its best epoch on the
            validation sets, the start included; without validation, those of the last epoch.
        table: The sets to learn from, for example a DenseTable, on the network's device.
        config: How to train.
        on_epoch: Called with the report of the start and of every epoch.
        validation: The sets that choose the best epoch.
        groups: Groups of parameters as torch takes them, each with its own `lr` or `weight_decay`;
            by default, all parameters have those of the configuration.

    Returns:
        A report for the start and one for every epoch; fewer epochs than asked for if the network
        was not finite any more.
    """
    config = config or FitConfig()
    trainer = Trainer(network, table, config, groups)
    device = next(network.parameters()).device
    reports: list[EpochReport] = []
    best, weights = 0, dict[str, Tensor]()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(config.seed)
        while len(reports) <= config.epochs:
            began = time.monotonic()
            loss = trainer.epoch() if reports else None
            if loss is not None and not math.isfinite(loss):
                break
            with trainer.averaged():
                reports.append(_measured(network, validation, config, loss, len(reports), began))
                is_better = validation is None or reports[-1].recall > reports[best].recall
                if is_better or loss is None:
                    best = len(reports) - 1
                    weights = {n: w.detach().clone() for n, w in network.state_dict().items()}
            on_epoch(reports[-1])
            if config.patience and len(reports) - 1 - best >= config.patience:
                break
    network.load_state_dict(weights)
    network.eval()
    return reports


def _measured(
    network: SelectionNetwork,
    validation: Table | None,
    config: FitConfig,
    loss: float | None,
    epoch: int,
    began: float,
) -> EpochReport:
    recalls: tuple[float, ...] = ()
    validation_loss = None
    if validation is not None:
        chosen, gold = select_all(network, validation, max(config.eval_ks), config.batch_size)
        recalls = tuple(scores_at(k, chosen, gold).recall for k in config.eval_ks)
        validation_loss = _mean_loss(network, validation, config)
    seconds = time.monotonic() - began
    return EpochReport(epoch, loss, config.eval_ks, recalls, seconds, validation_loss)


@torch.no_grad()
def _mean_loss(network: SelectionNetwork, table: Table, config: FitConfig) -> float:
    network.eval()
    losses = _Mean(network)
    for _, batch in table.once(config.batch_size):
        losses.add(network.loss(batch.x, batch.gold, batch.mask), batch.gold, batch.mask)
    return losses.value


class _Mean:
    """The mean of the losses of batches; it stays on the device until it is read."""

    def __init__(self, network: SelectionNetwork) -> None:
        self._network = network
        self._sums: Tensor | None = None

    def add(self, loss: Tensor, gold: Tensor, mask: Tensor) -> None:
        """Add the mean loss of a batch."""
        terms = self._network.loss_terms(gold, mask)
        sums = torch.stack([loss * terms, terms]).to(torch.float64)
        self._sums = sums if self._sums is None else self._sums + sums

    @property
    def terms(self) -> float:
        """How many sets or items the mean is of."""
        return 0.0 if self._sums is None else float(self._sums[1])

    @property
    def value(self) -> float:
        """The mean so far."""
        return math.nan if self._sums is None else float(self._sums[0] / self._sums[1])


def select_all(
    network: SelectionNetwork, table: Table, k: int, batch_size: int = 256
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The selected items of every set, [sets, k], −1 for none, and the gold, [sets, items]."""
    was_training = network.training
    network.eval()
    chosen = np.full((len(table), k), -1, dtype=np.int64)
    gold = np.zeros((len(table), int(table.lengths.max())), dtype=bool)
    for rows, batch in table.once(batch_size):
        indices = network.select(batch.x, batch.mask, k).indices
        chosen[rows, : indices.shape[1]] = np.asarray(indices.cpu())
        items = batch.gold.shape[1]
        gold[rows, :items] = np.asarray(batch.gold.cpu())[:, : gold.shape[1]]
    network.train(was_training)
    return chosen, gold
