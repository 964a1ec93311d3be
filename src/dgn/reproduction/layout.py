"""Which files of a data folder are for learning, for choosing and for reporting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dgn.data.store import BuildProgress, build_store
from dgn.errors import InvalidInput
from dgn.features import ExampleSource

_ALLOWED = (
    "claims as train*.jsonl and dev.jsonl (or paper_dev.jsonl, shared_task_dev.jsonl) with pages "
    "in docs/, wiki-pages/ or pages.db; or dev.jsonl alone, which is then split by its pages"
)
_DEVS = ("paper_dev.jsonl", "shared_task_dev.jsonl", "dev.jsonl")
_TESTS = ("paper_test.jsonl", "test.jsonl")
# Shares of the pages, where one file has to serve for all three.
_LEARN, _CHOOSE = 0.6, 0.2


@dataclass(frozen=True)
class DataLayout:
    """train: learned from. choose: chooses the best epoch. report: all scores are of these."""

    name: str
    train: dict[str, ExampleSource]
    choose: ExampleSource
    report: ExampleSource
    said: str

    @property
    def reports_what_chose(self) -> bool:
        """Whether the claims that are reported also chose the epochs."""
        return self.choose == self.report


def find_layout(
    folder: Path, work: Path, on_progress: Callable[[str], None] = lambda _: None
) -> DataLayout:
    """The layout of a data folder. work: where a page store goes, if one must be built."""
    if not folder.is_dir():
        raise InvalidInput("data", found=f"no folder {folder}", allowed=_ALLOWED)
    name = folder.resolve().name
    dev, test = _first(folder, _DEVS), _first(folder, _TESTS)
    if dev is None:
        raise InvalidInput("data", found=f"no dev claims in {folder}", allowed=_ALLOWED)
    pages = _find_pages(folder, work, on_progress)
    train = {path.stem: ExampleSource(path, pages) for path in sorted(folder.glob("train*.jsonl"))}
    if not train:
        return _split_by_pages(name, ExampleSource(dev, pages))
    choose = ExampleSource(dev, pages)
    report = choose if test is None else ExampleSource(test, pages)
    files = " + ".join(f"{stem}.jsonl" for stem in train)
    said = f"trained on {files}; {dev.name} chose the epochs; reported on {report.claims.name}"
    return DataLayout(name, train, choose, report, said)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _find_pages(folder: Path, work: Path, on_progress: Callable[[str], None]) -> Path | None:
    """A folder of pages, a store, or FEVER's wiki-pages made into one; None for plain files."""
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


def _split_by_pages(name: str, whole: ExampleSource) -> DataLayout:
    """Three parts with no page in common, the same at every call."""
    titles = sorted({c.page for example in whole.examples() for c in example.candidates})
    if len(titles) < 3:
        raise InvalidInput("data", found=f"{len(titles)} pages", allowed="at least 3, to split")
    shuffled = [titles[int(i)] for i in np.random.default_rng(0).permutation(len(titles))]
    first = max(1, round(_LEARN * len(titles)))
    second = min(len(titles) - 1, max(first + 1, round((_LEARN + _CHOOSE) * len(titles))))
    parts = [
        ExampleSource(whole.claims, whole.pages, only_pages=frozenset(part))
        for part in (shuffled[:first], shuffled[first:second], shuffled[second:])
    ]
    said = (
        f"{whole.claims.name} split by its {len(titles)} pages: {first} to learn from, "
        f"{second - first} chose the epochs, {len(titles) - second} are reported"
    )
    return DataLayout(name, {"train": parts[0]}, parts[1], parts[2], said)
