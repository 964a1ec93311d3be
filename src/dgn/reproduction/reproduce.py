"""The whole reproduction: prepare, train, measure, report."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from dgn.data.batches import ClaimBatches
from dgn.data.feature_table import FeatureTable
from dgn.errors import InvalidInput
from dgn.evaluation import (
    ContestResult,
    PairedComparison,
    paired_comparison,
    run_contest,
    scores_at,
)
from dgn.evaluation.contenders import (
    Bm25,
    Contender,
    CosineTopK,
    FirstSentences,
    Questions,
    TfIdf,
    UntrainedGreedy,
)
from dgn.evaluation.contenders.base import Picks
from dgn.evaluation.contest import recalls_at
from dgn.reproduction.analysis import (
    Proofs,
    SoftGap,
    accepted_share,
    prove,
    similarity_of_picks,
    soft_gap,
)
from dgn.reproduction.layout import DataLayout, find_layout
from dgn.reproduction.paper import KS
from dgn.reproduction.plan import POSITIVE_WEIGHTS, TEMPERATURES, Effort, PlannedRun, make_plan
from dgn.reproduction.prepare import prepare
from dgn.reproduction.results import (
    EpochCurve,
    Spread,
    StudyPoint,
    TableRow,
    epoch_curve,
    study_points,
    table_row,
)
from dgn.reproduction.runner import TrainingData, train_all
from dgn.reproduction.stories import Story, find_stories
from dgn.training import build_network, load_network, pick_all, placed_on
from dgn.training.contender import TrainedNetwork
from dgn.training.model_folder import read_description
from dgn.training.run_folder import read_summary
from dgn.unfolding import DifferentiableGreedyNetwork

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
    """All numbers of the report. second: the rows on the second vectors, untrained and trained."""

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
    """Do whatever is not done yet, and measure. The report is `write_report`'s."""
    if (request.out / "config.json").exists():
        raise InvalidInput(
            "out", found=f"a run of dgn train in {request.out}", allowed="a folder of its own"
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
    second_inputs = prepared.second.vectors.dimension
    plan = make_plan(request.effort, prepared.training_claims, second_inputs)
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
    results = _contest(report, _greedy_scale(prepared.choose), _trained(plan, runs, report))
    second = _second_contest(plan, runs, prepared.second, _greedy_scale(prepared.second_choose))
    on_progress("measuring", None)
    network = load_network(runs / _first_of(plan, "DGN").folder)
    assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
    table = report.vectors
    return Reproduction(
        request,
        layout,
        prepared.training_claims,
        len(report.examples),
        float(table.lengths.mean()),
        tuple(_row(name, group, report) for name, group in results.items()),
        tuple(_row(name, group, prepared.second) for name, group in second.items()),
        _compared(results, report),
        _studies(plan, runs, network, table, prepared.data) if request.effort.studies else None,
        tuple(find_stories(network, results["DGN"][0].picks, results["Encoder"][0].picks, report)),
        (
            f"analysis: {platform.machine()} CPU, torch {torch.__version__}",
            *_training_machines(plan, runs),
        ),
    )


def _greedy_scale(questions: Questions) -> float:
    """The scale of the untrained greedy that does best on the claims that choose."""

    def mean_recall(scale: float) -> float:
        picks = UntrainedGreedy(scale).pick(questions, max(KS))
        return sum(float(recalls_at(k, questions, picks).mean()) for k in KS)

    return max(SCALES, key=mean_recall)


def _trained(
    plan: Sequence[PlannedRun], runs: Path, report: Questions
) -> dict[str, list[Contender]]:
    inputs = report.vectors.dimension
    return {
        name: [
            TrainedNetwork(name, load_network(runs / run.folder), inputs)
            for run in plan
            if (run.study, run.variant) == ("table", name)
        ]
        for name in TRAINED
    }


def _contest(
    report: Questions, scale: float, trained: dict[str, list[Contender]]
) -> dict[str, list[ContestResult]]:
    """Every contender's results by name; of trained ones, a result for each seed."""
    untrained: list[Contender] = [
        FirstSentences(),
        TfIdf(),
        TfIdf(bigrams=True),
        Bm25(),
        CosineTopK(),
        UntrainedGreedy(scale),
    ]
    if importlib.util.find_spec("pyversity") is not None:
        from dgn.evaluation.contenders.peers import Diversified

        untrained += [Diversified(name, value) for name, value in _DIVERSITIES.items()]
    groups = {contender.name: [contender] for contender in untrained} | trained
    return {name: run_contest(group, report, sorted(KS)) for name, group in groups.items()}


def _second_contest(
    plan: Sequence[PlannedRun], runs: Path, second: Questions, scale: float
) -> dict[str, list[ContestResult]]:
    inputs = second.vectors.dimension
    planned = [run for run in plan if run.second_vectors]
    described = read_description(runs / planned[0].folder).config
    start = build_network(described.network, inputs, described.fit.seed)
    best = UntrainedGreedy(scale)
    groups: dict[str, list[Contender]] = {
        "Top-k": [CosineTopK()],
        best.name: [best],
        # The same arithmetic as the trained ones: rounding decides ties between sentences.
        "the DGN's start": [TrainedNetwork("the DGN's start", start, inputs)],
        "DGN": [TrainedNetwork("DGN", load_network(runs / run.folder), inputs) for run in planned],
    }
    return {name: run_contest(group, second, sorted(KS)) for name, group in groups.items()}


def _row(name: str, results: Sequence[ContestResult], questions: Questions) -> TableRow:
    similar = [similarity_of_picks(questions, result.picks, 5) for result in results]
    return table_row(name, results, similar)


def _compared(
    results: dict[str, list[ContestResult]], report: Questions
) -> dict[str, dict[int, PairedComparison]]:
    """The DGN against every other, by each claim's recall, averaged over the seeds."""

    def recalls(group: Sequence[ContestResult], k: int) -> Picks:
        return np.mean([recalls_at(k, report, result.picks) for result in group], axis=0)

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
    table: FeatureTable,
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
    """The DGN's recall on claims that it learned from, file by file."""
    networks = [
        load_network(runs / run.folder)
        for run in plan
        if (run.study, run.variant) == ("table", "DGN")
    ]
    found: dict[str, dict[int, Spread]] = {}
    for folder in data.train:
        table = FeatureTable.load(folder)
        drawn = np.random.default_rng(0).permutation(len(table))[:_TRAINING_CLAIMS]
        some = ClaimBatches(table.of_claims(np.sort(drawn)), 256, 0, placed_on("cpu"))
        picked = [pick_all(network, some, max(KS)) for network in networks]
        found[Path(folder).name] = {
            k: Spread.of([scores_at(k, *picks).recall for picks in picked]) for k in KS
        }
    return found


def _dgn_runs_agree(plan: Sequence[PlannedRun], runs: Path) -> bool:
    """Whether DGNs trained with the extreme positive weights have the very same recalls."""
    points = [p for p in study_points(plan, "imbalance", runs) if p.variant.startswith("DGN")]
    return len({tuple(spread.mean for spread in point.recalls) for point in points}) == 1


def _first_of(plan: Sequence[PlannedRun], variant: str) -> PlannedRun:
    return next(run for run in plan if (run.study, run.variant) == ("table", variant))


def _training_machines(plan: Sequence[PlannedRun], runs: Path) -> tuple[str, ...]:
    found = [read_summary(runs / run.folder).machine for run in plan]
    return tuple(f"training: {name} ({found.count(name)} runs)" for name in dict.fromkeys(found))
