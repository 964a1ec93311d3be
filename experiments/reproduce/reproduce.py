"""The whole reproduction: prepare, train, measure."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from dgn.data import Dataset, Problems
from dgn.errors import InvalidInput
from dgn.evaluation import STRATEGIES, Baseline, Bm25, Diversified, EvaluationSet, TfIdf
from dgn.evaluation.metrics import PairedComparison, hits_at, paired_comparison
from dgn.learn.families.pooled_table import PooledTable
from dgn.text import open_vectors
from experiments.reproduce.analysis import (
    Exchange,
    GoldSimilarity,
    GroupDifference,
    Picks,
    differences_by_group,
    exchanged,
    gold_of,
    gold_similarity,
    greedy_picks,
    mean_recalls,
    ranked_picks,
    similarity_of_picks,
    top_k_picks,
)
from experiments.reproduce.candidates import ONE_PAGE, harder_sets
from experiments.reproduce.data import (
    DataLayout,
    FeatureFolders,
    find_layout,
    make_features,
    skipped_rows,
)
from experiments.reproduce.paper import LARGEST_K
from experiments.reproduce.plan import (
    MODELS,
    PAPER,
    UNIT,
    Effort,
    trials_of,
)
from experiments.reproduce.regime import Regime, load_dgn, regime_of
from experiments.reproduce.results import (
    KS,
    Row,
    Spread,
    read_run,
    row_of,
)
from experiments.reproduce.studies import Studies, studies_of_runs
from experiments.reproduce.training import Trained, kinds_of, train_everything

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_DIVERSITIES = (0.1, 0.3, 0.5)
NAMES = {
    PAPER: ("Top-k", "Greedy", "DGN", "Encoder, listwise"),
    UNIT: ("Top-k, unit", "Greedy, unit", "DGN, tuned", "Encoder, listwise, tuned"),
}
"""For each kind of features: top-k, greedy, the DGN, and the encoder with the loss of the DGN."""

BEST_SCALE = "Greedy, best scale"
"""Greedy on the features of the paper, times the scale that is best on the claims that choose."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    data: Path
    vectors: str
    out: Path
    effort: Effort = field(default_factory=Effort)
    workers: int = 1
    device: str = "auto"
    skip_bad: bool = False


@dataclass(frozen=True)
class Searched:
    """The search of a model: validation recall of its trials (mean over k), and the best one."""

    trials: int
    recall: Spread
    best: float
    settings: dict[str, object]


@dataclass(frozen=True)
class Layers:
    """What the greedy layers add, on one kind of features.

    Attributes:
        groups: The DGN minus the encoder with the same loss, by groups of claims.
        ranked: By k, the DGN minus the same network without diversity: ranked by the gains of the
            first layer (seed 0).
        regimes: How strongly the function of each DGN diminishes.
        gold: How alike the gold passages are.
    """

    groups: tuple[GroupDifference, ...]
    ranked: dict[int, PairedComparison]
    regimes: tuple[Regime, ...]
    gold: GoldSimilarity


@dataclass(frozen=True)
class Harder:
    """The reported claims with more candidates: micro recall by model and k."""

    name: str
    candidates: float
    recall: dict[str, dict[int, Spread]]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All numbers of the report.

    Attributes:
        covered: The shares of the training claims and of the reported ones that have at most K gold
            passages.
        compared: The DGN of each kind of features against every other row on these features.
        exchanges: For each kind of features and k, what the DGN finds and greedy misses, and the
            opposite.
        skipped: The broken rows that were skipped.
    """

    request: Request
    layout: DataLayout
    training_claims: int
    reported_claims: int
    gold_per_claim: float
    covered: tuple[float, float]
    rows: tuple[Row, ...]
    compared: dict[str, dict[str, dict[int, PairedComparison]]]
    exchanges: dict[str, dict[int, Exchange]]
    layers: dict[str, Layers]
    harder: tuple[Harder, ...]
    searched: dict[str, Searched]
    studies: Studies | None
    skipped: tuple[str, ...]
    machines: tuple[str, ...]


def features(
    request: Request,
    on_progress: Callable[[str, float | None], None] = lambda _doing, _share: None,
) -> DataLayout:
    """Divide the data, and make the features that are not there yet."""
    if (request.out / "config.json").exists():
        raise InvalidInput(
            "out", message=f"{request.out} contains a run of dgn train; choose another folder."
        )
    request.out.mkdir(parents=True, exist_ok=True)
    layout = find_layout(
        request.data,
        request.out,
        lambda doing: on_progress(doing, None),
        skip_bad=request.skip_bad,
    )
    make_features(
        layout,
        request.vectors,
        request.out / "features",
        kinds_of(request.effort),
        lambda doing: on_progress(doing, None),
        skip_bad=request.skip_bad,
    )
    return layout


def reproduce(
    request: Request,
    on_progress: Callable[[str, float | None], None] = lambda _doing, _share: None,
) -> Reproduction:
    """Do what is not done yet, and measure; `write_report` writes the report."""
    layout = features(request, on_progress)
    effort = request.effort
    trained = train_everything(
        effort,
        request.out,
        workers=request.workers,
        device=request.device,
        on_progress=on_progress,
    )
    on_progress("measuring", None)
    folders = {
        kind: FeatureFolders.under(request.out / "features" / kind) for kind in kinds_of(effort)
    }
    tables = {kind: PooledTable.load(of.report) for kind, of in folders.items()}
    first = next(iter(folders.values()))
    choose, report = (
        _evaluation_set(dataset, folder, request.skip_bad)
        for dataset, folder in ((layout.choose, first.choose), (layout.report, first.report))
    )
    best_scales = {kind: _greedy_scale(request.out, kind) for kind in tables}
    # The paper has no such number: its greedy is on X as it is.
    scales = {kind: 1.0 if kind == PAPER else scale for kind, scale in best_scales.items()}
    picks = {name: [found] for name, found in _text_picks(choose, report, request.vectors).items()}
    names: dict[str, list[str]] = {}
    for kind, table in tables.items():
        top, greedy, *_ = NAMES[kind]
        picks |= {top: [top_k_picks(table)], greedy: [greedy_picks(table, scales[kind])]}
        if kind == PAPER:
            picks[BEST_SCALE] = [greedy_picks(table, best_scales[kind])]
        own = [name for name in effort.models if MODELS[name].features == kind]
        picks |= {
            name: [one.picks()[ONE_PAGE] for one in trained.records("table", name)] for name in own
        }
        names[kind] = [top, greedy, *own]
    table = next(iter(tables.values()))
    gold = gold_of(table)
    learned = PooledTable.join([PooledTable.load(folder) for folder in first.train])
    has_dgn = [kind for kind in tables if NAMES[kind][2] in names[kind]]
    return Reproduction(
        request,
        layout,
        trained.claims,
        len(table),
        float(gold.sum() / max(1, gold.any(axis=1).sum())),
        (_covered(learned), _covered(table)),
        tuple(_row(name, of, trained, table) for name, of in picks.items()),
        {kind: _compared(NAMES[kind][2], names[kind], picks, tables[kind]) for kind in has_dgn},
        {kind: _exchanges(*NAMES[kind][1:3], picks, tables[kind]) for kind in has_dgn},
        {kind: _layers(kind, picks, trained, tables[kind]) for kind in has_dgn},
        tuple(_harder(trained, tables, names, scales)),
        {name: _searched(trained, name) for name in effort.models},
        studies_of_runs(trained, tables[PAPER]) if effort.studies else None,
        skipped_rows(request.out),
        (
            f"analysis: {platform.machine()} CPU, torch {torch.__version__}",
            *_training_machines(trained),
        ),
    )


def _evaluation_set(dataset: Dataset, folder: str, skip_bad: bool) -> EvaluationSet:
    """The claims of a folder of features, with their texts."""
    found = EvaluationSet.of(dataset, Problems(skip=skip_bad))
    known = set(PooledTable.load(folder).ids.tolist())
    return EvaluationSet(tuple(one for one in found.examples if one.claim.id in known))


def _covered(table: PooledTable) -> float:
    """The share of the claims with gold that have at most K gold passages."""
    wanted = gold_of(table).sum(axis=1)
    return float((wanted[wanted > 0] <= LARGEST_K).mean())


def _greedy_scale(out: Path, kind: str) -> float:
    """The scale of untrained greedy that is best on the claims that choose."""
    table = PooledTable.load(FeatureFolders.under(out / "features" / kind).choose)
    gold = gold_of(table)

    def mean_recall(scale: float) -> float:
        found = greedy_picks(table, scale)
        return sum(float(hits_at(k, found, gold).macro.recall) for k in KS)

    return max(SCALES, key=mean_recall)


def _text_picks(choose: EvaluationSet, report: EvaluationSet, vectors: str) -> dict[str, Picks]:
    """Peers that read the text: words, and the diversifiers with the diversity that is best."""
    peers: list[Baseline] = [TfIdf(), Bm25()]
    if importlib.util.find_spec("pyversity") is not None:
        opened = open_vectors(vectors)
        for name in STRATEGIES:
            tried = [Diversified(name, opened, value) for value in _DIVERSITIES]
            peers.append(max(tried, key=lambda peer: _mean_recall(peer, choose)))
    return {peer.name: peer.select(report.queries, max(KS)) for peer in peers}


def _mean_recall(peer: Baseline, examples: EvaluationSet) -> float:
    found = peer.select(examples.queries, max(KS))
    return sum(float(examples.hits_at(k, found).macro.recall) for k in KS)


def _row(name: str, picks: Sequence[Picks], trained: Trained, table: PooledTable) -> Row:
    gold = gold_of(table)
    hits = [{k: hits_at(k, of, gold) for k in KS} for of in picks]
    similar = [similarity_of_picks(table, of, 5) for of in picks]
    records = trained.records("table", name)
    return row_of(name, records[0].parameters if records else 0, hits, similar)


def _compared(
    dgn: str, names: Sequence[str], picks: dict[str, list[Picks]], table: PooledTable
) -> dict[str, dict[int, PairedComparison]]:
    """The DGN against the others, by the recall of each claim, averaged over the seeds."""
    gold = gold_of(table)
    return {
        name: {
            k: paired_comparison(
                mean_recalls(k, picks[dgn], gold), mean_recalls(k, picks[name], gold), seed=0
            )
            for k in KS
        }
        for name in names
        if name != dgn
    }


def _exchanges(
    greedy: str, dgn: str, picks: dict[str, list[Picks]], table: PooledTable
) -> dict[int, Exchange]:
    gold = gold_of(table)
    return {k: exchanged(k, picks[greedy][0], picks[dgn], gold) for k in KS}


def _layers(
    kind: str, picks: dict[str, list[Picks]], trained: Trained, table: PooledTable
) -> Layers:
    _, _, dgn, encoder = NAMES[kind]
    ranked, gold = ranked_picks(load_dgn(trained.records("table", dgn)[0]), table), gold_of(table)
    own = picks[dgn][0]
    rows = [name for name in picks if name in MODELS and MODELS[name].is_dgn(kind)]
    variants = [("table", name) for name in rows]
    if kind == PAPER:
        variants += [("start", name) for name in trained.variants("start")]
    return Layers(
        differences_by_group(table, picks[dgn], picks[encoder]) if encoder in picks else (),
        {
            k: paired_comparison(
                mean_recalls(k, [own], gold), mean_recalls(k, [ranked], gold), seed=0
            )
            for k in KS
        },
        tuple(
            regime_of(name, trained.records(study, name), table, ONE_PAGE)
            for study, name in variants
        ),
        gold_similarity(table),
    )


def _harder(
    trained: Trained,
    tables: dict[str, PooledTable],
    names: dict[str, list[str]],
    scales: dict[str, float],
) -> list[Harder]:
    sets = {kind: harder_sets(table) for kind, table in tables.items()}
    found: list[Harder] = []
    for name, first in next(iter(sets.values())).items():
        recall: dict[str, dict[int, Spread]] = {}
        for kind, (top, greedy, *own) in names.items():
            table = sets[kind][name]
            gold = gold_of(table)
            picks = {top: [top_k_picks(table)], greedy: [greedy_picks(table, scales[kind])]}
            for model in own:
                picks[model] = [one.picks()[name] for one in trained.records("table", model)]
            recall |= {
                model: {k: Spread.of([hits_at(k, p, gold).micro.recall for p in of]) for k in KS}
                for model, of in picks.items()
            }
        found.append(Harder(name, float(first.lengths.mean()), recall))
    return found


def _searched(trained: Trained, name: str) -> Searched:
    trials = [read_run(trained.folder / run.folder) for run in trials_of(trained.plan, name)]
    recalls = [record.best.recall for record in trials]
    return Searched(len(trials), Spread.of(recalls), max(recalls), trained.best[name])


def _training_machines(trained: Trained) -> tuple[str, ...]:
    found = [read_run(trained.folder / run.folder).machine for run in trained.plan]
    return tuple(f"training: {name} ({found.count(name)} runs)" for name in dict.fromkeys(found))
