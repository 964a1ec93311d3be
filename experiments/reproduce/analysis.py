"""What is measured on trained networks besides scores: soft search, proofs, diversity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.encoders.pooled import PooledBatches, PooledTable
from dgn.errors import SearchTooLarge
from dgn.evaluation import EvaluationSet
from dgn.maximizers import Selections, exact, greedy
from dgn.text import PooledVectors, unit_rows
from dgn.training import placed_on
from dgn.unfolding import (
    DifferentiableGreedyNetwork,
    PointwiseNetwork,
    SelectionNetwork,
    UnfoldedGreedy,
)

_BATCH_SIZE = 256


@dataclass(frozen=True)
class SoftGap:
    """The soft search of training at one temperature against the argmax of run time.

    Attributes:
        temperature: τ.
        soft_recall: The share of the gold in the soft set of k layers.
        hard_recall: The recall of the k selected passages.
        agreement: The share of layers that find most probable what greedy selects at that step.
    """

    temperature: float
    soft_recall: float
    hard_recall: float
    agreement: float


@dataclass(frozen=True)
class Proofs:
    """Greedy against the exact optimum, on claims that are small enough to search exactly.

    Attributes:
        reached: f(greedy) / f(best) of each claim.
        certified: What the certificate of each claim promised.
        too_large: The number of claims whose exact search was given up.
    """

    reached: tuple[float, ...]
    certified: tuple[float, ...]
    too_large: int


@torch.no_grad()
def soft_gap(
    network: DifferentiableGreedyNetwork,
    table: PooledTable,
    k: int,
    temperatures: Sequence[float],
) -> list[SoftGap]:
    """How far the soft search is from the hard one, at each temperature."""
    network.eval()
    return [_soft_gap_at(network, table, k, temperature) for temperature in temperatures]


def _soft_gap_at(
    network: DifferentiableGreedyNetwork, table: PooledTable, k: int, temperature: float
) -> SoftGap:
    layers = UnfoldedGreedy(k, temperature)
    soft: list[NDArray[Any]] = []
    hard: list[NDArray[Any]] = []
    agree: list[NDArray[Any]] = []
    for batch in PooledBatches(table, _BATCH_SIZE, 0, placed_on("cpu")).once():
        objective, items = network.encode(batch.x, batch.mask)
        unfolded = layers(objective, items)
        picks = cast("Selections", greedy(objective, items, k)).indices
        has_gold, gold = batch.gold.any(dim=1), batch.gold.to(torch.float32)
        member = torch.zeros_like(gold).scatter_add(
            1, picks.clamp(min=0), (picks >= 0).to(torch.float32)
        )
        wanted = gold.sum(dim=1).clamp(min=1)
        soft.append(np.asarray(((unfolded.membership * gold).sum(1) / wanted)[has_gold]))
        hard.append(np.asarray(((member * gold).sum(1) / wanted)[has_gold]))
        likeliest = unfolded.log_probs.argmax(dim=2)[:, : picks.shape[1]]
        agree.append(np.asarray((likeliest == picks)[picks >= 0]))
    means = (float(np.concatenate(part).mean()) for part in (soft, hard, agree))
    return SoftGap(temperature, *means)


@torch.no_grad()
def prove(
    network: DifferentiableGreedyNetwork, table: PooledTable, k: int, claims: int, longest: int
) -> Proofs:
    """Search the first claims with at most `longest` passages exactly."""
    batches = PooledBatches(table, 1, 0, placed_on("cpu"))
    small = np.flatnonzero((table.lengths > k) & (table.lengths <= longest))[:claims]
    reached: list[float] = []
    certified: list[float] = []
    too_large = 0
    for row in small:
        batch = batches.batch(np.array([row]))
        objective, items = network.encode(batch.x, batch.mask)
        picked = cast("Selections", greedy(objective, items, k))[0]
        try:
            best = cast("Selections", exact(objective, items, k, max_nodes=200_000))[0]
        except SearchTooLarge:
            too_large += 1
            continue
        reached.append(min(1.0, picked.values[-1] / best.values[-1]) if best.values[-1] else 1.0)
        certified.append(picked.certificate.ratio)
    return Proofs(tuple(reached), tuple(certified), too_large)


def similarity_of_picks(
    evaluation_set: EvaluationSet, indices: NDArray[np.int64], k: int, vectors: PooledVectors
) -> float:
    """The mean cosine between two of the first k passages, over claims with two or more."""
    means: list[float] = []
    for query, places in zip(evaluation_set.queries, indices[:, :k], strict=True):
        chosen = places[places >= 0]
        if len(chosen) > 1:
            unit = unit_rows(np.asarray(vectors.pooled([query.texts[int(i)] for i in chosen])))
            cosines = unit @ unit.T
            means.append(float(cosines[np.triu_indices(len(chosen), 1)].mean()))
    return float(np.mean(means)) if means else 0.0


@torch.no_grad()
def accepted_share(network: SelectionNetwork, table: PooledTable) -> float:
    """The share of all passages that an encoder calls evidence, at a probability of one half."""
    assert isinstance(network, PointwiseNetwork)  # noqa: S101
    accepted, total = 0, 0
    for batch in PooledBatches(table, _BATCH_SIZE, 0, placed_on("cpu")).once():
        scores = network.scores(batch.x, batch.mask)[batch.mask]
        accepted += int((scores > 0).sum())
        total += len(scores)
    return accepted / total
