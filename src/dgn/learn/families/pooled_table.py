"""The pooled features of a data set: every text embedded once, in memory and on disk."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, device_of, namespace
from dgn.data import Batch, Batches, Example, ToDevice
from dgn.errors import InvalidInput, WorkerDied
from dgn.files import open_to_write, save_array
from dgn.learn.families.base import FeatureOptions, FeatureWriter, broken_features, load_array
from dgn.parallel import end_with_parent
from dgn.text import PooledVectors, open_vectors
from dgn.text.vectors import unit_rows

_TEXTS_PER_BATCH = 8192


@dataclass(frozen=True, eq=False)
class PooledTable:
    """The pooled vectors of a data set.

    Attributes:
        queries: [queries, dimension], float16.
        passages: [passages, dimension], float16.
        offsets: [queries + 1]; the passages of query i are candidates[offsets[i]:offsets[i + 1]].
        candidates: Rows of `passages`.
        gold: For each candidate, whether it is gold.
        ids: [queries], their identifiers.
    """

    queries: NDArray[Any]
    passages: NDArray[Any]
    offsets: NDArray[np.int64]
    candidates: NDArray[np.int32]
    gold: NDArray[np.bool_]
    ids: NDArray[Any]

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return self.queries.shape[1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[queries], the number of passages of each query."""
        return np.diff(self.offsets)

    @classmethod
    def load(cls, folder: Path | str) -> PooledTable:
        """Read what `dgn data features` wrote."""
        folder = Path(folder)

        def loaded(name: str, kind: str, *shape: int | None, most: float = np.inf) -> NDArray[Any]:
            within = (-np.inf, np.inf) if kind == "f" else (0, most)
            return load_array(folder / f"{name}.npy", kind, shape, within=within)

        queries = loaded("queries", "f", None, None)
        count, dimension = queries.shape
        passages = loaded("passages", "f", None, dimension)
        gold = loaded("gold", "b", None)
        offsets = loaded("offsets", "i", count + 1, most=len(gold))
        if not count or offsets[0] != 0 or offsets[-1] != len(gold) or (np.diff(offsets) < 1).any():
            raise broken_features(
                folder / "offsets.npy",
                f"expected increasing numbers from 0 to {len(gold):,}, the passages of gold.npy.",
            )
        candidates = loaded("candidates", "i", len(gold), most=len(passages) - 1)
        return cls(queries, passages, offsets, candidates, gold, loaded("ids", "U", count))

    @classmethod
    def join(cls, tables: Sequence[PooledTable]) -> PooledTable:
        """Several data sets as one, in this order."""
        if len({table.dimension for table in tables}) != 1:
            found = ", ".join(str(table.dimension) for table in tables) or "none"
            raise InvalidInput("tables", found=found, allowed="tables of one dimension")
        passages = [0, *itertools.accumulate(len(table.passages) for table in tables)]
        candidates = [0, *itertools.accumulate(len(table.candidates) for table in tables)]
        offsets = [t.offsets[1:] + n for t, n in zip(tables, candidates, strict=False)]
        rows = [t.candidates + np.int32(n) for t, n in zip(tables, passages, strict=False)]
        return cls(
            queries=np.concatenate([table.queries for table in tables]),
            passages=np.concatenate([table.passages for table in tables]),
            offsets=np.concatenate([np.zeros(1, np.int64), *offsets]),
            candidates=np.concatenate(rows),
            gold=np.concatenate([table.gold for table in tables]),
            ids=np.concatenate([table.ids for table in tables]),
        )

    def rows(self, rows: NDArray[np.int64]) -> PooledTable:
        """Some of the queries, with all passages."""
        lengths = self.lengths[rows]
        first = np.repeat(self.offsets[rows], lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        indices: NDArray[np.int64] = (
            first + np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
        )
        return PooledTable(
            self.queries[rows],
            self.passages,
            offsets,
            self.candidates[indices],
            self.gold[indices],
            self.ids[rows],
        )


@final
class PooledBatches(Batches):
    """Batches of X = query ⊙ passage, formed when needed: X itself is never stored.

    Args:
        table: The pooled vectors.
        batch_size: The number of queries per batch.
        seed: Determines the order of the queries.
        to_device: Moves the table to where batches are formed, once; after that, only the numbers
            of the queries of a batch move.
    """

    def __init__(
        self,
        table: PooledTable,
        batch_size: int,
        seed: int,
        to_device: ToDevice = lambda array: array,
    ) -> None:
        lengths = table.lengths
        super().__init__(lengths, int(lengths.max()), table.dimension, batch_size, seed, to_device)
        self.table = table
        self._queries, self._passages = to_device(table.queries), to_device(table.passages)
        self._starts, self._lengths = to_device(table.offsets[:-1]), to_device(lengths)
        self._candidates, self._gold = (
            to_device(table.candidates.astype(np.int64)),
            to_device(table.gold),
        )

    def shape_of(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        return (int(self.lengths[rows].max()),)

    def form(self, rows: Array, shape: tuple[int, ...]) -> Batch:
        xp = namespace(self._passages)
        position = xp.arange(shape[0], device=device_of(self._passages))
        mask = position[None, :] < xp.take(self._lengths, rows, axis=0)[:, None]
        index = xp.where(mask, xp.take(self._starts, rows, axis=0)[:, None] + position, 0)
        index = xp.reshape(index, (-1,))
        gold = xp.reshape(xp.take(self._gold, index, axis=0), mask.shape) & mask
        candidates = xp.take(self._candidates, index, axis=0)
        passages = xp.take(self._passages, candidates, axis=0)
        passages = xp.reshape(passages, (*mask.shape, self.inputs))
        queries = xp.take(self._queries, rows, axis=0)[:, None, :]
        # The product of float32 and float16 is float32, without a copy of the passages.
        return Batch(xp.astype(queries, xp.float32) * passages, gold, mask, rows)


@final
class PooledWriter(FeatureWriter):
    """Embeds examples as they arrive; every page is embedded once."""

    def __init__(self, folder: Path, options: FeatureOptions, workers: int) -> None:
        vectors = open_vectors(options.vectors)
        self._folder, self._pool = folder, _EmbeddingPool(options, vectors, workers)
        self._first_row: dict[int, int] = {}
        self._offsets = [0]
        self._ids: list[str] = []
        self._candidates: list[NDArray[np.int32]] = []
        self._gold: list[NDArray[np.bool_]] = []
        self._queries = _VectorFile(folder / "queries.npy", vectors.dimension, self._pool)
        self._passages = _VectorFile(folder / "passages.npy", vectors.dimension, self._pool)
        self.query_count = self.passage_count = self.missing_count = 0

    def add(self, example: Example) -> None:
        self._queries.add([example.query.text])
        self._ids.append(example.claim.id)
        rows = np.concatenate([self._rows_of(*page) for page in _by_page(example)])
        self._candidates.append(rows.astype(np.int32))
        self._gold.append(np.array(example.gold, dtype=bool))
        self._offsets.append(self._offsets[-1] + len(rows))
        self.query_count += 1
        self.passage_count = self._passages.count
        self.missing_count += len(example.missing)

    def __enter__(self) -> PooledWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        with ExitStack() as closing:  # all are closed, even if one of them cannot be written
            for part in (self._passages, self._queries, self._pool):
                closing.callback(part.close)
            if failed is None and self.query_count:
                self._queries.finish()
                self._passages.finish()
                save_array(self._folder / "offsets.npy", np.array(self._offsets, dtype=np.int64))
                save_array(self._folder / "candidates.npy", np.concatenate(self._candidates))
                save_array(self._folder / "gold.npy", np.concatenate(self._gold))
                save_array(self._folder / "ids.npy", np.array(self._ids))

    def _rows_of(self, page: object, texts: tuple[str, ...]) -> NDArray[np.int64]:
        key = hash((page, texts))
        if key not in self._first_row:
            self._first_row[key] = self._passages.count
            self._passages.add(texts)
        first = self._first_row[key]
        return np.arange(first, first + len(texts))


def _by_page(example: Example) -> Iterator[tuple[object, tuple[str, ...]]]:
    """The texts of the passages, page by page, in their own order, which is also the gold's."""
    for page, passages in itertools.groupby(example.query.passages, lambda p: (p.document, p.id)):
        yield page[1], tuple(passage.text for passage in passages)


class _VectorFile:
    """Appends the vectors of texts to an .npy file whose length is known only at the end."""

    def __init__(self, path: Path, dimension: int, pool: _EmbeddingPool) -> None:
        self._dimension, self._pool = dimension, pool
        self._waiting: list[str] = []
        self._running: deque[Future[NDArray[np.float16]]] = deque()
        self._stream = open_to_write(path)
        self._write_header(0)
        self.count = 0

    def add(self, texts: Iterable[str]) -> None:
        before = len(self._waiting)
        self._waiting.extend(texts)
        self.count += len(self._waiting) - before
        if len(self._waiting) >= _TEXTS_PER_BATCH:
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
        with _deaths_explained():
            vectors = self._running.popleft().result()
        self._stream.write(vectors.tobytes())

    def _write_header(self, rows: int) -> None:
        # The format pads its header, so that a longer number still fits.
        header = {"descr": "<f2", "fortran_order": False, "shape": (rows, self._dimension)}
        np.lib.format.write_array_header_1_0(self._stream, header)


class _EmbeddingPool:
    """Embeds texts in other processes, each of which opens the vectors for itself."""

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
            with _deaths_explained():
                return self._executor.submit(_embed_in_worker, texts)
        future: Future[NDArray[np.float16]] = Future()
        future.set_result(_embed(self._vectors, self._options, texts))
        return future

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


@contextmanager
def _deaths_explained() -> Generator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise WorkerDied(
            "A process that embeds texts ended unexpectedly, often because memory was short; run "
            "the same command again, with fewer workers if memory is short."
        ) from None


_worker: tuple[PooledVectors, FeatureOptions] | None = None


def _open_in_worker(options: FeatureOptions) -> None:
    global _worker
    end_with_parent()
    _worker = (open_vectors(options.vectors), options)


def _embed_in_worker(texts: list[str]) -> NDArray[np.float16]:
    if _worker is None:
        raise RuntimeError("the worker process was not initialized")
    return _embed(*_worker, texts)


def _embed(
    vectors: PooledVectors, options: FeatureOptions, texts: list[str]
) -> NDArray[np.float16]:
    pooled: NDArray[Any] = vectors.pooled(texts)
    if options.unit:
        pooled = unit_rows(pooled)
    largest = np.abs(pooled).max(initial=0)
    if largest > np.finfo(np.float16).max:
        raise InvalidInput(
            "vectors",
            message=f"A pooled vector contains {largest:g}, which float16 cannot hold; use --unit.",
        )
    return pooled.astype(np.float16)
