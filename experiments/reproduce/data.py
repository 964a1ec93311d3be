"""The data of a reproduction: which files are for which purpose, and their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dgn.data import Dataset
from dgn.data.store import BuildProgress, build_store
from dgn.encoders import FeatureOptions, build_features
from dgn.encoders.pooled import PooledTable
from dgn.errors import InvalidInput
from dgn.evaluation import EvaluationSet
from experiments.reproduce.runner import TrainingData

_ALLOWED = (
    "claims as train*.jsonl and dev.jsonl (or paper_dev.jsonl, shared_task_dev.jsonl) with pages "
    "in docs/, wiki-pages/ or pages.db; or dev.jsonl alone, which is then split by its pages"
)
_DEVS = ("paper_dev.jsonl", "shared_task_dev.jsonl", "dev.jsonl")
_TESTS = ("paper_test.jsonl", "test.jsonl")
# Shares of the pages, if one file has to serve all three purposes.
_LEARN, _CHOOSE = 0.6, 0.2


@dataclass(frozen=True)
class DataLayout:
    """The parts of a data folder.

    Attributes:
        name: The name of the folder.
        train: The claims to learn from, by file.
        choose: The claims that choose the best epoch.
        report: The claims that are reported.
        description: The same in a sentence.
    """

    name: str
    train: dict[str, Dataset]
    choose: Dataset
    report: Dataset
    description: str

    @property
    def reports_what_chose(self) -> bool:
        """Whether the reported claims also chose the epochs."""
        return self.choose == self.report


def find_layout(
    folder: Path, work: Path, on_progress: Callable[[str], None] = lambda _: None
) -> DataLayout:
    """The layout of a data folder.

    Args:
        folder: The data folder.
        work: The folder for a page store, if one must be built.
        on_progress: Called with what is being done.
    """
    if not folder.is_dir():
        raise InvalidInput("data", message=f"The folder {folder} does not exist.")
    name = folder.resolve().name
    dev, test = _first(folder, _DEVS), _first(folder, _TESTS)
    if dev is None:
        raise InvalidInput("data", message=f"{folder} has no dev claims; it needs {_ALLOWED}.")
    pages = _find_pages(folder, work, on_progress)
    train = {path.stem: Dataset(path, pages) for path in sorted(folder.glob("train*.jsonl"))}
    if not train:
        return _split_by_pages(name, Dataset(dev, pages))
    choose = Dataset(dev, pages)
    report = choose if test is None else Dataset(test, pages)
    files = " + ".join(f"{stem}.jsonl" for stem in train)
    said = f"trained on {files}; {dev.name} chose the epochs; reported on {report.queries.name}"
    return DataLayout(name, train, choose, report, said)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _find_pages(folder: Path, work: Path, on_progress: Callable[[str], None]) -> Path | None:
    """A folder of pages, a store, or a store of FEVER's wiki-pages; None for our own rows."""
    for known in (folder / "docs", folder / "pages.db"):
        if known.exists():
            return known
    if not (folder / "wiki-pages").is_dir():
        return None
    store = work / "pages.db"
    if not store.exists():

        def show(progress: BuildProgress) -> None:
            on_progress(f"page store: {progress.pages:,} pages")

        build_store(folder / "wiki-pages", store, on_progress=show)
    return store


def _split_by_pages(name: str, whole: Dataset) -> DataLayout:
    """Three parts without common pages, the same at every call."""
    titles = sorted({p.id or "" for example in whole.examples() for p in example.query.passages})
    if len(titles) < 3:
        raise InvalidInput(
            "data", message=f"{len(titles)} pages are too few to split; 3 are needed."
        )
    shuffled = [titles[int(i)] for i in np.random.default_rng(0).permutation(len(titles))]
    first = max(1, round(_LEARN * len(titles)))
    second = min(len(titles) - 1, max(first + 1, round((_LEARN + _CHOOSE) * len(titles))))
    parts = [
        Dataset(whole.queries, whole.pages, only_pages=frozenset(part))
        for part in (shuffled[:first], shuffled[first:second], shuffled[second:])
    ]
    said = (
        f"{whole.queries.name} split by its {len(titles)} pages: {first} to learn from, "
        f"{second - first} chose the epochs, {len(titles) - second} are reported"
    )
    return DataLayout(name, {"train": parts[0]}, parts[1], parts[2], said)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that training and analysis read.

    Attributes:
        data: The folders of features.
        training_claims: The number of training claims.
        report: The reported claims.
        choose: The claims that chose the epochs.
        table: The pooled vectors of the reported claims.
    """

    data: TrainingData
    training_claims: int
    report: EvaluationSet
    choose: EvaluationSet
    table: PooledTable


def prepare(
    layout: DataLayout,
    vectors: str,
    second_vectors: str,
    folder: Path,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Prepared:
    """Embed what is not embedded yet; vectors are scaled to length 1."""

    def embed(dataset: Dataset, kind: str, name: str) -> str:
        made = folder / kind / name
        options = FeatureOptions(vectors if kind == "first" else second_vectors, unit=True)
        on_progress(f"embedding {name} ({options.vectors})")
        build_features(dataset, made, options)
        return str(made)

    folders = {
        kind: (
            tuple(embed(dataset, kind, name) for name, dataset in layout.train.items()),
            embed(layout.choose, kind, "choose"),
        )
        for kind in ("first", "second")
    }
    choose = EvaluationSet.of(layout.choose)
    if layout.reports_what_chose:
        report, table = choose, folders["first"][1]
    else:
        report, table = EvaluationSet.of(layout.report), embed(layout.report, "first", "report")
    return Prepared(
        TrainingData(*folders["first"], *folders["second"]),
        sum(len(PooledTable.load(made)) for made in folders["first"][0]),
        report,
        choose,
        PooledTable.load(table),
    )
