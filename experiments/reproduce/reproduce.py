"""The whole reproduction: prepare, train, measure, report."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from dgn.encoders import PooledEncoder
from dgn.encoders.pooled import PooledBatches, PooledTable
from dgn.errors import InvalidInput
from dgn.evaluation import (
    Baseline,
    BaselineResult,
    Bm25,
    CosineTopK,
    Diversified,
    EvaluationSet,
    FirstPassages,
    SelectorBaseline,
    TfIdf,
    run_comparison,
    untrained_greedy,
)
from dgn.metrics import PairedComparison, paired_comparison, scores_at
from dgn.selector import Selector
from dgn.text import PooledVectors, open_vectors
from dgn.training import RunConfig, build_network, load_network, placed_on, select_all
from dgn.training.report import read_summary
from dgn.unfolding import DifferentiableGreedyNetwork
from experiments.reproduce.analysis import (
    Proofs,
    SoftGap,
    accepted_share,
    prove,
    similarity_of_picks,
    soft_gap,
)
from experiments.reproduce.data import DataLayout, find_layout, prepare
from experiments.reproduce.paper import KS
from experiments.reproduce.plan import (
    POSITIVE_WEIGHTS,
    TEMPERATURES,
    Effort,
    PlannedRun,
    make_plan,
)
from experiments.reproduce.results import (
    EpochCurve,
    Spread,
    StudyPoint,
    TableRow,
    epoch_curve,
    study_points,
    table_row,
)
from experiments.reproduce.runner import TrainingData, config_of, train_all
from experiments.reproduce.stories import Story, find_stories

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
TRAINED = ("Encoder", "DeepEncoder", "DGN")
_PROOF_CLAIMS, _PROOF_LONGEST, _PROOF_K = 200, 20, 5
_TRAINING_CLAIMS = 2000
_DIVERSITIES = {"mmr": 0.3, "msd": 0.3, "dpp": 0.5}


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    data: Path
    vectors: str
    out: Path
    second_vectors: str = "wordllama"
    effort: Effort = field(default_factory=Effort)
    workers: int = 1
    device: str = "auto"


@dataclass(frozen=True)
class Studies:
    """Everything beyond the tables."""

    curves: tuple[EpochCurve, ...]
    temperature: tuple[StudyPoint, ...]
    imbalance: tuple[StudyPoint, ...]
    accepted: dict[float, Spread]
    dgn_weights_equal: bool
    ablation: tuple[StudyPoint, ...]
    claims: tuple[StudyPoint, ...]
    on_training_claims: dict[str, dict[int, Spread]]
    soft: tuple[SoftGap, ...]
    proofs: Proofs


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All numbers of the report; `second` has the rows on the second vectors."""

    request: Request
    layout: DataLayout
    training_claims: int
    reported_claims: int
    candidates: float
    rows: tuple[TableRow, ...]
    second: tuple[TableRow, ...]
    compared: dict[str, dict[int, PairedComparison]]
    studies: Studies | None
    stories: tuple[Story, ...]
    machines: tuple[str, ...]


def reproduce(
    request: Request,
    on_progress: Callable[[str, float | None], None] = lambda _doing, _share: None,
) -> Reproduction:
    """Do what is not done yet, and measure; `write_report` writes the report."""
    if (request.out / "config.json").exists():
        raise InvalidInput(
            "out", message=f"{request.out} contains a run of dgn train; choose another folder."
        )
    request.out.mkdir(parents=True, exist_ok=True)
    layout = find_layout(request.data, request.out, lambda doing: on_progress(doing, None))
    prepared = prepare(
        layout,
        request.vectors,
        request.second_vectors,
        request.out / "features",
        lambda doing: on_progress(doing, None),
    )
    vectors, second_vectors = open_vectors(request.vectors), open_vectors(request.second_vectors)
    plan = make_plan(request.effort, prepared.training_claims, second_vectors.dimension)
    runs = request.out / "runs"
    train_all(
        plan,
        prepared.data,
        runs,
        workers=request.workers,
        device=request.device,
        on_run=lambda run, done: on_progress(f"trained {run.folder}", done / len(plan)),
    )
    on_progress("comparing", None)
    report = prepared.report
    scale = _greedy_scale(prepared.choose, vectors)
    results = _compare_all(report, vectors, scale, _trained(plan, runs))
    second_scale = _greedy_scale(prepared.choose, second_vectors)
    second = _compare_second(plan, runs, report, second_vectors, second_scale, prepared.data)
    on_progress("measuring", None)
    network = load_network(runs / _first_of(plan, "DGN").folder)
    assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
    table = prepared.table
    return Reproduction(
        request,
        layout,
        prepared.training_claims,
        len(report.examples),
        float(table.lengths.mean()),
        tuple(_row(name, group, report, vectors) for name, group in results.items()),
        tuple(_row(name, group, report, second_vectors) for name, group in second.items()),
        _compared(results, report),
        _studies(plan, runs, network, table, prepared.data) if request.effort.studies else None,
        tuple(
            find_stories(
                network, results["DGN"][0].indices, results["Encoder"][0].indices, report, table
            )
        ),
        (
            f"analysis: {platform.machine()} CPU, torch {torch.__version__}",
            *_training_machines(plan, runs),
        ),
    )


def _greedy_scale(choose: EvaluationSet, vectors: PooledVectors) -> float:
    """The scale of untrained greedy that is best on the claims that choose."""

    def mean_recall(scale: float) -> float:
        indices = untrained_greedy(vectors, scale).select(choose.queries, max(KS))
        return sum(float(choose.recalls_at(k, indices).mean()) for k in KS)

    return max(SCALES, key=mean_recall)


def _trained(plan: Sequence[PlannedRun], runs: Path) -> dict[str, list[Baseline]]:
    return {
        name: [
            SelectorBaseline(name, Selector.from_pretrained(runs / run.folder))
            for run in plan
            if (run.study, run.variant) == ("table", name)
        ]
        for name in TRAINED
    }


def _compare_all(
    report: EvaluationSet,
    vectors: PooledVectors,
    scale: float,
    trained: dict[str, list[Baseline]],
) -> dict[str, list[BaselineResult]]:
    """The results of every baseline by name; a trained one has a result for each seed."""
    untrained: list[Baseline] = [
        FirstPassages(),
        TfIdf(),
        TfIdf(bigrams=True),
        Bm25(),
        CosineTopK(vectors),
        untrained_greedy(vectors, scale),
    ]
    if importlib.util.find_spec("pyversity") is not None:
        untrained += [Diversified(name, vectors, value) for name, value in _DIVERSITIES.items()]
    groups = {baseline.name: [baseline] for baseline in untrained} | trained
    return {name: run_comparison(group, report, sorted(KS)) for name, group in groups.items()}


def _compare_second(
    plan: Sequence[PlannedRun],
    runs: Path,
    report: EvaluationSet,
    vectors: PooledVectors,
    scale: float,
    data: TrainingData,
) -> dict[str, list[BaselineResult]]:
    planned = [run for run in plan if run.second_vectors]
    start = _start_of(config_of(planned[0], data, "cpu"), vectors)
    best = untrained_greedy(vectors, scale)
    groups: dict[str, list[Baseline]] = {
        "Top-k": [CosineTopK(vectors)],
        best.name: [best],
        # The same arithmetic as the trained ones: rounding decides ties between sentences.
        "start of the DGN": [SelectorBaseline("start of the DGN", start)],
        "DGN": [
            SelectorBaseline("DGN", Selector.from_pretrained(runs / run.folder)) for run in planned
        ],
    }
    return {name: run_comparison(group, report, sorted(KS)) for name, group in groups.items()}


def _start_of(config: RunConfig, vectors: PooledVectors) -> Selector:
    """A selector with the weights of a network at its start."""
    state = build_network(config, vectors.dimension).encoder.state_dict()
    weights = {name: weight.numpy() for name, weight in state.items()}
    return Selector(PooledEncoder(vectors, unit=True, weights=weights))


def _row(
    name: str,
    results: Sequence[BaselineResult],
    report: EvaluationSet,
    vectors: PooledVectors,
) -> TableRow:
    similar = [similarity_of_picks(report, result.indices, 5, vectors) for result in results]
    return table_row(name, results, similar)


def _compared(
    results: dict[str, list[BaselineResult]], report: EvaluationSet
) -> dict[str, dict[int, PairedComparison]]:
    """The DGN against every other one, by the recall of each claim, averaged over the seeds."""

    def recalls(group: Sequence[BaselineResult], k: int) -> NDArray[np.float64]:
        return np.mean([report.recalls_at(k, result.indices) for result in group], axis=0)

    return {
        name: {
            k: paired_comparison(recalls(results["DGN"], k), recalls(group, k), seed=0) for k in KS
        }
        for name, group in results.items()
        if name != "DGN"
    }


def _studies(
    plan: Sequence[PlannedRun],
    runs: Path,
    network: DifferentiableGreedyNetwork,
    table: PooledTable,
    data: TrainingData,
) -> Studies:
    at_7, seeds = 3, len({run.seed for run in plan if run.study == "learning-rate"})
    claims = study_points(plan, "claims", runs)
    whole = [point for point in study_points(plan, "table", runs) if point.variant == "DGN"]
    return Studies(
        curves=(
            epoch_curve(plan, "table", "DGN", runs, at_7, seeds),
            epoch_curve(plan, "learning-rate", "a tenth", runs, at_7, seeds),
        ),
        temperature=tuple(study_points(plan, "temperature", runs)),
        imbalance=tuple(study_points(plan, "imbalance", runs)),
        accepted={
            weight: Spread.of(
                [
                    accepted_share(load_network(runs / run.folder), table)
                    for run in plan
                    if (run.study, run.variant) == ("imbalance", f"Encoder {weight}")
                ]
            )
            for weight in POSITIVE_WEIGHTS
        },
        dgn_weights_equal=_dgn_runs_agree(plan, runs),
        ablation=(*whole, *study_points(plan, "ablation", runs)),
        claims=(*claims, *whole),
        on_training_claims=_on_training_claims(plan, runs, data),
        soft=tuple(soft_gap(network, table, 5, TEMPERATURES)),
        proofs=prove(network, table, _PROOF_K, _PROOF_CLAIMS, _PROOF_LONGEST),
    )


def _on_training_claims(
    plan: Sequence[PlannedRun], runs: Path, data: TrainingData
) -> dict[str, dict[int, Spread]]:
    """The recall of the DGN on claims that it learned from, file by file."""
    networks = [
        load_network(runs / run.folder)
        for run in plan
        if (run.study, run.variant) == ("table", "DGN")
    ]
    found: dict[str, dict[int, Spread]] = {}
    for folder in data.train:
        table = PooledTable.load(folder)
        drawn = np.random.default_rng(0).permutation(len(table))[:_TRAINING_CLAIMS]
        some = PooledBatches(table.rows(np.sort(drawn)), 256, 0, placed_on("cpu"))
        picked = [select_all(network, some, max(KS)) for network in networks]
        found[Path(folder).name] = {
            k: Spread.of([scores_at(k, *picks).recall for picks in picked]) for k in KS
        }
    return found


def _dgn_runs_agree(plan: Sequence[PlannedRun], runs: Path) -> bool:
    """Whether DGNs trained with the extreme positive weights have exactly the same recalls."""
    points = [p for p in study_points(plan, "imbalance", runs) if p.variant.startswith("DGN")]
    return len({tuple(spread.mean for spread in point.recalls) for point in points}) == 1


def _first_of(plan: Sequence[PlannedRun], variant: str) -> PlannedRun:
    return next(run for run in plan if (run.study, run.variant) == ("table", variant))


def _training_machines(plan: Sequence[PlannedRun], runs: Path) -> tuple[str, ...]:
    found = [read_summary(runs / run.folder).machine for run in plan]
    return tuple(f"training: {name} ({found.count(name)} runs)" for name in dict.fromkeys(found))
