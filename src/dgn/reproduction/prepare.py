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
    """All that training and analysis read.

    report, choose: the questions that are reported, and those that chose. second, second_choose:
    the same in the second vectors.
    """

    data: TrainingData
    training_claims: int
    report: Questions
    choose: Questions
    second: Questions
    second_choose: Questions


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

    def ask(source: ExampleSource, kind: str, made: Path) -> Questions:
        options = FeatureOptions(vectors if kind == "first" else second_vectors, unit=True)
        return read_questions(source, made, options)

    choose = {kind: ask(layout.choose, kind, Path(folders[kind][1])) for kind in folders}
    report = (
        choose
        if layout.reports_what_chose
        else {kind: ask(layout.report, kind, folder / kind / "report") for kind in folders}
    )
    return Prepared(
        TrainingData(*folders["first"], *folders["second"]),
        sum(len(FeatureTable.load(made)) for made in folders["first"][0]),
        report["first"],
        choose["first"],
        report["second"],
        choose["second"],
    )
