"""The paper's claim about class imbalance, with the imbalance in the data.

    python -m experiments.imbalance OUT --claims 1000 --epochs 5 --seeds 5 --out FILE

The paper calls the DGN much more robust to class imbalance than its encoders, which need a weight
for gold and are sensitive to it. Here the claims to learn from have one other passage for each gold
one, their own page, or four pages; the reported claims are the same for all. OUT is the folder of a
reproduction whose searches of the models are finished. `experiments.reproduce --studies imbalance`
does the same with all claims and several workers, and takes much longer.
"""

from __future__ import annotations

import argparse
import dataclasses
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from dgn.apps.cli.options import positive
from dgn.errors import DGNError
from dgn.evaluation.metrics import hits_at
from dgn.files import write_atomically
from dgn.learn import to_device
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from experiments.reproduce.analysis import gold_of
from experiments.reproduce.candidates import others_per_gold, varied
from experiments.reproduce.data import FeatureFolders
from experiments.reproduce.markdown import table
from experiments.reproduce.plan import IMBALANCES, PAPER, STUDY_MODELS, Effort, plan_tables
from experiments.reproduce.results import KS, Spread
from experiments.reproduce.runner import accepted_share
from experiments.starts import VALIDATION, best_of, few_claims, picks_on, train_few

_STUDY = "imbalance"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.imbalance", description=__doc__)
    parser.add_argument("reproduction", type=Path, metavar="OUT")
    parser.add_argument("--claims", type=positive, default=1000, help="to learn from, per seed")
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        for line in _measure(options):
            print(line, flush=True)
    except DGNError as error:
        print(f"imbalance: {error}", file=sys.stderr)
        return 1
    return 0


def _measure(options: argparse.Namespace) -> Iterator[str]:
    """Train, seed by seed; the output is written again after each seed."""
    out: Path = options.reproduction
    folders = FeatureFolders.under(out / "features" / PAPER)
    report = PooledTable.load(folders.report)
    gold, models = gold_of(report), STUDY_MODELS[_STUDY]
    found = {name: best_of(out, name) for name in models}
    best = {name: settings for name, (settings, _) in found.items()}
    effort = Effort(models, seeds=0, study_seeds=options.seeds, studies=(_STUDY,))
    recalls: dict[str, list[list[float]]] = {}
    accepted: dict[str, list[float]] = {}
    plan = plan_tables(effort, options.claims, best)
    for seed in range(options.seeds):
        for run in (one for one in plan if one.seed == seed):
            started = time.perf_counter()
            few = few_claims(run.settings, options.claims, options.epochs)
            small = dataclasses.replace(run, study="imbalance-few", settings=few)
            network = train_few(small, folders, out / "runs" / small.folder)
            picks = picks_on(network, report)
            of_run = [float(hits_at(k, picks, gold).micro.recall) for k in KS]
            recalls.setdefault(run.variant, []).append(of_run)
            share = accepted_share(network, PooledBatches(report, 256, 0, to_device("cpu")))
            if share is not None:
                accepted.setdefault(run.variant, []).append(share)
            yield f"{run.variant}, seed {seed}: {time.perf_counter() - started:.0f} s"
        trials = ", ".join(f"{name} {count}" for name, (_, count) in found.items())
        learned = PooledTable.join([PooledTable.load(folder) for folder in folders.train])
        others = {one: f"{others_per_gold(varied(learned, one)):.1f}" for one in IMBALANCES}
        lines = [
            "# Class imbalance in the data",
            "",
            f"`python -m experiments.imbalance OUT --claims {options.claims} --epochs "
            f"{options.epochs} --seeds {options.seeds} --out FILE`",
            "",
            f"{seed + 1} seeds, each with its own {options.claims:,} claims to learn from, "
            f"{options.epochs} epochs; the first {VALIDATION} claims that choose, with the same "
            f"imbalance, decide which epoch is kept. {len(report):,} other claims with their own "
            "page are reported, the same for all rows (micro recall, mean ± standard deviation "
            f"over seeds). Settings: the best trial of the searches of OUT ({trials} trials), on "
            "claims as they are. `no weight`: the pointwise Encoder whose loss counts gold once.",
            "",
            f"{platform.machine()} CPU, torch {torch.__version__}.",
            "",
            *table(
                ["model: candidates", "others per gold", *(f"k = {k}" for k in KS), "evidence"],
                [
                    (
                        name,
                        others[name.partition(": ")[2]],
                        *(Spread.of(values) for values in zip(*of, strict=True)),
                        Spread.of(accepted[name]) if name in accepted else "",
                    )
                    for name, of in recalls.items()
                ],
            ),
            "`evidence`: the share of the reported sentences that a pointwise encoder "
            "calls evidence (p > ½).",
        ]
        write_atomically(options.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
