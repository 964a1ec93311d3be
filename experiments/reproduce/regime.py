"""How strongly a trained function diminishes: the fingerprint that the paper's stories leave.

In its stories a sentence is worth f({v}) = 7 to 16, and one that repeats the first pick keeps .57
to .77 of that. The same numbers of a network of ours say whether its greedy layers do anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.evaluation.metrics import hits_at
from dgn.learn import load_network, to_device
from dgn.learn.families.pooled import PooledSettings
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.networks import DifferentiableGreedyNetwork
from experiments.reproduce.analysis import Picks, gold_of, ranked_picks
from experiments.reproduce.markdown import table as markdown_table
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
    networks = [(load_dgn(record), record.picks()[name]) for record in records]
    return regime_of_networks(variant, start_of(records[0].settings), networks, table)


def regime_of_networks(
    variant: str,
    settings: str,
    networks: Sequence[tuple[DifferentiableGreedyNetwork, Picks]],
    table: PooledTable,
) -> Regime:
    """The regime of networks of several seeds, each with what it selects from the claims."""
    gold = gold_of(table)
    recalls = [[float(hits_at(k, of, gold).macro.recall) for k in KS] for _, of in networks]
    measured = [(*_diminishing(one, table), _same_sets(one, table, of)) for one, of in networks]
    return Regime(
        variant,
        settings,
        {k: Spread.of([of[place] for of in recalls]) for place, k in enumerate(KS)},
        *(Spread.of(values) for values in zip(*measured, strict=True)),
    )


def regime_table(regimes: Sequence[Regime]) -> Iterator[str]:
    """The regimes as a table."""
    yield from markdown_table(
        ["", "start", *(f"k = {k}" for k in KS), "f({v})", "kept", "uneven", "same 5"],
        [
            (
                one.variant,
                one.settings,
                *(one.recall[k] for k in KS),
                f"{one.alone.mean:.1f} ±{one.alone.sd:.1f}",
                one.kept,
                one.uneven,
                f"{one.ranked.mean:.1%} ±{one.ranked.sd:.1%}",
            )
            for one in regimes
        ],
    )


def load_dgn(record: RunRecord) -> DifferentiableGreedyNetwork:
    """The network of a run."""
    network = load_network(record.folder)
    assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
    return network


def _same_sets(network: DifferentiableGreedyNetwork, table: PooledTable, picks: Picks) -> float:
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


def start_of(settings: Mapping[str, Any]) -> str:
    """Where a run starts, in words."""
    known = {**asdict(PooledSettings()), **settings}
    return (
        f"α {known['weights_start']:g}, scale {known['scale']:g}, {known['concave']}, "
        f"τ {known['temperature']:g}"
    )
