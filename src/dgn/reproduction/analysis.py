"""What is measured on trained networks beside scores: soft against hard, proofs, diversity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.data.batches import ClaimBatches
from dgn.data.feature_table import FeatureTable
from dgn.errors import SearchTooLarge
from dgn.evaluation.contenders.base import Picks, Questions
from dgn.maximizers import exact, greedy
from dgn.training import placed_on
from dgn.unfolding import DifferentiableGreedyNetwork, SelectionNetwork, UnfoldedGreedy
from dgn.unfolding.baselines import ScoringNetwork

_CLAIMS_AT_ONCE = 256


@dataclass(frozen=True)
class SoftGap:
    """The soft search of training at one temperature against the argmax of run time.

    soft_recall: the gold's share of the soft set of k layers. hard_recall: of the k picks.
    agreement: how many layers find most probable what greedy picks at that step.
    """

    temperature: float
    soft_recall: float
    hard_recall: float
    agreement: float


@dataclass(frozen=True)
class Proofs:
    """Greedy against the truth on claims small enough to search exactly, f of a trained network.

    reached: f(greedy) / f(best), claim by claim. certified: what the certificate promised.
    too_large: claims whose exact search was given up.
    """

    reached: tuple[float, ...]
    certified: tuple[float, ...]
    too_large: int


@torch.no_grad()
def soft_gap(
    network: DifferentiableGreedyNetwork,
    table: FeatureTable,
    k: int,
    temperatures: Sequence[float],
) -> list[SoftGap]:
    """How far the soft search is from the hard one, at each temperature."""
    network.eval()
    return [_soft_gap_at(network, table, k, temperature) for temperature in temperatures]


def _soft_gap_at(
    network: DifferentiableGreedyNetwork, table: FeatureTable, k: int, temperature: float
) -> SoftGap:
    layers = UnfoldedGreedy(k, temperature)
    soft: list[NDArray[Any]] = []
    hard: list[NDArray[Any]] = []
    agree: list[NDArray[Any]] = []
    for batch in ClaimBatches(table, _CLAIMS_AT_ONCE, 0, placed_on("cpu")).once():
        items = network.encode(batch.x, batch.mask)
        unfolded = layers(network.set_function(), items)
        picks = greedy(network.set_function(), items, k).indices
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
    network: DifferentiableGreedyNetwork, table: FeatureTable, k: int, claims: int, longest: int
) -> Proofs:
    """Search the first claims of at most `longest` candidates exactly."""
    batches = ClaimBatches(table, 1, 0, placed_on("cpu"))
    small = np.flatnonzero((table.lengths > k) & (table.lengths <= longest))[:claims]
    reached: list[float] = []
    certified: list[float] = []
    too_large = 0
    for row in small:
        batch = batches.batch(np.array([row]))
        items = network.encode(batch.x, batch.mask)
        picked = greedy(network.set_function(), items, k)[0]
        try:
            best = exact(network.set_function(), items, k, max_nodes=200_000)
        except SearchTooLarge:
            too_large += 1
            continue
        reached.append(min(1.0, picked.values[-1] / best.values[-1]) if best.values[-1] else 1.0)
        certified.append(picked.certificate.ratio)
    return Proofs(tuple(reached), tuple(certified), too_large)


def similarity_of_picks(questions: Questions, picks: Picks, k: int) -> float:
    """The mean cosine between two of a claim's first k picks, over claims with two or more."""
    table = questions.vectors
    sentences = table.sentences.astype(np.float32)
    sentences /= np.maximum(np.linalg.norm(sentences, axis=1, keepdims=True), 1e-12)
    means: list[float] = []
    for row, places in enumerate(picks[:, :k]):
        chosen = places[places >= 0]
        if len(chosen) > 1:
            vectors = sentences[table.candidates[table.offsets[row] + chosen]]
            cosines = vectors @ vectors.T
            means.append(float(cosines[np.triu_indices(len(chosen), 1)].mean()))
    return float(np.mean(means)) if means else 0.0


@torch.no_grad()
def accepted_share(network: SelectionNetwork, table: FeatureTable) -> float:
    """The share of all candidates that an encoder calls evidence, at a probability of one half."""
    assert isinstance(network, ScoringNetwork)  # noqa: S101
    accepted, total = 0, 0
    for batch in ClaimBatches(table, _CLAIMS_AT_ONCE, 0, placed_on("cpu")).once():
        scores = network.scores(batch.x, batch.mask)[batch.mask]
        accepted += int((scores > 0).sum())
        total += len(scores)
    return accepted / total
