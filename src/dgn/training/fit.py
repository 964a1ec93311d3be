"""Fit a selection network to labelled sets, and keep the epoch that does best on others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dgn.evaluation import scores_at
from dgn.unfolding import DifferentiableGreedyNetwork, Fixed, Schedule, SelectionNetwork


@dataclass(frozen=True, eq=False)
class LabelledSets:
    """x: [sets, items, inputs]; gold, mask: [sets, items]."""

    x: Tensor
    gold: Tensor
    mask: Tensor

    @classmethod
    def of(cls, x: Any, gold: Any, mask: Any) -> LabelledSets:
        """From NumPy arrays, without a copy."""
        return cls(torch.from_numpy(x), torch.from_numpy(gold), torch.from_numpy(mask))

    def __len__(self) -> int:
        return self.x.shape[0]

    def batches(self, size: int, generator: torch.Generator) -> Iterator[LabelledSets]:
        """All sets once, in random order."""
        order = torch.randperm(len(self), generator=generator)
        for start in range(0, len(self), size):
            rows = order[start : start + size]
            yield LabelledSets(self.x[rows], self.gold[rows], self.mask[rows])


@dataclass(frozen=True)
class FitConfig:
    """How to train. `judged_at` are the k whose mean validation recall picks the best epoch."""

    epochs: int = 15
    learning_rate: float = 1e-3
    batch_size: int = 128
    seed: int = 0
    temperature: Schedule = field(default_factory=Fixed)
    judged_at: tuple[int, ...] = (1, 3, 5, 7)


@dataclass(frozen=True)
class EpochReport:
    """What one epoch did: the mean training loss, and the mean validation recall."""

    epoch: int
    loss: float
    validation_recall: float


def fit(
    network: SelectionNetwork,
    train: LabelledSets,
    validation: LabelledSets,
    config: FitConfig,
    on_epoch: Callable[[EpochReport], None] = lambda _: None,
) -> list[EpochReport]:
    """Train with Adam, in place; in the end the network holds the weights of its best epoch.

    The start counts as an epoch too: what training makes worse is not kept.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
    generator = torch.Generator().manual_seed(config.seed)
    best_recall = _validation_recall(network, validation, config)
    best_weights = copy.deepcopy(network.state_dict())
    reports: list[EpochReport] = []
    for epoch in range(config.epochs):
        if isinstance(network, DifferentiableGreedyNetwork):
            network.greedy.temperature = config.temperature.at(epoch)
        loss = _train_one_epoch(network, optimizer, train.batches(config.batch_size, generator))
        report = EpochReport(epoch, loss, _validation_recall(network, validation, config))
        if report.validation_recall > best_recall:
            best_recall = report.validation_recall
            best_weights = copy.deepcopy(network.state_dict())
        reports.append(report)
        on_epoch(report)
    network.load_state_dict(best_weights)
    network.eval()
    return reports


def _train_one_epoch(
    network: SelectionNetwork,
    optimizer: torch.optim.Optimizer,
    batches: Iterator[LabelledSets],
) -> float:
    network.train()
    losses: list[Tensor] = []
    for batch in batches:
        optimizer.zero_grad()
        loss = network.loss(batch.x, batch.gold, batch.mask)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return float(torch.stack(losses).mean())


def _validation_recall(network: SelectionNetwork, sets: LabelledSets, config: FitConfig) -> float:
    network.eval()
    picked = network.select(sets.x, sets.mask, k=max(config.judged_at)).indices
    recalls = [scores_at(k, picked, sets.gold).recall for k in config.judged_at]
    return sum(recalls) / len(recalls)
