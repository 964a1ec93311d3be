"""What is measured on the reported claims besides scores: soft search, proofs, redundancy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.core.functions import FeatureCoverage, Items
from dgn.core import Selections, exact, greedy, top_k
from dgn.errors import SearchTooLarge
from dgn.evaluation.metrics import PairedComparison, hits_at, paired_comparison
from dgn.learn import to_device
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.networks import DifferentiableGreedyNetwork
from dgn.text.vectors import unit_rows
from experiments.reproduce.results import KS
from experiments.reproduce.runner import LARGEST_K

Picks = NDArray[np.int64]
"""[claims, 7], in the order of selection, −1 for none."""

_BATCH_SIZE = 256


def gold_of(table: PooledTable) -> NDArray[np.bool_]:
    """[claims, passages], False for padding."""
    lengths = table.lengths
    gold = np.zeros((len(table), int(lengths.max())), np.bool_)
    gold[np.arange(gold.shape[1]) < lengths[:, None]] = table.gold
    return gold


def _picked(table: PooledTable, choose: Callable[[Any, Any], Any]) -> Picks:
    """What a function of X and the mask selects, batch by batch."""
    found = np.full((len(table), LARGEST_K), -1, np.int64)
    for batch in PooledBatches(table, _BATCH_SIZE, 0, to_device("cpu")).once():
        indices = np.asarray(choose(batch.x, batch.mask).indices)
        found[batch.rows, : indices.shape[1]] = indices
    return found


@torch.no_grad()
def top_k_picks(table: PooledTable) -> Picks:
    """The passages with the largest product with the claim: Top-k of the paper."""
    return _picked(table, lambda x, mask: top_k(x.sum(dim=2), LARGEST_K, mask))


@torch.no_grad()
def greedy_picks(table: PooledTable, scale: float) -> Picks:
    """Greedy on relu(scale · X) with equal weights: Greedy of the paper."""
    return _picked(
        table,
        lambda x, mask: greedy(FeatureCoverage(), Items(torch.relu(scale * x), mask), LARGEST_K),
    )


@torch.no_grad()
def ranked_picks(network: DifferentiableGreedyNetwork, table: PooledTable) -> Picks:
    """The passages with the largest gain in the first layer: the network without diversity."""

    def choose(x: Any, mask: Any) -> Any:
        objective, items = network.encode(x, mask)
        return top_k(objective.gains(items, objective.empty(items)), LARGEST_K, mask)

    return _picked(table, choose)


def similarity_of_picks(table: PooledTable, picks: Picks, k: int) -> float:
    """The mean cosine between two of the first k passages, over claims with two or more."""
    means: list[float] = []
    for row, chosen in enumerate(picks[:, :k]):
        places = chosen[chosen >= 0]
        if len(places) > 1:
            means.append(_pairs(_unit(table, row)[places]))
    return float(np.mean(means)) if means else 0.0


@dataclass(frozen=True)
class GoldSimilarity:
    """How alike gold passages are, over claims with two or more of them and with others.

    Attributes:
        among_gold: The mean cosine between two gold passages of a claim.
        with_others: The mean cosine between a gold passage and one that is not.
        claims: The number of these claims.
        several: The share of the claims that have two or more gold passages.
    """

    among_gold: float
    with_others: float
    claims: int
    several: float


def gold_similarity(table: PooledTable) -> GoldSimilarity:
    """Whether gold passages repeat each other more than the other passages do."""
    among: list[float] = []
    across: list[float] = []
    several = 0
    for row in range(len(table)):
        gold = table.gold[table.offsets[row] : table.offsets[row + 1]]
        several += int(gold.sum() > 1)
        if gold.sum() > 1 and not gold.all():
            unit = _unit(table, row)
            among.append(_pairs(unit[gold]))
            across.append(float((unit[gold] @ unit[~gold].T).mean()))
    if not among:
        return GoldSimilarity(0.0, 0.0, 0, several / len(table))
    return GoldSimilarity(
        float(np.mean(among)), float(np.mean(across)), len(among), several / len(table)
    )


def _unit(table: PooledTable, row: int) -> NDArray[np.float32]:
    rows = table.candidates[table.offsets[row] : table.offsets[row + 1]]
    return unit_rows(table.passages[rows].astype(np.float32))


def _pairs(unit: NDArray[np.float32]) -> float:
    return float((unit @ unit.T)[np.triu_indices(len(unit), 1)].mean())


@dataclass(frozen=True)
class GroupDifference:
    """Two models on a group of claims.

    Attributes:
        group: What the claims have in common.
        claims: Their number.
        at: By k, the first minus the second, recall averaged over the seeds of each.
    """

    group: str
    claims: int
    at: dict[int, PairedComparison]


def differences_by_group(
    table: PooledTable, first: Sequence[Picks], second: Sequence[Picks]
) -> tuple[GroupDifference, ...]:
    """Two models, by the number of gold passages and by how alike the candidates are."""
    gold = gold_of(table)
    wanted = gold.sum(axis=1)
    alike = np.array(
        [_pairs(_unit(table, row)) if table.lengths[row] > 1 else 1 for row in range(len(table))]
    )
    low, high = np.quantile(alike[wanted > 0], [1 / 3, 2 / 3])
    groups = {
        "all claims": wanted > 0,
        "1 gold passage": wanted == 1,
        "2 gold passages": wanted == 2,
        "3 or more": wanted > 2,
        "candidates least alike (a third)": (wanted > 0) & (alike <= low),
        "in between": (wanted > 0) & (alike > low) & (alike <= high),
        "most alike": (wanted > 0) & (alike > high),
    }
    found: list[GroupDifference] = []
    for name, members in groups.items():
        if members.sum() >= 10:
            at = {
                k: paired_comparison(
                    *(mean_recalls(k, of, gold, members) for of in (first, second)), seed=0
                )
                for k in KS
            }
            found.append(GroupDifference(name, int(members.sum()), at))
    return tuple(found)


def mean_recalls(
    k: int,
    picks: Sequence[Picks],
    gold: NDArray[np.bool_],
    members: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """[claims with gold], the recall of each, averaged over seeds; of some claims only."""
    some = slice(None) if members is None else members
    return np.mean([hits_at(k, of[some], gold[some]).recalls for of in picks], axis=0)


@dataclass(frozen=True)
class Exchange:
    """What a model changes against greedy, as shares of the gold that greedy misses (micro).

    Attributes:
        found: Gold that the model selects and greedy does not.
        lost: Gold that greedy selects and the model does not.
    """

    found: float
    lost: float


def exchanged(k: int, greedy: Picks, model: Sequence[Picks], gold: NDArray[np.bool_]) -> Exchange:
    """What a model exchanges among the first k passages, averaged over its seeds."""
    before = _selected(greedy[:, :k], gold.shape[1]) & gold
    missed = max(1, int((gold & ~before).sum()))
    after = [_selected(picks[:, :k], gold.shape[1]) & gold for picks in model]
    return Exchange(
        float(np.mean([(now & ~before).sum() for now in after])) / missed,
        float(np.mean([(before & ~now).sum() for now in after])) / missed,
    )


def _selected(picks: Picks, width: int) -> NDArray[np.bool_]:
    member = np.zeros((len(picks), width + 1), np.bool_)
    np.put_along_axis(member, picks, True, axis=1)  # −1, none, is the last column
    return member[:, :width]


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
    for batch in PooledBatches(table, _BATCH_SIZE, 0, to_device("cpu")).once():
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
def prove(
    network: DifferentiableGreedyNetwork, table: PooledTable, k: int, claims: int, longest: int
) -> Proofs:
    """Search the first claims with at most `longest` passages exactly."""
    batches = PooledBatches(table, 1, 0, to_device("cpu"))
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
