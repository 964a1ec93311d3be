"""From examples and vectors to the features of a data set, on disk and ready for batches.

The folder knows what it was made from. Asked again for the same, nothing is done; when an input
changed, it is made anew.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data.batches import write_meta
from dgn.data.lines import Problems
from dgn.data.records import Example
from dgn.errors import BrokenInput, InvalidInput
from dgn.text.vectors import PooledVectors, open_vectors

VERSION = 1
_TEXTS_AT_ONCE = 8192
_COUNTS = ("claims", "sentences", "missing")


@dataclass(frozen=True)
class FeatureOptions:
    """vectors: what `open_vectors` takes. unit: scale every pooled vector to length 1."""

    vectors: str = "wordllama"
    unit: bool = False


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
    key: dict[str, Any] = {
        "version": VERSION,
        "vectors": vectors.fingerprint,
        "unit": options.unit,
        "skip_bad": problems.skip,
        **inputs,
    }
    before = _meta_of(folder)
    changed = tuple(name for name in key if before and before["key"].get(name) != key[name])
    if before is not None and not changed:
        if before["files"] == _sizes(folder):
            return FeatureReport(False, *(before[name] for name in _COUNTS))
        changed = ("its own files",)
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.making-", dir=_made(folder.parent)))
    try:
        with _Writer(partial, vectors, options, workers) as writer:
            on_progress(0, 0)
            for example in examples(problems):
                if example.candidates:
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
    """The size of every file of features, in bytes."""
    return {
        path.name: path.stat().st_size
        for path in sorted(folder.iterdir())
        if path.suffix != ".json"
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


class _Writer:
    """Collects examples, and writes their features as they come."""

    def __init__(
        self, folder: Path, vectors: PooledVectors, options: FeatureOptions, workers: int
    ) -> None:
        self._folder = folder
        self._first_row: dict[int, int] = {}
        self._offsets = [0]
        self._ids: list[str] = []
        self.missing_count = 0
        self._candidates: list[NDArray[np.int32]] = []
        self._gold: list[NDArray[np.bool_]] = []
        pool = EmbeddingPool(options, vectors, workers)
        self._pool = pool
        self._claims = _VectorFile(folder / "claims.npy", vectors.dimension, pool)
        self._sentences = _VectorFile(folder / "sentences.npy", vectors.dimension, pool)

    @property
    def claim_count(self) -> int:
        return len(self._offsets) - 1

    @property
    def sentence_count(self) -> int:
        return self._sentences.count

    def add(self, example: Example) -> None:
        self._claims.add([example.claim.text])
        self._ids.append(example.claim.id)
        self.missing_count += len(example.missing)
        rows = np.concatenate([self._rows_of(*page) for page in _by_page(example)])
        self._candidates.append(rows.astype(np.int32))
        self._gold.append(np.array(example.gold, dtype=bool))
        self._offsets.append(self._offsets[-1] + len(rows))

    def _rows_of(self, title: str, texts: tuple[str, ...]) -> NDArray[np.int64]:
        page = hash((title, texts))
        if page not in self._first_row:
            self._first_row[page] = self._sentences.count
            self._sentences.add(texts)
        first = self._first_row[page]
        return np.arange(first, first + len(texts))

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        try:
            if failed is None and self.claim_count:
                self._claims.finish()
                self._sentences.finish()
                np.save(self._folder / "offsets.npy", np.array(self._offsets, dtype=np.int64))
                np.save(self._folder / "candidates.npy", np.concatenate(self._candidates))
                np.save(self._folder / "gold.npy", np.concatenate(self._gold))
                np.save(self._folder / "ids.npy", np.array(self._ids))
        finally:
            self._pool.close()
            self._claims.close()
            self._sentences.close()


def _by_page(example: Example) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The candidates' texts, page by page, in their own order, which is also the gold's."""
    for title, on_page in itertools.groupby(example.candidates, lambda c: c.page):
        yield title, tuple(candidate.text for candidate in on_page)


class _VectorFile:
    """Appends the vectors of texts to an .npy file whose length is known only in the end."""

    def __init__(self, path: Path, dimension: int, pool: EmbeddingPool) -> None:
        self._path, self._dimension, self._pool = path, dimension, pool
        self._waiting: list[str] = []
        self._running: deque[Future[NDArray[np.float16]]] = deque()
        self._stream = path.open("wb")
        self._write_header(0)
        self.count = 0

    def add(self, texts: Iterable[str]) -> None:
        before = len(self._waiting)
        self._waiting.extend(texts)
        self.count += len(self._waiting) - before
        if len(self._waiting) >= _TEXTS_AT_ONCE:
            self._send()

    def finish(self) -> None:
        self._send()
        while self._running:
            self._write_next()
        self._stream.seek(0)
        self._write_header(self.count)

    def close(self) -> None:
        self._stream.close()

    def _send(self) -> None:
        self._running.append(self._pool.embed(self._waiting))
        self._waiting = []
        while len(self._running) > 2 * self._pool.workers:
            self._write_next()

    def _write_next(self) -> None:
        self._stream.write(self._running.popleft().result().tobytes())

    def _write_header(self, rows: int) -> None:
        # The format pads its header, so that a longer number still fits in the same place.
        header = {"descr": "<f2", "fortran_order": False, "shape": (rows, self._dimension)}
        np.lib.format.write_array_header_1_0(self._stream, header)


class EmbeddingPool:
    """Embeds texts in other processes; each opens the vectors for itself."""

    def __init__(self, options: FeatureOptions, vectors: PooledVectors, workers: int) -> None:
        self.workers = workers
        self._options, self._vectors = options, vectors
        self._executor = (
            ProcessPoolExecutor(
                workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_open_in_worker,
                initargs=(options,),
            )
            if workers > 1
            else None
        )

    def embed(self, texts: list[str]) -> Future[NDArray[np.float16]]:
        if self._executor is not None:
            return self._executor.submit(_embed_in_worker, texts)
        future: Future[NDArray[np.float16]] = Future()
        future.set_result(_embed(self._vectors, self._options, texts))
        return future

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


_worker: tuple[PooledVectors, FeatureOptions] | None = None


def _open_in_worker(options: FeatureOptions) -> None:
    global _worker
    _worker = (open_vectors(options.vectors), options)


def _embed_in_worker(texts: list[str]) -> NDArray[np.float16]:
    if _worker is None:
        raise RuntimeError("the worker was not opened")
    return _embed(*_worker, texts)


def _embed(
    vectors: PooledVectors, options: FeatureOptions, texts: list[str]
) -> NDArray[np.float16]:
    pooled: NDArray[Any] = vectors.pooled(texts)
    if options.unit:
        from dgn.text.matching import unit_rows

        pooled = unit_rows(pooled)
    if np.abs(pooled).max(initial=0) > np.finfo(np.float16).max:
        raise InvalidInput(
            "vectors",
            found=f"{np.abs(pooled).max():g} in a pooled vector",
            allowed="what float16 holds; use --unit",
        )
    return pooled.astype(np.float16)
