"""The features that a reproduction needs, all under one folder, made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dgn.data.feature_table import FeatureTable
from dgn.evaluation.contenders import Questions
from dgn.evaluation.questions import read_questions
from dgn.features import ExampleSource, FeatureOptions
from dgn.reproduction.layout import DataLayout
from dgn.reproduction.runner import TrainingData


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that training and analysis read. second: the report's questions in second vectors."""

    data: TrainingData
    training_claims: int
    report: Questions
    second: Questions


def prepare(
    layout: DataLayout,
    vectors: str,
    second_vectors: str,
    folder: Path,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Prepared:
    """Embed whatever is not embedded yet; vectors are scaled to length 1."""

    def embed(source: ExampleSource, kind: str, name: str) -> str:
        made = folder / kind / name
        options = FeatureOptions(vectors if kind == "first" else second_vectors, unit=True)
        on_progress(f"embedding {name} ({options.vectors})")
        source.build_features(made, options)
        return str(made)

    folders = {
        kind: (
            tuple(embed(source, kind, name) for name, source in layout.train.items()),
            embed(layout.choose, kind, "choose"),
        )
        for kind in ("first", "second")
    }
    questions = {
        kind: read_questions(
            layout.report,
            Path(folders[kind][1]) if layout.reports_what_chose else folder / kind / "report",
            FeatureOptions(vectors if kind == "first" else second_vectors, unit=True),
        )
        for kind in ("first", "second")
    }
    return Prepared(
        TrainingData(*folders["first"], *folders["second"]),
        sum(len(FeatureTable.load(made)) for made in folders["first"][0]),
        questions["first"],
        questions["second"],
    )
