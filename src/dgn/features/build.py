"""From examples and vectors to the features of a data set, on disk and ready for batches.

The folder knows what it was made from. Asked again for the same, nothing is done; when an input
changed, it is made anew.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgn.data.feature_table import write_meta
from dgn.data.lines import Problems
from dgn.data.records import Example
from dgn.encoders import Matcher
from dgn.encoders.match_table import SOFT_LABELS
from dgn.errors import BrokenInput, InvalidInput
from dgn.features.match_writer import MatchWriter
from dgn.features.pool import EmbeddingPool, FeatureOptions
from dgn.features.writer import FeatureWriter
from dgn.fingerprint import fingerprint_of
from dgn.text import has_words
from dgn.text.rarity import COUNTED, default_rarity
from dgn.text.vectors import PooledVectors, SubwordVectors, open_vectors
from dgn.text.word_tokens import WordReader

VERSION = 1
_COUNTS = ("claims", "sentences", "missing")


@dataclass(frozen=True)
class FeatureReport:
    """What a build did.

    made: False where the folder was up to date already. missing: how many gold sentences are no
    candidate: they do not exist, or their page was not retrieved. changed: why it was made anew.
    """

    made: bool
    claims: int
    sentences: int
    missing: int
    changed: tuple[str, ...] = ()


def build_features(
    examples: Callable[[Problems], Iterable[Example]],
    folder: Path,
    options: FeatureOptions,
    inputs: dict[str, str],
    problems: Problems | None = None,
    *,
    workers: int = 2,
    on_progress: Callable[[int, int], None] = lambda _claims, _sentences: None,
) -> FeatureReport:
    """Embed every claim and every sentence once, and write the features.

    examples: makes the examples; called only if there is something to do.
    inputs: a fingerprint for each input that the examples come from, by name.
    """
    problems = problems or Problems()
    folder = folder.resolve()
    vectors = open_vectors(options.vectors)
    facets = options.encoder == "facets"
    key: dict[str, Any] = {
        "version": VERSION,
        "vectors": vectors.fingerprint,
        "unit": options.unit,
        **({"encoder": "facets", "rarity": fingerprint_of(COUNTED)} if facets else {}),
        **({} if options.titles else {"titles": False}),
        "skip_bad": problems.skip,
        **inputs,
    }
    before = _meta_of(folder)
    changed = _differences(before["key"], key) if before else ()
    if before is not None and not changed:
        if before["files"] == _sizes(folder):
            return FeatureReport(False, *(before[name] for name in _COUNTS))
        changed = ("its own files",)
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.making-", dir=_made(folder.parent)))
    try:
        with _writer(options, partial, vectors, workers) as writer:
            on_progress(0, 0)
            for example in examples(problems):
                if facets and not has_words(example.claim.text):
                    problems.report(_no_word(example))
                elif example.candidates:
                    writer.add(example)
                    if writer.claim_count % 500 == 0:
                        on_progress(writer.claim_count, writer.sentence_count)
                else:
                    problems.report(_nothing_to_pick(example))
        if not writer.claim_count:
            raise InvalidInput("examples", found="none", allowed="at least one claim with pages")
        found = (writer.claim_count, writer.sentence_count, writer.missing_count)
        counts = dict(zip(_COUNTS, found, strict=True))
        write_meta(partial, {"key": key, "files": _sizes(partial), **counts})
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    on_progress(writer.claim_count, writer.sentence_count)
    return FeatureReport(True, *found, changed)


def _writer(
    options: FeatureOptions, folder: Path, vectors: PooledVectors, workers: int
) -> FeatureWriter | MatchWriter:
    if options.encoder == "facets":
        assert isinstance(vectors, SubwordVectors)  # noqa: S101  (FeatureOptions saw to it)
        matcher = Matcher(WordReader(vectors, default_rarity()))
        return MatchWriter(folder, matcher, titles=options.titles)
    return FeatureWriter(folder, vectors.dimension, EmbeddingPool(options, vectors, workers))


def _differences(before: dict[str, Any], now: dict[str, Any]) -> tuple[str, ...]:
    """The names of what changed, came or went."""
    names = dict.fromkeys([*now, *before])
    return tuple(name for name in names if before.get(name) != now.get(name))


def _no_word(example: Example) -> BrokenInput:
    return BrokenInput(
        f"claim {example.claim.id}",
        None,
        found=repr(example.claim.text),
        allowed="a claim with a word in it",
    )


def _nothing_to_pick(example: Example) -> BrokenInput:
    return BrokenInput(
        f"claim {example.claim.id}",
        None,
        found="pages without a sentence",
        allowed="at least one candidate",
    )


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            "folder", found=f"{folder}: {error.strerror}", allowed="a place that can be written to"
        ) from error
    return folder


def _put_in_place(made: Path, folder: Path) -> None:
    """Swap the new features in by renaming: there is never half of a folder."""
    old = made.with_name(made.name + ".old")
    if folder.exists():
        folder.rename(old)
    made.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _sizes(folder: Path) -> dict[str, int]:
    """The size of every file of features, in bytes; soft labels come later, and are not ours."""
    return {
        path.name: path.stat().st_size
        for path in sorted(folder.iterdir())
        if path.suffix != ".json" and path.name != SOFT_LABELS
    }


def _meta_of(folder: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        counts = {name: int(meta[name]) for name in _COUNTS}
        return {"key": dict(meta["key"]), "files": dict(meta["files"]), **counts}
    except (OSError, ValueError, KeyError, TypeError):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(
                "folder",
                found=f"other files in {folder}",
                allowed="a new folder, or one of features",
            ) from None
        return None
