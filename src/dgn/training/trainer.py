"""The loop: steps, epochs, validation, and the choice of the best epoch.

Between any two steps a trainer's state can be taken out (`state`) and put into another one
(`restore`), which then goes on as this one would have, bit for bit on a CPU.
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

from dgn.data.batches import Batch, Batches, Position
from dgn.evaluation import scores_at
from dgn.training.config import FitConfig
from dgn.training.facet_network import FacetNetwork
from dgn.training.optimization import Optimization
from dgn.training.processes import Processes
from dgn.unfolding import DifferentiableGreedyNetwork, SelectionNetwork


@dataclass(frozen=True)
class EpochReport:
    """What is known after an epoch. Epoch 0 is the start: nothing is learned yet, loss is None.

    recalls: the validation recall at each of `judged_at`.
    """

    epoch: int
    loss: float | None
    recalls: tuple[float, ...]
    learning_rate: float
    temperature: float
    claims_per_second: float

    @property
    def recall(self) -> float:
        """The mean over k: what chooses the best epoch."""
        return sum(self.recalls) / len(self.recalls)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> EpochReport:
        """A report that JSON has turned into a dictionary."""
        recalls: list[float] = row.pop("recalls")
        return cls(**row, recalls=tuple(recalls))


def best_epoch_of(reports: Sequence[EpochReport], never_below_start: str) -> int:
    """The epoch of highest mean recall, the first of equals; with "every-k", only among those
    that are below the start at no k.

    The start is one of them: what training makes worse is not kept.
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
    """Trains a network in place; in the end it holds the weights of its best epoch."""

    def __init__(
        self,
        network: SelectionNetwork,
        train: Batches,
        validation: Batches,
        config: FitConfig,
        processes: Processes | None = None,
    ) -> None:
        self.network, self.config = network, config
        self._train, self._validation = train, validation
        self._processes = processes or Processes()
        self._device = next(network.parameters()).device
        self._optimization = Optimization(network, config, config.epochs * len(train))
        self._best = {name: w.detach().clone() for name, w in network.state_dict().items()}
        # The sum of losses and the number of their terms, left on the device until asked for.
        self._losses = torch.zeros(2, dtype=torch.float64, device=self._device)
        self._random_states: dict[str, Tensor] = {}
        self._claims_done, self._since = 0, 0.0
        self.position = Position()
        self.reports: list[EpochReport] = []
        self.best_epoch = 0
        self.stopped = ""

    @property
    def batches_in_an_epoch(self) -> int:
        """How many steps an epoch has."""
        return len(self._train)

    @property
    def running_loss(self) -> float:
        """The mean loss of this epoch so far. Asking for it waits for the device."""
        total, terms = (float(number) for number in self._losses.cpu())
        return total / terms if terms else math.nan

    @property
    def claims_per_second(self) -> float:
        """In this epoch, since it began or was gone on with."""
        return self._claims_done / max(time.perf_counter() - self._since, 1e-9)

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
                self._judge(None, on_epoch)
            while not self.stopped:
                self._run_epoch(on_step)
                self.position = Position(self.position.epoch + 1)
                loss = self.running_loss
                self._losses.zero_()
                if math.isfinite(loss) and self._weights_are_finite():
                    self._judge(loss, on_epoch)
                else:
                    self.stopped = "the loss is no finite number; try a lower learning rate"
        self.network.load_state_dict(self._best)
        self.network.eval()

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values: everything that `restore` needs."""
        tensors = {
            **{f"network.{name}": weight for name, weight in self.network.state_dict().items()},
            **{f"best.{name}": weight for name, weight in self._best.items()},
            **self._optimization.tensors(),
            "losses": self._losses,
            "random.cpu": torch.get_rng_state(),
        }
        if self._device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self._device)
        values = {
            "position": asdict(self.position),
            "steps": self._optimization.step_count,
            "reports": [asdict(report) for report in self.reports],
            "best_epoch": self.best_epoch,
            "stopped": self.stopped,
        }
        return {name: tensor.detach().cpu() for name, tensor in tensors.items()}, values

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go on from a state."""
        self.network.load_state_dict(_under("network.", tensors))
        self._best = {
            name: weight.to(self._device) for name, weight in _under("best.", tensors).items()
        }
        self._optimization.restore(tensors, values["steps"])
        self._losses.copy_(tensors["losses"])
        self._random_states = _under("random.", tensors)
        self.position = Position(**values["position"])
        self.reports = [EpochReport.from_row(row) for row in values["reports"]]
        self.best_epoch, self.stopped = values["best_epoch"], values["stopped"]

    def _set_random_states(self) -> None:
        """Random numbers are the run's own: the caller's generator is left as it was."""
        torch.manual_seed(self.config.seed + self._processes.rank)
        if "cpu" in self._random_states and self._processes.size == 1:
            torch.set_rng_state(self._random_states["cpu"])
            if "cuda" in self._random_states and self._device.type == "cuda":
                torch.cuda.set_rng_state(self._random_states["cuda"], self._device)

    def _run_epoch(self, on_step: Callable[[], None]) -> None:
        self.network.train()
        if isinstance(self.network, DifferentiableGreedyNetwork | FacetNetwork):
            self.network.greedy.temperature = self.config.temperatures.at(self.position.epoch)
        self._claims_done, self._since = 0, time.perf_counter()
        for behind, rows in self._train.rows_from(self.position):
            self._step(rows)
            self.position = behind
            self._claims_done += len(rows)
            on_step()

    def _step(self, rows: NDArray[np.int64]) -> None:
        if self._processes.size > 1:
            self._seed_step()
        share = self._processes.share(rows)
        counted = torch.zeros(2, dtype=torch.float64, device=self._device)
        if len(share):
            batch = self._train.batch(share)
            with torch.autocast(
                self._device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"
            ):
                loss = self._loss(batch)
            terms = self.network.loss_terms(batch.gold, batch.mask)
            (loss if self._processes.size == 1 else loss * terms).backward()
            counted = torch.stack([loss.detach() * terms, terms]).to(torch.float64)
        if self._processes.size > 1:
            self._processes.add_up([counted])
            gradients = self._optimization.gradients
            self._processes.add_up(gradients)
            for gradient in gradients:
                gradient /= counted[1].clamp(min=1)
        self._losses += counted
        self._optimization.step()

    def _loss(self, batch: Batch) -> Tensor:
        config = self.config
        if batch.soft is not None and config.distill and isinstance(self.network, FacetNetwork):
            return self.network.distilled_loss(
                batch.x,
                batch.gold,
                batch.mask,
                batch.rivals,
                batch.soft,
                config.distill,
                config.soft_temperature,
            )
        return self.network.loss(batch.x, batch.gold, batch.mask, batch.rivals)

    def _seed_step(self) -> None:
        """Among several processes, dropout depends on the step alone: a checkpoint holds the
        random state of the first one only.
        """
        step = self._optimization.step_count * self._processes.size + self._processes.rank
        torch.manual_seed((self.config.seed * 1_000_003 + step) % 2**63)

    def _judge(self, loss: float | None, on_epoch: Callable[[EpochReport], None]) -> None:
        """Validate, keep the weights if they are the best, and decide whether to stop."""
        rate, speed = self._optimization.learning_rate, self.claims_per_second
        temperature = self.config.temperatures.at(max(0, len(self.reports) - 1))
        with self._optimization.averaged():
            report = EpochReport(
                len(self.reports),
                loss,
                self._validation_recalls(),
                rate,
                temperature,
                0.0 if loss is None else speed,
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
            return "all epochs done"
        if config.patience and report.epoch - self.best_epoch >= config.patience:
            return f"no better epoch in {config.patience}"
        return ""

    def _weights_are_finite(self) -> bool:
        return all(bool(weight.isfinite().all()) for weight in self.network.parameters())

    def _validation_recalls(self) -> tuple[float, ...]:
        recalls = [0.0] * len(self.config.judged_at)
        if self._processes.writes:
            picks, gold = pick_all(self.network, self._validation, max(self.config.judged_at))
            recalls = [scores_at(k, picks, gold).recall for k in self.config.judged_at]
        return self._processes.from_first(recalls, self._device)


def pick_all(
    network: SelectionNetwork, batches: Batches, k: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The picks of every claim, [claims, k], −1 for none, and the gold, [claims, items]."""
    was_training = network.training
    network.eval()
    picks = np.full((batches.claim_count, k), -1, dtype=np.int64)
    gold = np.zeros((batches.claim_count, batches.width), dtype=bool)
    for batch in batches.once():
        indices = network.select(batch.x, batch.mask, k).indices
        picks[batch.rows, : indices.shape[1]] = np.asarray(indices.cpu())
        gold[batch.rows, : batch.gold.shape[1]] = np.asarray(batch.gold.cpu())
    network.train(was_training)
    return picks, gold


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin so, under the rest of their names."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
