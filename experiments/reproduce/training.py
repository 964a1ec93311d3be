"""Everything that is trained: the search of each model, its seeds, and the studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgn.learn.families.pooled_table import PooledTable
from experiments.reproduce.data import FeatureFolders
from experiments.reproduce.plan import (
    MODELS,
    Effort,
    PlannedRun,
    plan_search,
    plan_tables,
    trials_of,
)
from experiments.reproduce.results import RunRecord, read_run
from experiments.reproduce.runner import train_all


@dataclass(frozen=True, eq=False)
class Trained:
    """All runs of a reproduction, finished.

    Attributes:
        folder: The folder of the runs.
        plan: The runs.
        claims: The number of training claims.
        best: The settings that the search of each model found.
    """

    folder: Path
    plan: tuple[PlannedRun, ...]
    claims: int
    best: dict[str, dict[str, Any]]

    def runs(self, study: str, variant: str) -> list[PlannedRun]:
        """The runs of a variant, one for each seed."""
        return [run for run in self.plan if (run.study, run.variant) == (study, variant)]

    def records(self, study: str, variant: str) -> list[RunRecord]:
        """What these runs left."""
        return [read_run(self.folder / run.folder) for run in self.runs(study, variant)]

    def variants(self, study: str) -> list[str]:
        """The variants of a study, in the order of the plan."""
        return list(dict.fromkeys(run.variant for run in self.plan if run.study == study))


def kinds_of(effort: Effort) -> tuple[str, ...]:
    """The kinds of features that the models need."""
    return tuple(dict.fromkeys(MODELS[name].features for name in effort.models))


def train_everything(
    effort: Effort,
    out: Path,
    *,
    workers: int,
    device: str,
    on_progress: Callable[[str, float | None], None] = lambda _doing, _share: None,
) -> Trained:
    """Train what is not trained yet; the features must be there.

    Args:
        effort: How much to train.
        out: The folder of the reproduction.
        workers: How many runs at a time.
        device: Where to train.
        on_progress: Called with what is done, and how much of it.
    """
    data = {kind: FeatureFolders.under(out / "features" / kind) for kind in kinds_of(effort)}
    first = next(iter(data.values()))
    claims = sum(len(PooledTable.load(folder)) for folder in first.train)
    inputs = PooledTable.load(first.choose).dimension
    runs = out / "runs"

    def train(plan: Sequence[PlannedRun]) -> None:
        train_all(
            plan,
            data,
            runs,
            workers=workers,
            device=device,
            on_run=lambda run, done: on_progress(f"trained {run.folder}", done / len(plan)),
        )

    search = plan_search(effort, claims, inputs)
    train(search)
    best = {name: best_settings(trials_of(search, name), runs) for name in effort.models}
    tables = plan_tables(effort, claims, best)
    train(tables)
    return Trained(runs, (*search, *tables), claims, best)


def best_settings(trials: Sequence[PlannedRun], runs: Path) -> dict[str, Any]:
    """The settings of the trial with the highest mean recall on the claims that choose."""
    by_recall: Mapping[float, PlannedRun] = {
        read_run(runs / run.folder).best.recall: run for run in reversed(trials)
    }
    return by_recall[max(by_recall)].settings
