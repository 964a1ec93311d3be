"""The features of a data set: every text is processed once and stored in a folder for training.

The folder records what it was made from. Asked for again with the same inputs, nothing is done;
after an input has changed, it is made again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgn.data import Dataset, Example, Problems
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import write_atomically
from dgn.learn.families import find_family
from dgn.learn.families.base import TEACHER_LOGITS, FeatureOptions
from dgn.text import open_vectors
from dgn.text.words import has_words

_VERSION = 3
_META = "meta.json"
_COUNTS = ("queries", "passages", "missing")


@dataclass(frozen=True)
class FeatureReport:
    """What a build did.

    Attributes:
        made: False if the folder was already up to date.
        queries: The number of queries.
        passages: The number of different passages.
        missing: The number of gold sentences that are not among the passages: they do not exist,
            or their page was not retrieved.
        changed: The inputs that have changed since the folder was made.
    """

    made: bool
    queries: int
    passages: int
    missing: int
    changed: tuple[str, ...] = ()


def build_features(
    dataset: Dataset,
    folder: Path,
    options: FeatureOptions,
    problems: Problems | None = None,
    *,
    workers: int = 2,
    on_progress: Callable[[int, int], None] = lambda _queries, _passages: None,
) -> FeatureReport:
    """Process all examples of a data set into a folder, unless it is up to date.

    Args:
        dataset: The data set.
        folder: The folder for the features.
        options: What the features are made with.
        problems: What to do about broken input; by default, the first problem is raised.
        workers: The number of processes that embed texts.
        on_progress: Called with the number of queries and of passages so far.
    """
    problems = problems or Problems()
    return _build(
        dataset.examples, folder, options, dataset.fingerprints(), problems, workers, on_progress
    )


def _build(
    examples: Callable[[Problems], Iterable[Example]],
    folder: Path,
    options: FeatureOptions,
    inputs: dict[str, str],
    problems: Problems,
    workers: int,
    on_progress: Callable[[int, int], None],
) -> FeatureReport:
    family = find_family(options.encoder)
    family.check_options(options)
    folder = folder.resolve()
    key: dict[str, Any] = {
        "version": _VERSION,
        "encoder": family.name,
        "vectors": open_vectors(options.vectors).fingerprint,
        "unit": options.unit,
        **family.feature_key(options),
        "skip_bad": problems.skip,
        **inputs,
    }
    before = _meta_of(folder)
    changed = _differences(before["key"], key) if before else ()
    if before is not None and not changed:
        if before["files"] == _sizes(folder):
            return FeatureReport(False, *(before[name] for name in _COUNTS))
        changed = ("its own files",)
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.making-", dir=_created(folder.parent)))
    try:
        with family.open_writer(partial, options, workers) as writer:
            on_progress(0, 0)
            for example in examples(problems):
                if not has_words(example.query.text):
                    problems.report(_problem(example, "the claim has no word."))
                elif not example.query.passages:
                    problems.report(_problem(example, "its pages have no sentence."))
                else:
                    writer.add(example)
                    if writer.query_count % 500 == 0:
                        on_progress(writer.query_count, writer.passage_count)
        if not writer.query_count:
            raise InvalidInput("queries", message="The data set has no query with passages.")
        found = (writer.query_count, writer.passage_count, writer.missing_count)
        counts = dict(zip(_COUNTS, found, strict=True))
        source = options.vectors
        write_meta(partial, {"key": key, "source": source, "files": _sizes(partial), **counts})
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    on_progress(writer.query_count, writer.passage_count)
    return FeatureReport(True, *found, changed)


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    """Write the last file of a folder of features: what it was made from."""
    write_atomically(folder / _META, json.dumps(meta, indent=2))


def read_key(folder: Path) -> dict[str, Any]:
    """What identifies the features of a folder."""
    return dict(_read_meta(folder)["key"])


def read_source(folder: Path) -> str:
    """The vectors that the features were made with, as `open_vectors` takes them."""
    return str(_read_meta(folder).get("source", ""))


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / _META
    if not path.is_file():
        raise InvalidInput(
            "features",
            message=f"{folder} contains no features; make them with: dgn data features",
        )
    try:
        meta: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        dict(meta["key"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenInput(
            path,
            None,
            found=f"something else ({error!r})",
            allowed="the meta.json of dgn data features",
        ) from None
    return meta


def _differences(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, ...]:
    names = dict.fromkeys([*now, *before])
    return tuple(name for name in names if before.get(name) != now.get(name))


def _problem(example: Example, message: str) -> BrokenInput:
    return BrokenInput(f"claim {example.claim.id}", None, message=message)


def _created(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            "out", message=f"The folder {folder} cannot be created ({error.strerror})."
        ) from error
    return folder


def _put_in_place(made: Path, folder: Path) -> None:
    """Replace the old folder by renaming: there is never an incomplete one."""
    old = made.with_name(made.name + ".old")
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _sizes(folder: Path) -> dict[str, int]:
    """The size of every file of features, in bytes."""
    return {
        path.name: path.stat().st_size
        for path in sorted(folder.iterdir())
        if path.suffix != ".json" and path.name != TEACHER_LOGITS
    }


def _meta_of(folder: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        counts = {name: int(meta[name]) for name in _COUNTS}
        return {"key": dict(meta["key"]), "files": dict(meta["files"]), **counts}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(
                "out",
                message=f"{folder} contains other files; choose a new folder, or one that contains "
                "features.",
            ) from None
        return None
