"""The training loop: steps, epochs, validation, and the choice of the best epoch.

Between any two steps the state of a trainer can be saved (`state`) and restored into another one
(`restore`), which then continues exactly as the first would have, bit for bit on a CPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.data import Batch, Batches, Position
from dgn.errors import InvalidInput
from dgn.evaluation.metrics import scores_at
from dgn.learn.config import FitConfig, Fixed
from dgn.learn.networks import SelectionNetwork
from dgn.learn.optimizer import Optimizer, StepGraphs

_DIVERGED = "the network is not finite any more; try a lower learning rate"


@dataclass(frozen=True)
class EpochReport:
    """What is known after an epoch. Epoch 0 is the start: nothing is learned yet, loss is None.

    Attributes:
        epoch: The number of the epoch.
        loss: The mean training loss.
        recalls: The validation recall at each of `eval_ks`.
        learning_rate: The learning rate of the next step.
        temperature: The temperature of the epoch.
        queries_per_second: The speed of training.
        validation_loss: The loss on the validation queries, at the temperature of the epoch.
    """

    epoch: int
    loss: float | None
    recalls: tuple[float, ...]
    learning_rate: float
    temperature: float
    queries_per_second: float
    validation_loss: float | None = None

    @property
    def recall(self) -> float:
        """The mean over k, which chooses the best epoch."""
        return sum(self.recalls) / len(self.recalls)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> EpochReport:
        """A report from a dictionary that JSON has kept."""
        recalls: list[float] = row.pop("recalls")
        return cls(**row, recalls=tuple(recalls))


def best_epoch_of(reports: Sequence[EpochReport], never_below_start: str) -> int:
    """The epoch with the highest mean recall, the first of equals; the start counts too.

    With "every-k", only epochs that are at least as good as the start at every k are considered.
    """
    start = reports[0].recalls
    allowed = [
        report
        for report in reports
        if never_below_start == "mean"
        or all(now >= then for now, then in zip(report.recalls, start, strict=True))
    ]
    return max(allowed, key=lambda report: report.recall).epoch


class Trainer:
    """Trains a network in place; at the end it has the weights of its best epoch.

    Args:
        network: The network.
        train: The queries to learn from, on the device of the network.
        validation: The queries that choose the best epoch.
        config: How to train.
        records: Whether steps on a GPU are recorded and replayed (see StepGraphs). The network
            must compute the same thing in every step: no decisions in Python, nothing that waits
            for the device.
    """

    def __init__(
        self,
        network: SelectionNetwork,
        train: Batches,
        validation: Batches,
        config: FitConfig,
        *,
        records: bool = False,
    ) -> None:
        self.network, self.config = network, config
        self._train, self._validation = train, validation
        self._device = next(network.parameters()).device
        self._optimizer = Optimizer(network, config, config.epochs * len(train))
        self._best = {name: w.detach().clone() for name, w in network.state_dict().items()}
        # The sum of losses and the number of their terms, kept on the device until needed.
        self._losses = torch.zeros(2, dtype=torch.float64, device=self._device)
        records = records and self._device.type == "cuda"
        self._graphs = StepGraphs(self._step_alone, self._device) if records else None
        self._random_states: dict[str, Tensor] = {}
        self._queries_done, self._since = 0, 0.0
        self.position = Position()
        self.reports: list[EpochReport] = []
        self.best_epoch = 0
        self.stopped = ""

    @property
    def steps_per_epoch(self) -> int:
        """The number of steps of an epoch."""
        return len(self._train)

    @property
    def running_loss(self) -> float:
        """The mean loss of this epoch so far. Reading it waits for the device."""
        total, terms = (float(number) for number in self._losses.cpu())
        return total / terms if terms else math.nan

    @property
    def queries_per_second(self) -> float:
        """The speed in this epoch, since it began or was resumed."""
        return self._queries_done / max(time.perf_counter() - self._since, 1e-9)

    def run(
        self,
        on_step: Callable[[], None] = lambda: None,
        on_epoch: Callable[[EpochReport], None] = lambda _: None,
    ) -> None:
        """Train to the end, from the start or from a restored state."""
        on_gpu = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=on_gpu):
            self._set_random_states()
            if not self.reports:
                self._evaluate(None, on_epoch)
            while not self.stopped:
                self._run_epoch(on_step)
                self.position = Position(self.position.epoch + 1)
                loss = self.running_loss
                if not float(self._losses[1]):
                    raise InvalidInput("train", message="No item to learn from is gold.")
                self._losses.zero_()
                if math.isfinite(loss) and self._weights_are_finite():
                    self._evaluate(loss, on_epoch)
                else:
                    self.stopped = _DIVERGED
        self.network.load_state_dict(self._best)
        self.network.eval()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values: everything that `restore` needs."""
        tensors = {
            **{f"network.{name}": weight for name, weight in self.network.state_dict().items()},
            **{f"best.{name}": weight for name, weight in self._best.items()},
            **self._optimizer.tensors(),
            "losses": self._losses,
            "random.cpu": torch.get_rng_state(),
        }
        if self._device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self._device)
        values = {
            "position": asdict(self.position),
            "steps": self._optimizer.step_count,
            "reports": [asdict(report) for report in self.reports],
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
            "threads": torch.get_num_threads(),
        }
        return {name: tensor.detach().cpu() for name, tensor in tensors.items()}, values

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Resume from a state."""
        self.network.load_state_dict(_with_prefix("network.", tensors))
        self._best = {
            name: weight.to(self._device) for name, weight in _with_prefix("best.", tensors).items()
        }
        self._optimizer.restore(tensors, values["steps"])
        self._losses.copy_(tensors["losses"])
        self._random_states = _with_prefix("random.", tensors)
        self.position = Position(**values["position"])
        self.reports = [EpochReport.from_row(row) for row in values["reports"]]
        self.best_epoch, self.stopped = values["best_epoch"], values["stopped"]

    def _set_random_states(self) -> None:
        """Random numbers belong to the run: the caller's generator stays as it was."""
        torch.manual_seed(self.config.seed)
        if "cpu" in self._random_states:
            torch.set_rng_state(self._random_states["cpu"])
            if "cuda" in self._random_states and self._device.type == "cuda":
                torch.cuda.set_rng_state(self._random_states["cuda"], self._device)

    def _run_epoch(self, on_step: Callable[[], None]) -> None:
        self.network.train()
        self.network.set_temperature(self.config.temperatures.at(self.position.epoch))
        if self._graphs is not None and not isinstance(self.config.temperatures, Fixed):
            self._graphs.forget()  # the temperature is part of what was recorded
        self._queries_done, self._since = 0, time.perf_counter()
        for after, rows in self._train.rows_from(self.position):
            self._step(rows)
            self.position = after
            self._queries_done += len(rows)
            on_step()

    def _step(self, rows: NDArray[np.int64]) -> None:
        self._optimizer.prepare()
        shape = self._train.shape_of(rows)
        if self._graphs is not None:
            self._graphs.run(rows, shape)
        else:
            self._learn(self._train.batch(rows))
            self._optimizer.update()
        self._optimizer.step_count += 1

    def _step_alone(self, rows: Tensor, shape: tuple[int, ...]) -> None:
        """A whole step on the device."""
        self._learn(self._train.form(rows, shape))
        self._optimizer.update()

    def _learn(self, batch: Batch) -> None:
        """Add the gradients of a batch, and its loss to those of the epoch."""
        with torch.autocast(
            self._device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"
        ):
            loss = self.network.loss(
                batch.x, batch.gold, batch.mask, batch.negative_weight, batch.teacher_logits
            )
        terms = self.network.loss_terms(batch.gold, batch.mask)
        loss.backward()
        self._losses += torch.stack([loss.detach() * terms, terms]).to(torch.float64)

    def _evaluate(self, loss: float | None, on_epoch: Callable[[EpochReport], None]) -> None:
        """Validate, keep the weights if they are the best, and decide whether to stop."""
        rate, speed = self._optimizer.learning_rate, self.queries_per_second
        temperature = self.config.temperatures.at(max(0, len(self.reports) - 1))
        with self._optimizer.averaged():
            recalls = self._validation_recalls()
            if any(map(math.isnan, recalls)):
                self.stopped = _DIVERGED
                return
            report = EpochReport(
                len(self.reports),
                loss,
                recalls,
                rate,
                temperature,
                0.0 if loss is None else speed,
                self._validation_loss(temperature),
            )
            self.reports.append(report)
            self.best_epoch = best_epoch_of(self.reports, self.config.never_below_start)
            if self.best_epoch == report.epoch:
                for name, weight in self.network.state_dict().items():
                    self._best[name].copy_(weight)
        self.stopped = self._reason_to_stop(report)
        on_epoch(report)

    def _reason_to_stop(self, report: EpochReport) -> str:
        config = self.config
        if report.epoch >= config.epochs:
            return "all epochs are done"
        if config.patience and report.epoch - self.best_epoch >= config.patience:
            return f"no improvement in {config.patience} epochs"
        return ""

    def _weights_are_finite(self) -> bool:
        return all(bool(weight.isfinite().all()) for weight in self.network.parameters())

    @torch.no_grad()
    def _validation_loss(self, temperature: float) -> float | None:
        counted = torch.zeros(2, dtype=torch.float64, device=self._device)
        self.network.set_temperature(temperature)
        self.network.eval()
        for batch in self._validation.once():
            loss = self.network.loss(
                batch.x, batch.gold, batch.mask, batch.negative_weight, batch.teacher_logits
            )
            terms = self.network.loss_terms(batch.gold, batch.mask)
            counted += torch.stack([loss * terms, terms])
        self.network.train()
        total, terms = (float(number) for number in counted.cpu())
        return total / terms if terms and math.isfinite(total) else None

    def _validation_recalls(self) -> tuple[float, ...]:
        try:
            chosen, gold = select_all(self.network, self._validation, max(self.config.eval_ks))
        except InvalidInput:
            if not self.reports:
                raise  # a mistake in the data, not the result of training
            return (math.nan,) * len(self.config.eval_ks)
        return tuple(scores_at(k, chosen, gold).recall for k in self.config.eval_ks)


def fit(
    network: SelectionNetwork,
    train: Batches,
    validation: Batches,
    config: FitConfig,
    on_epoch: Callable[[EpochReport], None] = lambda _: None,
) -> list[EpochReport]:
    """Train a network on sets in memory, without files.

    Args:
        network: Trained in place; at the end it has the weights of its best epoch.
        train: The queries to learn from, for example DenseBatches, on the network's device.
        validation: The queries that choose the best epoch.
        config: How to train.
        on_epoch: Called with the report of every epoch.

    Returns:
        A report for the start and one for every epoch.
    """
    trainer = Trainer(network, train, validation, config)
    trainer.run(on_epoch=on_epoch)
    return trainer.reports


def select_all(
    network: SelectionNetwork, batches: Batches, k: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The selected items of every query, [queries, k], −1 for none, and the gold."""
    was_training = network.training
    network.eval()
    chosen = np.full((batches.query_count, k), -1, dtype=np.int64)
    gold = np.zeros((batches.query_count, batches.width), dtype=bool)
    for batch in batches.once():
        indices = network.select(batch.x, batch.mask, k).indices
        chosen[batch.rows, : indices.shape[1]] = np.asarray(indices.cpu())
        gold[batch.rows, : batch.gold.shape[1]] = np.asarray(batch.gold.cpu())
    network.train(was_training)
    return chosen, gold


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with the prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
