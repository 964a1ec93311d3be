"""The numbers of a reproduction, collected from its runs: small records, ready for JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgn.evaluation import BaselineResult
from dgn.training.report import read_metrics, read_summary
from experiments.reproduce.plan import PlannedRun


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, with its standard deviation (0 for a single value)."""

    mean: float
    sd: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one value per seed."""
        sd = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.mean(values), sd, len(values))

    def __str__(self) -> str:
        mean = f"{self.mean:.3f}".removeprefix("0")
        return mean if self.count == 1 else mean + f" ±{self.sd:.3f}".replace("0.", ".")


@dataclass(frozen=True)
class TableRow:
    """One baseline, over its seeds: for each k, the three scores of the paper (macro)."""

    name: str
    parameters: int
    recall: dict[int, Spread]
    precision: dict[int, Spread]
    f1: dict[int, Spread]
    micro_recall: dict[int, Spread]
    fever_recall: Spread
    similarity: Spread


@dataclass(frozen=True)
class StudyPoint:
    """One variant of a study, over its seeds: validation recall of the best epoch at each k."""

    variant: str
    recalls: tuple[Spread, ...]
    mean: Spread


@dataclass(frozen=True)
class EpochCurve:
    """Validation recall at one k, epoch by epoch, the start first; one list per seed."""

    variant: str
    by_seed: tuple[tuple[float, ...], ...]


def table_row(
    name: str, results: Sequence[BaselineResult], similarities: Sequence[float]
) -> TableRow:
    """The same baseline with several seeds, as one row."""
    ks = [one.k for one in results[0].at]

    def spreads(kind: str, score: str) -> dict[int, Spread]:
        return {
            k: Spread.of([getattr(getattr(r.at[place], kind), score) for r in results])
            for place, k in enumerate(ks)
        }

    return TableRow(
        name,
        results[0].parameters,
        spreads("macro", "recall"),
        spreads("macro", "precision"),
        spreads("macro", "f1"),
        spreads("micro", "recall"),
        Spread.of([0.0 if r.fever is None else r.fever.recall for r in results]),
        Spread.of(similarities),
    )


def study_points(plan: Sequence[PlannedRun], study: str, runs: Path) -> list[StudyPoint]:
    """The variants of a study, in the order of the plan."""
    points: list[StudyPoint] = []
    for variant in dict.fromkeys(run.variant for run in plan if run.study == study):
        best = [
            read_metrics(runs / run.folder)[read_summary(runs / run.folder).best_epoch]
            for run in plan
            if (run.study, run.variant) == (study, variant)
        ]
        recalls = tuple(
            Spread.of([report.recalls[place] for report in best])
            for place in range(len(best[0].recalls))
        )
        points.append(StudyPoint(variant, recalls, Spread.of([report.recall for report in best])))
    return points


def epoch_curve(
    plan: Sequence[PlannedRun], study: str, variant: str, runs: Path, place: int, seeds: int
) -> EpochCurve:
    """Recall after every epoch; `place` is the position of k among the eval_ks of the runs."""
    chosen = [run for run in plan if (run.study, run.variant) == (study, variant)][:seeds]
    return EpochCurve(
        variant,
        tuple(
            tuple(report.recalls[place] for report in read_metrics(runs / run.folder))
            for run in chosen
        ),
    )
