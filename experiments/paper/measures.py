"""What is measured on the reported claims: selections, redundancy, soft search, true optima."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.core import Selections, greedy, top_k
from dgn.core.functions import FeatureCoverage, Items
from dgn.evaluation.comparison import format_score
from dgn.evaluation.metrics import PairedComparison, hits_at, paired_comparison
from dgn.learn import DifferentiableGreedyNetwork, UnfoldedGreedy
from experiments.paper.features import ClaimTable
from experiments.paper.training import KS, LARGEST_K, Picks

_BATCH_SIZE = 256


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, with its standard deviation (0 for a single value)."""

    mean: float
    sd: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one value per seed."""
        sd = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.mean(values), sd, len(values))

    def __str__(self) -> str:
        mean = format_score(self.mean)
        return mean if self.count == 1 else mean + f" ±{self.sd:.3f}".replace("0.", ".")


# Selections without training, and of a network without diversity.


@torch.no_grad()
def top_k_picks(table: ClaimTable) -> Picks:
    """The sentences with the largest product with the claim: Top-k of the paper."""
    return _picked(table, lambda x, mask: top_k(x.sum(dim=2), LARGEST_K, mask))


@torch.no_grad()
def greedy_picks(table: ClaimTable, scale: float) -> Picks:
    """Greedy on relu(scale · X) with equal weights: Greedy of the paper."""
    f = FeatureCoverage()
    return _picked(table, lambda x, mask: greedy(f, Items(torch.relu(scale * x), mask), LARGEST_K))


@torch.no_grad()
def ranked_picks(network: DifferentiableGreedyNetwork, table: ClaimTable) -> Picks:
    """The sentences with the largest gain in the first layer: the network without diversity."""

    def choose(x: Any, mask: Any) -> Any:
        objective, items = network.encode(x, mask)
        return top_k(objective.gains(items, objective.empty(items)), LARGEST_K, mask)

    return _picked(table, choose)


def _picked(table: ClaimTable, choose: Callable[[Any, Any], Any]) -> Picks:
    picks = np.full((len(table), LARGEST_K), -1, np.int64)
    for rows, batch in table.once(_BATCH_SIZE):
        indices = np.asarray(choose(batch.x, batch.mask).indices)
        picks[rows, : indices.shape[1]] = indices
    return picks


# Comparisons of selections.


def mean_recalls(
    k: int, picks: Sequence[Picks], gold: NDArray[np.bool_], members: Any = slice(None)
) -> NDArray[np.float64]:
    """[claims with gold], the recall of each, averaged over seeds; of some claims only."""
    return np.mean([hits_at(k, of[members], gold[members]).recalls for of in picks], axis=0)


def compared(
    table: ClaimTable, first: Sequence[Picks], second: Sequence[Picks], members: Any = slice(None)
) -> dict[int, PairedComparison]:
    """By k, two models on the same claims, by macro recall averaged over the seeds of each."""
    gold = table.wanted
    return {
        k: paired_comparison(
            *(mean_recalls(k, of, gold, members) for of in (first, second)), seed=0
        )
        for k in KS
    }


def claim_groups(table: ClaimTable) -> dict[str, NDArray[np.bool_]]:
    """Groups of claims, by the number of gold sentences and by how alike the candidates are."""
    wanted = table.wanted.sum(axis=1)
    alike = np.array(
        [_pairs(table.unit(row)) if table.lengths[row] > 1 else 1 for row in range(len(table))]
    )
    low, high = np.quantile(alike[wanted > 0], [1 / 3, 2 / 3])
    groups = {
        "all claims": wanted > 0,
        "1 gold sentence": wanted == 1,
        "2 gold sentences": wanted == 2,
        "3 or more": wanted > 2,
        "candidates least alike (a third)": (wanted > 0) & (alike <= low),
        "in between": (wanted > 0) & (alike > low) & (alike <= high),
        "most alike": (wanted > 0) & (alike > high),
    }
    return {name: members for name, members in groups.items() if members.sum() >= 10}


def exchanged(
    k: int, before: Picks, after: Sequence[Picks], gold: NDArray[np.bool_]
) -> tuple[float, float]:
    """What a model finds and what it loses against greedy, as shares of what greedy misses."""
    old = _members(before[:, :k], gold.shape[1]) & gold
    missed = max(1, int((gold & ~old).sum()))
    new = [_members(picks[:, :k], gold.shape[1]) & gold for picks in after]
    return (
        float(np.mean([(now & ~old).sum() for now in new])) / missed,
        float(np.mean([(old & ~now).sum() for now in new])) / missed,
    )


def _members(picks: Picks, width: int) -> NDArray[np.bool_]:
    member = np.zeros((len(picks), width + 1), np.bool_)
    np.put_along_axis(member, picks, True, axis=1)  # −1, none, is the last column
    return member[:, :width]


# How alike sentences are.


def similarity_of_picks(table: ClaimTable, picks: Picks, k: int) -> float:
    """The mean cosine between two of the first k sentences, over claims with two or more."""
    means: list[float] = []
    for row, chosen in enumerate(picks[:, :k]):
        places = chosen[chosen >= 0]
        if len(places) > 1:
            means.append(_pairs(table.unit(row)[places]))
    return float(np.mean(means)) if means else 0.0


def gold_similarity(table: ClaimTable) -> tuple[float, float, float]:
    """The share of claims with several gold sentences; the mean cosine between two of them, and
    between a gold sentence and another one (0 if there is no such claim).
    """
    among, across = list[float](), list[float]()
    for row in range(len(table)):
        gold = table.gold[table.offsets[row] : table.offsets[row + 1]]
        if gold.sum() > 1 and not gold.all():
            unit = table.unit(row)
            among.append(_pairs(unit[gold]))
            across.append(float((unit[gold] @ unit[~gold].T).mean()))
    several = float((table.wanted.sum(axis=1) > 1).mean())
    if not among:
        return several, 0.0, 0.0
    return several, float(np.mean(among)), float(np.mean(across))


def _pairs(unit: NDArray[np.float32]) -> float:
    return float((unit @ unit.T)[np.triu_indices(len(unit), 1)].mean())


# How strongly a trained function diminishes. In the stories of the paper, a sentence is worth
# f({v}) = 7 to 16, and one that repeats the first pick keeps .57 to .77 of that.


@torch.no_grad()
def diminishing(
    network: DifferentiableGreedyNetwork, table: ClaimTable
) -> tuple[float, float, float]:
    """f({first pick}), and the share of its gain that the second pick keeps.

    The third number is the standard deviation of this share over the candidates of a claim: if all
    lose the same share, their order stays that of the first layer.
    """
    alone, kept, uneven = (list[NDArray[np.float64]]() for _ in range(3))
    for _, batch in table.once(_BATCH_SIZE):
        objective, items = network.encode(batch.x, batch.mask)
        empty = objective.empty(items)
        gains = torch.where(batch.mask, objective.gains(items, empty), 0.0)
        member = torch.zeros_like(gains).scatter(1, gains.argmax(dim=1, keepdim=True), 1.0)
        after = objective.gains(items, objective.add(items, empty, member))
        others = batch.mask & (member == 0) & (gains > 0)
        second = torch.where(others, after, -torch.inf).argmax(dim=1, keepdim=True)
        share = np.asarray(torch.where(others, after / gains.clamp(min=1e-30), torch.nan).double())
        alone.append(np.asarray(gains.amax(dim=1).double()))
        has_second = np.asarray(others.any(dim=1))
        kept.append(np.take_along_axis(share, np.asarray(second), axis=1)[has_second, 0])
        uneven.append(np.nanstd(share[np.asarray(others.sum(dim=1) > 1)], axis=1))
    means = [float(np.concatenate(part).mean()) for part in (alone, kept, uneven)]
    return means[0], means[1], means[2]


def same_five(network: DifferentiableGreedyNetwork, table: ClaimTable, picks: Picks) -> float:
    """The share of claims whose first 5 sentences are those of a ranking by the first layer."""
    ranked = ranked_picks(network, table)
    sets = [[frozenset(row[:5].tolist()) for row in of] for of in (picks, ranked)]
    return sum(a == b for a, b in zip(*sets, strict=True)) / len(table)


# The soft search of training against the argmax of run time, and greedy against the optimum.


@torch.no_grad()
def soft_gap(
    network: DifferentiableGreedyNetwork, table: ClaimTable, k: int, temperature: float
) -> tuple[float, float, float]:
    """Recall of the soft set and of the selected sentences, and the share of layers that agree."""
    layers = UnfoldedGreedy(k, temperature)
    parts: list[list[NDArray[Any]]] = [[], [], []]
    for _, batch in table.once(_BATCH_SIZE):
        objective, items = network.encode(batch.x, batch.mask)
        unfolded = layers(objective, items)
        picks = cast("Selections", greedy(objective, items, k)).indices
        gold, has_gold = batch.gold.to(torch.float32), batch.gold.any(dim=1)
        member = torch.zeros_like(gold).scatter_add(1, picks.clamp(min=0), (picks >= 0).float())
        wanted = gold.sum(dim=1).clamp(min=1)
        agrees = unfolded.log_probs.argmax(dim=2)[:, : picks.shape[1]] == picks
        parts[0].append(np.asarray(((unfolded.membership * gold).sum(1) / wanted)[has_gold]))
        parts[1].append(np.asarray(((member * gold).sum(1) / wanted)[has_gold]))
        parts[2].append(np.asarray(agrees[picks >= 0]))
    means = [float(np.concatenate(part).mean()) for part in parts]
    return means[0], means[1], means[2]


@torch.no_grad()
def true_shares(
    network: DifferentiableGreedyNetwork, table: ClaimTable, k: int, claims: int, longest: int
) -> tuple[list[float], list[float]]:
    """f(greedy) / f(best) and what the certificate promised, for the first small claims.

    All sets of k of at most `longest` sentences are tried.
    """
    reached, certified = list[float](), list[float]()
    small = np.flatnonzero((table.lengths > k) & (table.lengths <= longest))[:claims]
    for row in small:
        batch = table.batch(np.array([row]))
        objective, items = network.encode(batch.x, batch.mask)
        picked = cast("Selections", greedy(objective, items, k))[0]
        sets = np.array(list(itertools.combinations(range(batch.x.shape[1]), k)))
        best = max(
            _best_of(network, batch.x, part) for part in np.array_split(sets, len(sets) // 2000 + 1)
        )
        reached.append(min(1.0, picked.values[-1] / best) if best else 1.0)
        certified.append(picked.certificate.ratio)
    return reached, certified


def _best_of(network: DifferentiableGreedyNetwork, x: Any, sets: NDArray[np.int64]) -> float:
    """The largest f of some sets of sentences, each as a set of its own in one batch."""
    objective, items = network.encode(x[0][torch.from_numpy(sets)], None)
    everything = objective.add(items, objective.empty(items), torch.ones(sets.shape))
    return float(objective.value(everything).max())
