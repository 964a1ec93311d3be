"""Writing the features of examples as they come, each sentence once."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dgn.data.records import Example
from dgn.features.pool import EmbeddingPool

_TEXTS_AT_ONCE = 8192


class FeatureWriter:
    """Collects examples, and writes their features as they come."""

    def __init__(self, folder: Path, dimension: int, pool: EmbeddingPool) -> None:
        self._folder, self._pool = folder, pool
        self._first_row: dict[int, int] = {}
        self._offsets = [0]
        self._ids: list[str] = []
        self.missing_count = 0
        self._candidates: list[NDArray[np.int32]] = []
        self._gold: list[NDArray[np.bool_]] = []
        self._claims = _VectorFile(folder / "claims.npy", dimension, pool)
        self._sentences = _VectorFile(folder / "sentences.npy", dimension, pool)

    @property
    def claim_count(self) -> int:
        """How many claims were added."""
        return len(self._offsets) - 1

    @property
    def sentence_count(self) -> int:
        """How many different sentences they have."""
        return self._sentences.count

    def add(self, example: Example) -> None:
        """Add an example that has candidates."""
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

    def __enter__(self) -> FeatureWriter:
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
