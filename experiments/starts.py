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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from dgn.apps.cli.options import positive
from dgn.errors import DGNError, InvalidInput
from dgn.files import write_atomically
from dgn.learn import Trainer, build_network, select_all
from dgn.learn.families.pooled_table import PooledTable
from dgn.learn.networks import DifferentiableGreedyNetwork
from dgn.learn.setup import batches_of, read_tables
from experiments.reproduce.analysis import Picks
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

_VALIDATION = 300
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
        self._folders = FeatureFolders.under(out / "features" / PAPER)
        self._report = PooledTable.load(self._folders.report)
        best, self._trials = _best_of(out, "DGN")
        searched, _ = _best_of(out, "DGN, start searched")
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
                self._networks.setdefault(name, []).append(self._train(name, settings, seed))
                yield f"{name}, seed {seed}: {time.perf_counter() - started:.0f} s"
            self._write(seed + 1)

    def _train(
        self, name: str, settings: dict[str, Any], seed: int
    ) -> tuple[DifferentiableGreedyNetwork, Picks]:
        few = {"max_queries": self._options.claims, "epochs": self._options.epochs, "patience": 0}
        batch_size = 2 ** max(2, round(np.log2(self._options.claims / 64)))
        run = PlannedRun("", "", seed, PAPER, {**settings, **few, "batch_size": batch_size})
        config = config_of(run, {PAPER: self._folders}, "cpu")
        train, choose = read_tables(config)
        choose = cast("PooledTable", choose).rows(np.arange(min(_VALIDATION, len(choose))))
        network = build_network(config, train.dimension)
        assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
        cpu = torch.device("cpu")
        learn, validate, report = (
            batches_of(one, config, cpu) for one in (train, choose, self._report)
        )
        Trainer(network, learn, validate, config.fit).run()
        plain = "".join(c if c.isalnum() or c == "." else "-" for c in name)
        folder: Path = self._options.reproduction / "runs" / "starts" / f"{plain}-seed{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        save_network(folder, network, config, train.dimension)
        return network, select_all(network, report, LARGEST_K)[0]

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
            f"{options.epochs} epochs; the first {_VALIDATION} claims that choose decide which "
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


def _best_of(out: Path, model: str) -> tuple[dict[str, Any], int]:
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
