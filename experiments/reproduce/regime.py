"""How strongly a trained function diminishes: the fingerprint that the paper's stories leave.

In its stories a sentence is worth f({v}) = 7 to 16, and one that repeats the first pick keeps .57
to .77 of that. The same numbers of a network of ours say whether its greedy layers do anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.evaluation.metrics import hits_at
from dgn.learn import load_network, to_device
from dgn.learn.families.pooled import PooledSettings
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.networks import DifferentiableGreedyNetwork
from experiments.reproduce.analysis import Picks, gold_of, ranked_picks
from experiments.reproduce.results import KS, RunRecord, Spread

_BATCH_SIZE = 256


@dataclass(frozen=True)
class Regime:
    """One variant of the DGN over its seeds, on the reported claims.

    Attributes:
        variant: Its name.
        settings: Where it starts, in words.
        recall: By k, macro.
        alone: f({v}) of the first pick, the mean over claims.
        kept: f(v | first) / f({v}) of the second pick: the share of its gain that is left.
        uneven: The standard deviation of this share over the candidates of a claim. If all
            candidates lose the same share, their order stays that of the first layer.
        ranked: The share of the claims whose first 5 passages are those of a ranking by the gains
            of the first layer.
    """

    variant: str
    settings: str
    recall: dict[int, Spread]
    alone: Spread
    kept: Spread
    uneven: Spread
    ranked: Spread


def regime_of(variant: str, records: Sequence[RunRecord], table: PooledTable, name: str) -> Regime:
    """The regime of a variant.

    Args:
        variant: Its name.
        records: Its runs, one for each seed.
        table: The reported claims.
        name: The name of this table among the picks of a run.
    """
    gold = gold_of(table)
    measured: list[tuple[float, ...]] = []
    recalls: list[list[float]] = []
    for record in records:
        network = load_dgn(record)
        picks = record.picks()[name]
        measured.append((*_diminishing(network, table), same_sets(network, table, picks)))
        recalls.append([float(hits_at(k, picks, gold).macro.recall) for k in KS])
    return Regime(
        variant,
        _start_of(records[0]),
        {k: Spread.of([of[place] for of in recalls]) for place, k in enumerate(KS)},
        *(Spread.of(values) for values in zip(*measured, strict=True)),
    )


def load_dgn(record: RunRecord) -> DifferentiableGreedyNetwork:
    """The network of a run."""
    network = load_network(record.folder)
    assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
    return network


def same_sets(network: DifferentiableGreedyNetwork, table: PooledTable, picks: Picks) -> float:
    """The share of the claims whose first 5 passages are those of a ranking by the first layer."""
    ranked = ranked_picks(network, table)
    sets = [[frozenset(row[:5].tolist()) for row in of] for of in (picks, ranked)]
    return sum(a == b for a, b in zip(*sets, strict=True)) / len(table)


@torch.no_grad()
def _diminishing(
    network: DifferentiableGreedyNetwork, table: PooledTable
) -> tuple[float, float, float]:
    """f({first}), and the share of its gain that the second pick keeps and its deviation."""
    network.eval()
    alone: list[NDArray[np.float64]] = []
    kept: list[NDArray[np.float64]] = []
    uneven: list[NDArray[np.float64]] = []
    for batch in PooledBatches(table, _BATCH_SIZE, 0, to_device("cpu")).once():
        objective, items = network.encode(batch.x, batch.mask)
        empty = objective.empty(items)
        gains = torch.where(batch.mask, objective.gains(items, empty), 0.0)
        first = gains.argmax(dim=1, keepdim=True)
        member = torch.zeros_like(gains).scatter(1, first, 1.0)
        after = objective.gains(items, objective.add(items, empty, member))
        others = batch.mask & (member == 0) & (gains > 0)
        second = torch.where(others, after, -torch.inf).argmax(dim=1, keepdim=True)
        share = np.asarray(torch.where(others, after / gains.clamp(min=1e-30), torch.nan).double())
        alone.append(np.asarray(gains.max(dim=1).values.double()))
        has_second = np.asarray(others.any(dim=1))
        kept.append(np.take_along_axis(share, np.asarray(second), axis=1)[has_second, 0])
        several = np.asarray(others.sum(dim=1) > 1)
        uneven.append(np.nanstd(share[several], axis=1))
    means = [float(np.concatenate(part).mean()) for part in (alone, kept, uneven)]
    return means[0], means[1], means[2]


def _start_of(record: RunRecord) -> str:
    defaults = PooledSettings()
    settings = {**asdict(defaults), **record.settings}
    return (
        f"α {settings['weights_start']:g}, scale {settings['scale']:g}, {settings['concave']}, "
        f"τ {settings['temperature']:g}"
    )
