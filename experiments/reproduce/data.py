"""The data of a reproduction: which files are for which purpose, and their features."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dgn.data import Dataset, Problems
from dgn.data.store import BuildProgress, build_store
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import write_atomically
from dgn.learn.families import FeatureOptions
from dgn.learn.features import build_features
from dgn.text.vectors import holds_words
from experiments.reproduce.plan import PAPER, UNIT

_ALLOWED = (
    "claims as train*.jsonl and dev.jsonl (or paper_dev.jsonl, shared_task_dev.jsonl) with pages "
    "in docs/, wiki-pages/ or pages.db; or dev.jsonl alone, which is then split by its pages"
)
_DEVS = ("paper_dev.jsonl", "shared_task_dev.jsonl", "dev.jsonl")
_TESTS = ("paper_test.jsonl", "test.jsonl")
# Of one file for all purposes: the shares of the pages to learn from, and to learn or choose from.
_LEARN, _CHOOSE = 0.6, 0.8
_SKIPPED = "skipped.json"
_LARGE = 1000
"""A dev file with this many claims is divided; a smaller one is reported as a whole."""


@dataclass(frozen=True)
class DataLayout:
    """The parts of a data folder; no page is in two of them.

    Attributes:
        name: The name of the folder.
        train: The claims to learn from, by file.
        choose: The claims that choose the settings and the epochs.
        report: The claims that are reported; they choose nothing.
        description: The same in a sentence.
    """

    name: str
    train: dict[str, Dataset]
    choose: Dataset
    report: Dataset
    description: str


def find_layout(
    folder: Path,
    work: Path,
    on_progress: Callable[[str], None] = lambda _: None,
    *,
    skip_bad: bool = False,
) -> DataLayout:
    """The layout of a data folder.

    Args:
        folder: The data folder.
        work: The folder for a page store, if one must be built.
        on_progress: Called with what is being done.
        skip_bad: Whether broken rows are skipped.
    """
    if not folder.is_dir():
        raise InvalidInput("data", message=f"The folder {folder} does not exist.")
    name = folder.resolve().name
    dev, test = _first(folder, _DEVS), _first(folder, _TESTS)
    if dev is None:
        raise InvalidInput("data", message=f"{folder} has no dev claims; it needs {_ALLOWED}.")
    pages = _find_pages(folder, work, on_progress, skip_bad)
    files = sorted(folder.glob("train*.jsonl"))
    learned = " + ".join(path.name for path in files)

    def parts(path: Path, *ends: float) -> list[Dataset]:
        starts = (0.0, *ends)
        return [Dataset(path, pages, part=part) for part in zip(starts, (*ends, 1.0), strict=True)]

    if not files:
        train, choose, report = parts(dev, _LEARN, _CHOOSE)
        said = f"{dev.name} divided by its pages: 60% to learn from, 20% choose, 20% are reported"
        return DataLayout(name, {"train": train}, choose, report, said)
    whole = {path.stem: Dataset(path, pages) for path in files}
    if test is not None:
        said = f"trained on {learned}; {dev.name} chooses; reported on {test.name}"
        return DataLayout(name, whole, Dataset(dev, pages), Dataset(test, pages), said)
    if sum(1 for _ in Dataset(dev, pages).examples(Problems(skip=skip_bad))) >= _LARGE:
        choose, report = parts(dev, 0.5)
        said = f"trained on {learned}; {dev.name} divided by its pages: one half chooses, the "
        return DataLayout(name, whole, choose, report, said + "other half is reported")
    divided = {path.stem: parts(path, _CHOOSE) for path in files}
    first = next(iter(divided.values()))
    said = f"{learned} divided by documents: 80% to learn from, 20% choose; reported on {dev.name}"
    train = {stem: of_file[0] for stem, of_file in divided.items()}
    return DataLayout(name, train, first[1], Dataset(dev, pages), said)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _find_pages(
    folder: Path, work: Path, on_progress: Callable[[str], None], skip_bad: bool
) -> Path | None:
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

        problems = Problems(skip=skip_bad, on_skip=(skipped := _Skipped()).add)
        build_store(folder / "wiki-pages", store, problems, show)
        skipped.write(work)
    return store


class _Skipped:
    """The broken rows that a step skipped, kept next to what it made."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def add(self, problem: BrokenInput) -> None:
        self.messages.append(str(problem))

    def write(self, folder: Path) -> None:
        if self.messages:
            write_atomically(folder / _SKIPPED, json.dumps(self.messages, indent=1) + "\n")


def skipped_rows(out: Path) -> tuple[str, ...]:
    """All broken rows that were skipped on the way to the features, each of them once."""
    files = (out / _SKIPPED, *sorted((out / "features").glob(f"*/*/{_SKIPPED}")))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files if path.is_file()]
    return tuple(dict.fromkeys(message for messages in found for message in messages))


@dataclass(frozen=True)
class FeatureFolders:
    """The folders of one kind of features."""

    train: tuple[str, ...]
    choose: str
    report: str

    @classmethod
    def under(cls, folder: Path) -> FeatureFolders:
        """The folders that `make_features` wrote."""
        train = sorted(path for path in folder.glob("train*") if (path / "meta.json").is_file())
        if not train:
            raise InvalidInput("out", message=f"{folder} contains no features.")
        return cls(tuple(map(str, train)), str(folder / "choose"), str(folder / "report"))


def vectors_of(kind: str, vectors: str) -> tuple[str, bool]:
    """The vectors of a kind of features, and whether they are scaled to length 1.

    The features of the paper count every token. Vectors of sentences and of pieces of words have
    no punctuation to count.
    """
    if kind == UNIT:
        return vectors, True
    return f"all-tokens:{vectors}" if holds_words(vectors) else vectors, False


def make_features(
    layout: DataLayout,
    vectors: str,
    folder: Path,
    kinds: tuple[str, ...] = (PAPER, UNIT),
    on_progress: Callable[[str], None] = lambda _: None,
    *,
    skip_bad: bool = False,
) -> None:
    """Embed what is not embedded yet, into a folder for each kind of features."""
    parts = {**layout.train, "choose": layout.choose, "report": layout.report}
    for kind in kinds:
        source, unit = vectors_of(kind, vectors)
        for name, dataset in parts.items():
            on_progress(f"embedding {name} ({kind})")
            problems = Problems(skip=skip_bad, on_skip=(skipped := _Skipped()).add)
            made = build_features(
                dataset, folder / kind / name, FeatureOptions(source, unit=unit), problems
            )
            if made.made:
                skipped.write(folder / kind / name)
