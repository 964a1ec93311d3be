"""What a report is made of: the finished runs, the selections of every row, and their scores."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgn.evaluation import Baseline, Bm25, TfIdf
from dgn.evaluation.metrics import hits_at
from dgn.learn import DifferentiableGreedyNetwork
from dgn.text import Query
from experiments.paper.data import Layout, read_layout
from experiments.paper.features import (
    ONE_PAGE,
    PAPER,
    UNIT,
    ClaimTable,
    Embed,
    embedder,
    harder_sets,
    make_table,
)
from experiments.paper.measures import Spread, greedy_picks, top_k_picks
from experiments.paper.networks import Settings
from experiments.paper.plan import MODELS, Effort, plan_search, plan_tables, trials_of
from experiments.paper.training import KS, Picks, Record, Run, read_run, train_all

NAMES = {
    PAPER: ("Top-k", "Greedy", "DGN", "Encoder, listwise"),
    UNIT: ("Top-k, unit", "Greedy, unit", "DGN, tuned", "Encoder, listwise, tuned"),
}
"""For each kind of features: top-k, greedy, the DGN, and the encoder with the loss of the DGN."""

BEST_SCALE = "Greedy, best scale"
"""Greedy on the features of the paper, times the scale that is best on the claims that choose."""

SCALES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_DIVERSITIES = (0.1, 0.3, 0.5)
_STRATEGIES = ("mmr", "msd", "dpp")

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True, eq=False)
class Experiment:
    """The experiment in a folder: its data, its features and its runs.

    Attributes:
        data: The data folder.
        vectors: What embeds the texts.
        out: The folder of features, runs and report.
        effort: How much to train.
        given: Settings of models that are not searched, by name.
    """

    data: Path
    vectors: str
    out: Path
    effort: Effort = field(default_factory=Effort)
    given: dict[str, Settings] = field(default_factory=dict[str, Settings])

    @cached_property
    def layout(self) -> Layout:
        """The claims."""
        return read_layout(self.data)

    @cached_property
    def embedders(self) -> dict[str, Embed]:
        """What embeds the texts of the data, for each kind of features."""
        parts = (self.layout.learn, self.layout.choose, self.layout.report)
        texts = [text for part in parts for one in part for text in (one.text, *one.sentences)]
        return {kind: embedder(self.vectors, kind, texts) for kind in self.effort.kinds}

    def make_features(self, on_progress: Progress) -> None:
        """Embed what is not embedded yet."""
        for kind in self.effort.kinds:
            for name in ("learn", "choose", "report"):
                path = self.out / "features" / kind / f"{name}.npz"
                if not path.exists():
                    on_progress(f"embedding {name} ({kind})", None)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    examples = getattr(self.layout, name)
                    make_table(examples, self.embedders[kind], unit=kind == UNIT).save(path)

    def train(self, workers: int, device: str, on_progress: Progress) -> Results:
        """Train what is not trained yet."""
        features, runs = self.out / "features", self.out / "runs"
        learn = ClaimTable.load(features / self.effort.kinds[0] / "learn.npz")

        def train(plan: Sequence[Run]) -> None:
            def on_run(run: Run, done: int) -> None:
                on_progress(f"trained {run.folder}", done / len(plan))

            train_all(plan, features, runs, workers=workers, device=device, on_run=on_run)

        whole = plan_search(self.effort, len(learn), learn.claims.shape[1])
        search = [run for run in whole if run.variant[:-3] not in self.given]
        train(search)
        best = {
            name: self.given[name] if name in self.given else _best(trials_of(search, name), runs)
            for name in self.effort.models
            if not MODELS[name].like
        }
        tables = plan_tables(self.effort, len(learn), best)
        train(tables)
        return Results(self, (*search, *tables), best)


def _best(trials: Sequence[Run], runs: Path) -> Settings:
    """The settings of the trial with the highest mean recall on the claims that choose."""
    return max(trials, key=lambda run: read_run(runs / run.folder).best.recall).settings


@dataclass(frozen=True, eq=False)
class Results:
    """The finished runs of an experiment, and what follows from them.

    Attributes:
        experiment: The experiment.
        plan: Its runs.
        best: The settings of each model.
    """

    experiment: Experiment
    plan: tuple[Run, ...]
    best: dict[str, Settings]

    @property
    def effort(self) -> Effort:
        """How much was trained."""
        return self.experiment.effort

    def records(self, study: str, variant: str) -> list[Record]:
        """What the runs of a variant left, one for each seed."""
        return [
            read_run(self.experiment.out / "runs" / run.folder)
            for run in self.plan
            if (run.study, run.variant) == (study, variant)
        ]

    def variants(self, study: str) -> list[str]:
        """The variants of a study, in the order of the plan."""
        return list(dict.fromkeys(run.variant for run in self.plan if run.study == study))

    def network(self, record: Record) -> DifferentiableGreedyNetwork:
        """The DGN of a run."""
        inputs = next(iter(self.tables.values())).claims.shape[1]
        network = record.network(inputs)
        assert isinstance(network, DifferentiableGreedyNetwork)  # noqa: S101
        return network

    @cached_property
    def tables(self) -> dict[str, ClaimTable]:
        """The reported claims, for each kind of features."""
        return {kind: self.table(kind, "report") for kind in self.effort.kinds}

    def table(self, kind: str, part: str) -> ClaimTable:
        """The features of a part of the data."""
        return ClaimTable.load(self.experiment.out / "features" / kind / f"{part}.npz")

    @cached_property
    def any_table(self) -> ClaimTable:
        """The reported claims with any features: all kinds have the same candidates and gold."""
        return next(iter(self.tables.values()))

    @cached_property
    def scales(self) -> dict[str, float]:
        """For each kind, the scale of untrained greedy that is best on the claims that choose."""
        best: dict[str, float] = {}
        for kind in self.effort.kinds:
            table = self.table(kind, "choose")
            best[kind] = max(SCALES, key=lambda s: _mean_recall(table, greedy_picks(table, s)))
        return best

    def rows_of(self, kind: str) -> list[str]:
        """The rows on a kind of features."""
        top, greedy, *_ = NAMES[kind]
        return [top, greedy, *(name for name in self.effort.models if MODELS[name].kind == kind)]

    def picks_on(self, name: str, sets: dict[str, ClaimTable], of: str) -> list[Picks]:
        """What a row selects from one of the sets of reported claims, one for each seed."""
        for kind, (top, untrained, *_) in NAMES.items():
            if name == top:
                return [top_k_picks(sets[of])]
            if name == untrained:
                # The paper has no such number: its greedy is on X as it is.
                return [greedy_picks(sets[of], 1.0 if kind == PAPER else self.scales[kind])]
        return [record.picks()[of] for record in self.records("table", name)]

    @cached_property
    def picks(self) -> dict[str, list[Picks]]:
        """What every row selects from the reported claims, one for each seed."""
        picks = {name: [of] for name, of in self._peers().items()}
        for kind, table in self.tables.items():
            for name in self.rows_of(kind):
                picks[name] = self.picks_on(name, {ONE_PAGE: table}, ONE_PAGE)
            if kind == PAPER:
                picks[BEST_SCALE] = [greedy_picks(table, self.scales[kind])]
        return picks

    def score(self, name: str, k: int, average: str = "micro", score: str = "recall") -> Spread:
        """A score of a row on the reported claims, over its seeds."""
        gold = self.any_table.wanted
        values = [getattr(getattr(hits_at(k, of, gold), average), score) for of in self.picks[name]]
        return Spread.of(values)

    @cached_property
    def harder(self) -> dict[str, tuple[float, dict[str, dict[int, Spread]]]]:
        """By set: the number of candidates per claim, and micro recall by row and k."""
        found: dict[str, tuple[float, dict[str, dict[int, Spread]]]] = {}
        for kind, table in self.tables.items():
            sets = harder_sets(table)
            for of, harder in sets.items():
                _, by_name = found.setdefault(of, (float(harder.lengths.mean()), {}))
                for name in self.rows_of(kind):
                    picks, gold = self.picks_on(name, sets, of), harder.wanted
                    by_name[name] = {
                        k: Spread.of([hits_at(k, one, gold).micro.recall for one in picks])
                        for k in KS
                    }
        return found

    @property
    def machines(self) -> list[str]:
        """Where everything was measured and trained."""
        trained = [read_run(self.experiment.out / "runs" / run.folder).machine for run in self.plan]
        return [
            f"analysis: {platform.machine()} CPU, torch {torch.__version__}",
            *(f"training: {name} ({trained.count(name)} runs)" for name in dict.fromkeys(trained)),
        ]

    def _peers(self) -> dict[str, Picks]:
        """Peers that read the text: words, and the diversifiers with the diversity that is best."""
        queries = [Query.of(one.text, one.sentences) for one in self.experiment.layout.report]
        baselines: list[Baseline] = [TfIdf(), Bm25()]
        picks = {one.name: one.select(queries, max(KS)) for one in baselines}
        if importlib.util.find_spec("pyversity") is not None and UNIT in self.tables:
            choosing = self.table(UNIT, "choose")
            for name in _STRATEGIES:
                best = max(
                    _DIVERSITIES,
                    key=lambda value: _mean_recall(choosing, diversified(choosing, name, value)),
                )
                picks[f"{name.upper()} {best:g}"] = diversified(self.tables[UNIT], name, best)
        return picks


def diversified(table: ClaimTable, strategy: str, diversity: float) -> Picks:
    """What a diversifier of pyversity selects, by the cosine with the claim."""
    import pyversity

    diversify: Any = pyversity.diversify
    picks = np.full((len(table), max(KS)), -1, np.int64)
    for row in range(len(table)):
        unit = table.unit(row)
        chosen = diversify(
            unit,
            unit @ table.claims[row].astype(np.float32),
            k=min(max(KS), len(unit)),
            strategy=strategy,
            diversity=diversity,
        ).indices
        picks[row, : len(chosen)] = chosen
    return picks


def _mean_recall(table: ClaimTable, picks: Picks) -> float:
    return sum(float(hits_at(k, picks, table.wanted).macro.recall) for k in KS)
