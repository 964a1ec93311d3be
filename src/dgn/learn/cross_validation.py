"""Networks that are measured on what they have not learned from: cross-validation by document.

The examples are divided into parts by document. For each part, a network learns from the other
parts; one more network learns from all examples. All of them learn epoch by epoch, from the same
start. The recall on the parts that were not learned from chooses the epoch. What chooses never
reports: the epoch of a network that is measured on a part is chosen by the other parts. With many
examples, one network is enough, which does not learn from two of ten parts.

The learning rate is constant, so that a run with more epochs begins like one with fewer, and a run
can be continued. Its state is one file, which is written after every epoch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.data import Example, Position
from dgn.evaluation import EvaluationSet
from dgn.evaluation.metrics import hits_at
from dgn.learn.config import RunConfig
from dgn.learn.families.facets_table import MatchBatches, MatchTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy, relevance_loss
from dgn.learn.networks import DifferentiableGreedyNetwork
from dgn.learn.optimizer import Optimizer
from dgn.learn.run import read_checkpoint, write_checkpoint
from dgn.learn.setup import to_device
from dgn.learn.starts import Start
from dgn.learn.trainer import select_all

_PARTS, _MANY_ROWS, _PARTS_OF_MANY = 5, 2000, 10
_QUERIES_PER_EVALUATION = 64
_TEXT_OF_ITS_OWN = 40
"""Two examples with a gold passage of this many characters in common are about one document."""


@dataclass(frozen=True)
class RowsEpoch:
    """What is known after an epoch; epoch 0 is the start.

    Attributes:
        epoch: The number of the epoch.
        loss: The mean training loss; None for the start.
        ks: Where recall is measured.
        recalls: The mean recall at each of them on rows that were not learned from.
        seconds: How long the epoch took.
    """

    epoch: int
    loss: float | None
    ks: tuple[int, ...]
    recalls: tuple[float, ...]
    seconds: float = 0.0

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> RowsEpoch:
        """An epoch from a dictionary that JSON has kept."""
        ks, recalls = tuple(row.pop("ks")), tuple(row.pop("recalls"))
        return cls(**row, ks=ks, recalls=recalls)


@dataclass(eq=False)
class Pick:
    """Weights of the best epoch of a network, as some rows see it.

    Attributes:
        network: The number of the network.
        chosen_by: [rows], whether a row has a say.
        reports: [rows], whether the weights are measured on a row.
        epoch: The best epoch so far.
        weights: The weights at this epoch.
    """

    network: int
    chosen_by: NDArray[np.bool_]
    reports: NDArray[np.bool_]
    epoch: int
    weights: dict[str, Tensor]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights as NumPy arrays."""
        return {name: weight.numpy() for name, weight in self.weights.items()}


class Learner:
    """A network that learns from some of the rows."""

    def __init__(self, start: Start, config: RunConfig, table: MatchTable, held_out: Any) -> None:
        rows = np.flatnonzero(~held_out)
        self.held_out = np.flatnonzero(held_out)
        self.module = cast("Any", start.module(config.network.dropout))
        layers = UnfoldedGreedy(config.network.layers, config.fit.temperature)
        criterion = LayerwiseCrossEntropy(config.network.assignment)
        self.network = DifferentiableGreedyNetwork(self.module, layers, criterion)
        device, seed = to_device("cpu"), config.fit.seed
        self._batches = MatchBatches(table.rows(rows), config.fit.batch_size, seed, device)
        self.optimizer = Optimizer(self.network, config.fit, config.fit.epochs * len(self._batches))
        self._evaluated = None
        if len(self.held_out):
            part = table.rows(self.held_out)
            self._evaluated = MatchBatches(part, _QUERIES_PER_EVALUATION, seed, device)

    def learn(self, epoch: int) -> float:
        """Learn from every row once, and return the mean loss."""
        self.network.train()
        losses: list[float] = []
        for _, rows in self._batches.rows_from(Position(epoch)):
            batch = self._batches.batch(rows)
            facets = self.module.facets(batch.x)
            unfolded = self.network.greedy(*facets.function(batch.mask))
            loss = self.network.criterion(unfolded, batch.gold)
            loss = loss + relevance_loss(facets.logits, batch.gold, batch.mask)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return math.fsum(losses) / len(losses)

    def recalls(self, ks: Sequence[int], missing: NDArray[np.int64]) -> NDArray[np.float32]:
        """[held-out rows, ks], with the averaged weights."""
        if self._evaluated is None:
            return np.zeros((0, len(ks)), np.float32)
        with self.optimizer.averaged():
            chosen, gold = select_all(self.network, self._evaluated, max(ks))
        lost = missing[self.held_out]
        found = [hits_at(k, chosen, gold, lost).recalls for k in ks]
        return np.stack(found, axis=1).astype(np.float32)

    def weights(self) -> dict[str, Tensor]:
        """A copy of the averaged weights."""
        with self.optimizer.averaged():
            return {name: w.detach().clone() for name, w in self.module.state_dict().items()}


class CrossValidation:
    """Networks that learn from all parts but one, and one that learns from all, epoch by epoch.

    Args:
        start: What the networks start from.
        config: The settings of the run.
        table: The examples, read by the start.
        examples: The examples themselves.
        checkpoint: The file of the state; what is there is continued.

    Attributes:
        epochs: What is known after each epoch; the first one is the start.
        picks: The best weights of the network that learns from all, then those of the others.
        note: How the examples were divided, if not by document.
        stopped: Why training stopped.
    """

    def __init__(
        self,
        start: Start,
        config: RunConfig,
        table: MatchTable,
        examples: Sequence[Example],
        checkpoint: Path,
    ) -> None:
        self.config, self._checkpoint = config, checkpoint
        self.data = EvaluationSet(tuple(examples))
        self.epochs: list[RowsEpoch] = []
        self.stopped = ""
        parts, self.note = divide(examples)
        count = int(parts.max()) + 1
        is_many = len(examples) > _MANY_ROWS
        held_out = [parts < 2] if is_many else [parts == part for part in range(count)]
        nobody = np.zeros(len(examples), bool)
        self.learners = [Learner(start, config, table, own) for own in (nobody, *held_out)]
        self._known = np.any(held_out, axis=0)
        weights = self.learners[0].weights()
        self.picks = [Pick(0, self._known, nobody, 0, weights)]
        for part in range(2 if is_many else count):
            reports = parts == part
            network = 1 if is_many else 1 + part
            self.picks.append(Pick(network, self._known & ~reports, reports, 0, weights))
        # [epochs, rows, ks], the recall on rows that were not learned from; NaN for the others.
        self._curve: list[NDArray[np.float32]] = []
        self._restore()

    def learn(self, on_epoch: Callable[[RowsEpoch, int], None]) -> None:
        """Learn until the last epoch, or until nothing improves any more."""
        most = self.config.fit.epochs
        if not self.epochs:
            self._measure(None, time.monotonic())
        for epoch in self.epochs:
            on_epoch(epoch, most)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.fit.seed)
            if self._random is not None:
                torch.set_rng_state(self._random)
            while not self._is_done():
                began = time.monotonic()
                losses = [learner.learn(len(self.epochs) - 1) for learner in self.learners]
                if not all(map(math.isfinite, losses)):
                    self.stopped = "the network is not finite any more; try a lower learning rate"
                    return
                self._measure(math.fsum(losses) / len(losses), began)
                write_checkpoint(self._checkpoint, *self._state())
                on_epoch(self.epochs[-1], most)

    def _measure(self, loss: float | None, began: float) -> None:
        """Measure all networks on the rows that they do not learn from, and choose epochs."""
        ks = self.config.fit.eval_ks
        recalls = np.full((len(self.data.examples), len(ks)), np.nan, np.float32)
        for learner in self.learners[1:]:
            recalls[learner.held_out] = learner.recalls(ks, self.data.missing)
        self._curve.append(recalls)
        mean = tuple(float(one) for one in np.nanmean(recalls, axis=0))
        self.epochs.append(RowsEpoch(len(self.epochs), loss, ks, mean, time.monotonic() - began))
        by_row = np.stack(self._curve).mean(axis=2)
        for pick in self.picks:
            best = int(by_row[:, pick.chosen_by].mean(axis=1).argmax())
            if best == len(self.epochs) - 1:
                pick.epoch, pick.weights = best, self.learners[pick.network].weights()

    def _is_done(self) -> bool:
        fit, done = self.config.fit, len(self.epochs) - 1
        if done >= fit.epochs:
            self.stopped = "all epochs are done"
        elif fit.patience and done - self.picks[0].epoch >= fit.patience:
            self.stopped = f"no improvement in {fit.patience} epochs"
        return bool(self.stopped)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {"random": torch.get_rng_state(), "curve": torch.tensor(np.stack(self._curve))}
        for number, learner in enumerate(self.learners):
            own = {f"module.{n}": w.detach() for n, w in learner.module.state_dict().items()}
            tensors |= {
                f"{number}.{n}": w for n, w in {**own, **learner.optimizer.tensors()}.items()
            }
        for number, pick in enumerate(self.picks):
            tensors |= {f"pick.{number}.{name}": w for name, w in pick.weights.items()}
        values = {
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "picks": [pick.epoch for pick in self.picks],
            "steps": [learner.optimizer.step_count for learner in self.learners],
        }
        return tensors, values

    def _restore(self) -> None:
        """Continue where an earlier call in this folder has stopped."""
        self._random: Tensor | None = None
        if not self._checkpoint.is_file():
            return
        tensors, values = read_checkpoint(self._checkpoint)
        self._random, self._curve = tensors["random"], [*tensors["curve"].numpy()]
        self.epochs = [RowsEpoch.from_row(row) for row in values["epochs"]]
        for number, (learner, steps) in enumerate(zip(self.learners, values["steps"], strict=True)):
            own = _after(f"{number}.", tensors)
            learner.module.load_state_dict(_after("module.", own))
            learner.optimizer.restore(own, steps)
        for number, (pick, epoch) in enumerate(zip(self.picks, values["picks"], strict=True)):
            pick.epoch, pick.weights = epoch, _after(f"pick.{number}.", tensors)


def divide(examples: Sequence[Example]) -> tuple[NDArray[np.int64], str]:
    """The part of each example, so that examples about one document are in one part.

    Examples are about one document if a document with gold passages, or a longer gold passage, is
    the same. If most of them are, they are divided one by one.

    Returns:
        [examples], the part of each; and a note if they were divided one by one.
    """
    first: dict[str, int] = {}
    leader = list(range(len(examples)))

    def find(row: int) -> int:
        while leader[row] != row:
            row = leader[row]
        return row

    for row, example in enumerate(examples):
        for text in _documents_of(example):
            leader[find(row)] = find(first.setdefault(text, row))
    together: dict[int, list[int]] = {}
    for row in range(len(examples)):
        together.setdefault(find(row), []).append(row)
    count = _PARTS_OF_MANY if len(examples) > _MANY_ROWS else _PARTS
    note = ""
    groups: list[list[int]] = list(together.values())
    if max(map(len, groups)) > len(examples) / 2 or len(groups) < count:
        note = "most rows share a document, so that parts have documents in common"
        groups = [[row] for row in range(len(examples))]
    parts = np.zeros(len(examples), np.int64)
    sizes = np.zeros(count, np.int64)
    shuffled = np.random.default_rng(0).permutation(len(groups))
    groups = [groups[number] for number in shuffled]
    for group in sorted(groups, key=len, reverse=True):
        smallest = int(sizes.argmin())
        parts[group] = smallest
        sizes[smallest] += len(group)
    return parts, note


def _documents_of(example: Example) -> Iterator[str]:
    """The texts of the documents with gold, and longer gold passages."""
    pairs = list(zip(example.query.passages, example.gold, strict=True))
    for document in {passage.document for passage, is_gold in pairs if is_gold}:
        yield "\n".join(passage.text for passage, _ in pairs if passage.document == document)
    for passage, is_gold in pairs:
        if is_gold and len(passage.text) >= _TEXT_OF_ITS_OWN:
            yield passage.text


def _after(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): w for n, w in tensors.items() if n.startswith(prefix)}
