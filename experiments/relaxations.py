r"""The relaxations side by side: `python -m experiments.relaxations DATA --out FILE`.

Two benchmarks. "fever": claims of FEVER with complete evidence (DATA/fever-eraser), the pages of
the claims as candidates, pooled vectors as in the paper. "generated": the problem of
experiments/synthetic.py, where strong statements are repeated and only a set function can know it.

Every relaxation gets the same search: the same trials, drawn once, with its own arguments at their
defaults. A trial is trained on TRAIN queries, and the recall on the queries that choose decides its
epoch and between the trials. The best trial is then trained with each seed, which draws the
training queries, their order and the noise, and is reported on queries that chose nothing. The
p-values are of paired permutation tests against softmax on the mean over seeds of every query,
corrected for all tests of the table (Holm).
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.data import Batches, Dataset, DenseBatches
from dgn.evaluation.metrics import hits_at, paired_comparison
from dgn.files import write_atomically
from dgn.learn import (
    DifferentiableGreedyNetwork,
    FitConfig,
    LayerwiseCrossEntropy,
    UnfoldedGreedy,
    fit,
    select_all,
    to_device,
)
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled import PooledFamily, PooledSettings
from dgn.learn.families.pooled_table import PooledTable
from dgn.learn.features import build_features
from dgn.learn.named_parts import RELAXATIONS
from experiments.synthetic import SyntheticClaims, make_problem

KS = (1, 3, 5, 7)
_LAYERS, _BATCH = 5, 64
_SEARCH_SEED, _FAMILY = 0, PooledFamily()
_RANGES = {"learning_rate": (1e-4, 1e-2), "temperature": (0.1, 10.0), "scale": (1.0, 30.0)}
_ASSIGNMENTS = ("matched", "set")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Queries to learn from, queries that choose, and queries that report.

    Attributes:
        name: Its name.
        pool: What the training queries are drawn from.
        choose: Chooses epochs and trials.
        report: Chooses nothing.
        inputs: The dimension of the inputs.
    """

    name: str
    pool: Any
    choose: Any
    report: Any
    inputs: int

    def batches(self, part: Any, seed: int = 0) -> Batches:
        """A part of the queries, batch by batch."""
        if isinstance(part, PooledTable):
            return _FAMILY.batches(part, _BATCH, seed, to_device("cpu"))
        return DenseBatches(part.x, part.gold, part.mask, _BATCH, seed, to_device("cpu"))

    def drawn(self, count: int, seed: int) -> Batches:
        """Some of the training queries, drawn by the seed."""
        random = np.random.default_rng(seed)
        rows = np.sort(random.permutation(len(self.pool))[:count])
        return self.batches(_rows_of(self.pool, rows), seed)


@dataclass(frozen=True)
class Trial:
    """Settings that a search tries."""

    learning_rate: float
    temperature: float
    scale: float
    assignment: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, train, compare, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.relaxations", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with fever-eraser")
    parser.add_argument("--work", type=Path, required=True, help="folder for the features")
    parser.add_argument("--out", type=Path, help="write the table to this file")
    parser.add_argument("--benchmarks", nargs="+", default=["fever", "generated"])
    parser.add_argument("--relaxations", nargs="+", default=list(RELAXATIONS.names))
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", type=int, default=1000, help="training queries of a run")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    lines = ["python -m experiments.relaxations " + " ".join(_shown(options)), ""]
    found = {
        name: _measure(benchmark_of(name, options.data, options.work), options)
        for name in options.benchmarks
    }
    lines += _table(found, options.relaxations)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        write_atomically(options.out, text)
    return 0


def benchmark_of(name: str, data: Path, work: Path) -> Benchmark:
    """A benchmark by name; training pages, choosing pages and reporting pages are disjoint."""
    if name == "generated":
        problem = make_problem(0, train=4000, validation=400, test=1000)
        return Benchmark(name, problem.train, problem.validation, problem.test, 64)
    folder = data / "fever-eraser"
    tables: list[PooledTable] = []
    for part in ("train", "dev"):
        made = work / part
        build_features(
            Dataset(folder / f"{part}.jsonl", folder / "docs"), made, FeatureOptions(unit=True)
        )
        tables.append(PooledTable.load(made))
    train, report = tables
    # A page is known by its first sentence, so that no page both teaches and chooses.
    firsts = [zlib.crc32(train.passages[i].tobytes()) for i in train.candidates[train.offsets[:-1]]]
    chooses = np.array([first % 8 == 0 for first in firsts])
    return Benchmark(
        name,
        train.rows(np.flatnonzero(~chooses)),
        train.rows(np.flatnonzero(chooses)),
        report,
        train.dimension,
    )


def _measure(benchmark: Benchmark, options: argparse.Namespace) -> dict[str, Any]:
    """What each relaxation reaches, query by query, after its search."""
    print(
        f"{benchmark.name}: {len(benchmark.pool)} to draw from, {len(benchmark.choose)} choose, "
        f"{len(benchmark.report)} report",
        file=sys.stderr,
    )
    trials = _trials(options.trials)
    found: dict[str, Any] = {}
    for name in options.relaxations:
        began = time.perf_counter()
        tried = [_train(benchmark, name, one, _SEARCH_SEED, options)[1] for one in trials]
        seconds = (time.perf_counter() - began) / len(trials)
        best = trials[int(np.argmax(tried))]
        seeds = range(1, options.seeds + 1)  # none of them is that of the search
        recalls = np.stack(
            [_recalls(benchmark, _train(benchmark, name, best, s, options)[0]) for s in seeds]
        )
        found[name] = {"recalls": recalls, "best": best, "tried": tried, "seconds": seconds}
        means = " / ".join(f"{mean:.3f}" for mean in recalls.mean(axis=(0, 1)))
        print(f"  {name:<18} {means}  {best}  {seconds:.1f} s a trial", file=sys.stderr, flush=True)
    start = [_start(benchmark, one) for one in trials]
    best_start = max(start, key=lambda network: _mean_recall(benchmark, network))
    found["untrained"] = {"recalls": _recalls(benchmark, best_start)[None]}
    return found


def _trials(count: int) -> list[Trial]:
    """The same for every relaxation."""
    random = np.random.default_rng(_SEARCH_SEED)
    trials: list[Trial] = []
    for _ in range(count):
        drawn = {
            name: float(f"{math.exp(random.uniform(math.log(low), math.log(high))):.3g}")
            for name, (low, high) in _RANGES.items()
        }
        assignment = _ASSIGNMENTS[int(random.integers(len(_ASSIGNMENTS)))]
        trials.append(Trial(**drawn, assignment=assignment))
    return trials


def _start(
    benchmark: Benchmark, trial: Trial, relaxation: str = "softmax"
) -> DifferentiableGreedyNetwork:
    """A network that is exactly untrained greedy."""
    settings = PooledSettings(widths=(benchmark.inputs,), start="identity", scale=trial.scale)
    encoder = _FAMILY.module("dgn", settings, benchmark.inputs, 0.0, 0)
    layers = UnfoldedGreedy(_LAYERS, relaxation=RELAXATIONS.build(relaxation))
    return DifferentiableGreedyNetwork(encoder, layers, LayerwiseCrossEntropy(trial.assignment))


def _train(
    benchmark: Benchmark, relaxation: str, trial: Trial, seed: int, options: argparse.Namespace
) -> tuple[DifferentiableGreedyNetwork, float]:
    """The trained network, and its mean recall on the queries that choose."""
    network = _start(benchmark, trial, relaxation)
    config = FitConfig(
        epochs=options.epochs,
        learning_rate=trial.learning_rate,
        temperature=trial.temperature,
        eval_ks=KS,
        seed=seed,
    )
    train = benchmark.drawn(options.train, seed)
    reports = fit(network, train, benchmark.batches(benchmark.choose), config)
    return network, max(report.recall for report in reports)


def _recalls(benchmark: Benchmark, network: DifferentiableGreedyNetwork) -> NDArray[np.float64]:
    """[queries, KS], on the queries that report."""
    chosen, gold = select_all(network, benchmark.batches(benchmark.report), max(KS))
    return np.stack([hits_at(k, chosen, gold).recalls for k in KS], axis=1)


def _mean_recall(benchmark: Benchmark, network: DifferentiableGreedyNetwork) -> float:
    """On the queries that choose."""
    chosen, gold = select_all(network, benchmark.batches(benchmark.choose), max(KS))
    return float(np.mean([hits_at(k, chosen, gold).macro.recall for k in KS]))


def _rows_of(pool: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(pool, PooledTable):
        return pool.rows(rows)
    arrays = {name: getattr(pool, name)[rows] for name in ("x", "mask", "gold", "facet")}
    return SyntheticClaims(**arrays, claim_facets=tuple(pool.claim_facets[i] for i in rows))


def _table(found: dict[str, dict[str, Any]], names: Sequence[str]) -> list[str]:
    """The recall of every relaxation, and its difference to softmax with corrected p-values."""
    tests: dict[tuple[str, str, int], Any] = {
        (benchmark, name, k): paired_comparison(
            *(of[one]["recalls"].mean(axis=0)[:, place] for one in (name, "softmax")), seed=0
        )
        for benchmark, of in found.items()
        if "softmax" in of
        for name in names
        if name != "softmax"
        for place, k in enumerate(KS)
    }
    p_values = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    lines: list[str] = []
    for benchmark, of in found.items():
        lines += [
            f"{benchmark}: recall at {' / '.join(map(str, KS))} (standard deviation over seeds); "
            "difference to softmax (corrected p)"
        ]
        for name in ("untrained", *names):
            recalls = of[name]["recalls"].mean(axis=1)  # [seeds, KS]
            spread = recalls.std(axis=0, ddof=1) if len(recalls) > 1 else np.zeros(len(KS))
            shown = "  ".join(
                f"{m:.3f} ({s:.3f})" for m, s in zip(recalls.mean(axis=0), spread, strict=True)
            )
            line = f"  {name:<18} {shown}"
            if (benchmark, name, KS[0]) in tests:
                line += "   " + "  ".join(
                    f"{tests[benchmark, name, k].difference.mean:+.3f} "
                    f"({p_values[benchmark, name, k]:.3f})"
                    for k in KS
                )
            lines.append(line)
        lines.append("  chosen trials, with the recall of all trials on the queries that choose:")
        for name in names:
            best, tried = of[name]["best"], of[name]["tried"]
            settings = ", ".join(f"{k} {v}" for k, v in dataclasses.asdict(best).items())
            lines.append(
                f"  {name:<18} {settings}; {min(tried):.3f} to {max(tried):.3f}, "
                f"median {np.median(tried):.3f}; {of[name]['seconds']:.1f} s a trial"
            )
        lines.append("")
    lines.append(f"{len(tests)} tests; p-values after Holm's correction for all of them.")
    return lines


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values after Holm's correction: below 0.05, all of them together err in 5%."""
    order = np.argsort(p_values)
    corrected = np.zeros(len(p_values))
    highest = 0.0
    for rank, index in enumerate(order.tolist()):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected.tolist()


def _shown(options: argparse.Namespace) -> list[str]:
    names = ("trials", "seeds", "train", "epochs")
    return [options.data.name, *(f"--{name} {getattr(options, name)}" for name in names)]


if __name__ == "__main__":
    sys.exit(main())
