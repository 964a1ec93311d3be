"""The numbers of a reproduction, collected from its runs: small records, ready for JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.evaluation.metrics import Hits
from dgn.learn import EpochReport
from experiments.reproduce.runner import PICKS, RUN

KS = (1, 3, 5, 7)


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


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a run left.

    Attributes:
        accepted: The share of passages that a pointwise encoder calls evidence.
        others_per_gold: The number of passages that are not gold, for each that is, in training.
    """

    folder: Path
    settings: dict[str, Any]
    best_epoch: int
    parameters: int
    machine: str
    accepted: float | None
    others_per_gold: float
    reports: tuple[EpochReport, ...]

    @property
    def best(self) -> EpochReport:
        """The report of the best epoch."""
        return self.reports[self.best_epoch]

    def picks(self) -> dict[str, NDArray[np.int64]]:
        """What it selected from the reported claims, and from the harder sets, by name."""
        with np.load(self.folder / PICKS) as found:
            return {name: found[name].astype(np.int64) for name in found.files}


def read_run(folder: Path) -> RunRecord:
    """Read what a run left."""
    found = json.loads((folder / RUN).read_text(encoding="utf-8"))
    reports = tuple(EpochReport.from_row(row) for row in found["reports"])
    return RunRecord(
        folder,
        found["settings"],
        found["best_epoch"],
        found["parameters"],
        found["machine"],
        found["accepted"],
        found["others_per_gold"],
        reports,
    )


@dataclass(frozen=True)
class Row:
    """One model of a table, over its seeds: for each k, the scores of the paper."""

    name: str
    parameters: int
    micro_recall: dict[int, Spread]
    micro_precision: dict[int, Spread]
    micro_f1: dict[int, Spread]
    macro_recall: dict[int, Spread]
    similarity: Spread


@dataclass(frozen=True)
class StudyPoint:
    """One variant of a study, over its seeds: recall of the best epoch at each k, macro."""

    variant: str
    recalls: tuple[Spread, ...]
    mean: Spread


@dataclass(frozen=True)
class EpochCurve:
    """Epoch by epoch, the start first; one list per seed."""

    variant: str
    recall_at_7: tuple[tuple[float, ...], ...]
    loss: tuple[tuple[float | None, ...], ...]
    validation_loss: tuple[tuple[float | None, ...], ...]


def row_of(
    name: str, parameters: int, hits: Sequence[dict[int, Hits]], similarities: Sequence[float]
) -> Row:
    """The same model with several seeds, as one row; `hits` has those of each seed by k."""

    def spreads(kind: str, score: str) -> dict[int, Spread]:
        return {k: Spread.of([getattr(getattr(of[k], kind), score) for of in hits]) for k in KS}

    return Row(
        name,
        parameters,
        spreads("micro", "recall"),
        spreads("micro", "precision"),
        spreads("micro", "f1"),
        spreads("macro", "recall"),
        Spread.of(similarities),
    )


def study_point(variant: str, records: Sequence[RunRecord]) -> StudyPoint:
    """A variant of a study."""
    best = [record.best for record in records]
    recalls = tuple(
        Spread.of([report.recalls[place] for report in best])
        for place in range(len(best[0].recalls))
    )
    return StudyPoint(variant, recalls, Spread.of([report.recall for report in best]))


def epoch_curve(variant: str, records: Sequence[RunRecord]) -> EpochCurve:
    """A variant, epoch by epoch."""
    at_7 = KS.index(7)
    return EpochCurve(
        variant,
        tuple(tuple(report.recalls[at_7] for report in one.reports) for one in records),
        tuple(tuple(report.loss for report in one.reports) for one in records),
        tuple(tuple(report.validation_loss for report in one.reports) for one in records),
    )
