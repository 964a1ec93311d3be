"""Whether "the learned function hardly diminishes" is a property of where training starts.

    python -m experiments.starts OUT --claims 2076 --epochs 5 --seeds 5 --out FILE

OUT is the folder of a reproduction whose searches of `DGN` and `DGN, start searched` are finished.
The settings that they found, and the starts in between with the settings of `DGN`, are trained on
few claims, and the regime of each is measured on the reported claims. `experiments.reproduce
--studies start` does the same with all claims and all other scores, and takes much longer. The
networks are kept in OUT/runs/starts, for `experiments.stories`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from dgn.apps.cli.options import positive
from dgn.errors import DGNError, InvalidInput
from dgn.files import write_atomically
from dgn.learn import Trainer, build_network, select_all, to_device
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.networks import DifferentiableGreedyNetwork, SelectionNetwork
from dgn.learn.setup import batches_of, read_tables
from experiments.reproduce.analysis import Picks
from experiments.reproduce.candidates import varied
from experiments.reproduce.data import FeatureFolders
from experiments.reproduce.plan import PAPER, STARTS, PlannedRun
from experiments.reproduce.regime import (
    Regime,
    regime_of_networks,
    regime_table,
    start_of,
)
from experiments.reproduce.results import read_run
from experiments.reproduce.runner import LARGEST_K, config_of, save_network

VALIDATION = 300
"""So many of the claims that choose choose the epoch: the first ones."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.starts", description=__doc__)
    parser.add_argument("reproduction", type=Path, metavar="OUT")
    parser.add_argument("--claims", type=positive, default=2076, help="to learn from, per seed")
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        measured = _Measured(options)
        for line in measured.run():
            print(line, flush=True)
    except DGNError as error:
        print(f"starts: {error}", file=sys.stderr)
        return 1
    return 0


class _Measured:
    """Trains every start with every seed; the output is written again after each of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        out: Path = options.reproduction
        self._folders, self._runs = FeatureFolders.under(out / "features" / PAPER), out / "runs"
        self._report = PooledTable.load(self._folders.report)
        best, self._trials = best_of(out, "DGN")
        searched, _ = best_of(out, "DGN, start searched")
        self._variants: dict[str, dict[str, Any]] = {
            "DGN, the paper's start": best,
            **{name: {**best, **start} for name, start in STARTS.items()},
            "DGN, start searched": searched,
        }
        self._networks: dict[str, list[tuple[DifferentiableGreedyNetwork, Picks]]] = {}

    def run(self) -> Iterator[str]:
        """Train, seed by seed; yields what was done."""
        for seed in range(self._options.seeds):
            for name, settings in self._variants.items():
                started = time.perf_counter()
                few = few_claims(settings, self._options.claims, self._options.epochs)
                run = PlannedRun("starts", name, seed, PAPER, few)
                network = train_few(run, self._folders, self._runs / run.folder)
                assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
                found = (network, picks_on(network, self._report))
                self._networks.setdefault(name, []).append(found)
                yield f"{name}, seed {seed}: {time.perf_counter() - started:.0f} s"
            self._write(seed + 1)

    def _write(self, seeds: int) -> None:
        regimes: list[Regime] = [
            regime_of_networks(name, start_of(self._variants[name]), networks, self._report)
            for name, networks in self._networks.items()
        ]
        options = self._options
        lines = [
            "# Where the DGN starts",
            "",
            f"`python -m experiments.starts OUT --claims {options.claims} --epochs "
            f"{options.epochs} --seeds {options.seeds} --out FILE`",
            "",
            f"{seeds} seeds, each with its own {options.claims:,} claims to learn from, "
            f"{options.epochs} epochs; the first {VALIDATION} claims that choose decide which "
            "epoch is kept, and "
            f"{len(self._report):,} other claims are reported (macro recall, mean ± standard "
            f"deviation over seeds). Searches: {self._trials} trials each, with "
            f"{self._variants['DGN, start searched'].get('max_queries', 'all')} claims and "
            f"{self._variants['DGN, start searched']['epochs']} epochs. The starts in between have "
            "the learning rate and the width that the search of DGN found; they were not tuned.",
            "",
            f"{platform.machine()} CPU, torch {torch.__version__}.",
            "",
            *regime_table(regimes),
            *(f"- {name}: {json.dumps(settings)}" for name, settings in self._variants.items()),
        ]
        write_atomically(options.out, "\n".join(lines) + "\n")


def few_claims(settings: Mapping[str, Any], claims: int, epochs: int) -> dict[str, Any]:
    """The settings of a run with few claims and epochs."""
    batch_size = 2 ** max(2, round(np.log2(claims / 64)))
    few = {"max_queries": claims, "epochs": epochs, "patience": 0, "batch_size": batch_size}
    return {**settings, **few}


def train_few(run: PlannedRun, folders: FeatureFolders, folder: Path) -> SelectionNetwork:
    """Train a run; the first of the claims that choose choose its epoch.

    Args:
        run: The run.
        folders: The features.
        folder: Where the model is kept.
    """
    config = config_of(run, {PAPER: folders}, "cpu")
    train, choose = (cast("PooledTable", one) for one in read_tables(config))
    choose = choose.rows(np.arange(min(VALIDATION, len(choose))))
    network, cpu = build_network(config, train.dimension), torch.device("cpu")
    learn, validate = (
        batches_of(varied(one, run.candidates), config, cpu) for one in (train, choose)
    )
    Trainer(network, learn, validate, config.fit).run()
    folder.mkdir(parents=True, exist_ok=True)
    save_network(folder, network, config, train.dimension)
    return network


def picks_on(network: SelectionNetwork, table: PooledTable) -> Picks:
    """What a network selects from the claims of a table."""
    return select_all(network, PooledBatches(table, 256, 0, to_device("cpu")), LARGEST_K)[0]


def best_of(out: Path, model: str) -> tuple[dict[str, Any], int]:
    """The settings of the best trial of a search, and the number of trials."""
    name = model.replace(", ", "--").replace(" ", "-")
    records = [
        read_run(path.parent)
        for path in sorted((out / "runs" / "search").glob(f"{name}-[0-9][0-9]-seed0/run.json"))
    ]
    if not records:
        raise InvalidInput("out", message=f"{out} has no finished search of {model}.")
    return max(records, key=lambda record: record.best.recall).settings, len(records)


if __name__ == "__main__":
    sys.exit(main())
