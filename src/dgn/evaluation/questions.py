"""Questions from files: the examples, and their features, embedded once and kept in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dgn.data.feature_table import FeatureTable, made_with, read_key
from dgn.data.lines import Problems
from dgn.evaluation.contenders.base import Questions
from dgn.features import ExampleSource, FeatureOptions


def read_questions(
    source: ExampleSource,
    features: Path,
    options: FeatureOptions,
    problems: Problems | None = None,
    *,
    workers: int = 2,
    on_progress: Callable[[int, int], None] = lambda _claims, _sentences: None,
) -> Questions:
    """The questions of a file. features: the folder for their vectors, made if need be."""
    source.build_features(features, options, problems, workers=workers, on_progress=on_progress)
    # What is wrong with the file was reported while the features were made.
    examples = [example for example in source.examples(Problems(skip=True)) if example.candidates]
    return Questions(
        tuple(examples),
        FeatureTable.load(features),
        made_with(read_key(features)),
        tuple(source.without_pages()),
    )
