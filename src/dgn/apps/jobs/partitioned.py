"""One ground set that does not fit into memory: greedy in partitions, then over their unions.

GreeDi (Mirzasoleiman et al., 2013): lazy greedy in every partition, then over what the partitions
selected; the better one of that set and the best partition's is returned. With random partitions
(RandGreeDi, Barbosa et al., 2015) the set is worth at least (1 − 1/e) / 2 of the best one on
average. One more pass over all partitions gives a certificate for this very set, which is usually
far better.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.apps.jobs.engines import check_engine, connected
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search import Certificate, Selection, lazy_greedy
from dgn.errors import BrokenInput, InvalidInput, require_extra
from dgn.selector.limits import integer

_ROWS_PER_CHUNK = 1 << 16
_DEFAULT_BYTES = 256 * 2**20


@dataclass(frozen=True)
class _Found:
    """What a partition contributes.

    Attributes:
        indices: The selected items, as numbers of the whole set.
        rows: [selected, features], their features.
        value: f of them.
        largest: The k largest values of single items.
    """

    indices: NDArray[np.int64]
    rows: NDArray[Any]
    value: float
    largest: NDArray[np.float64]


def partitioned_greedy(
    objective: SetFunction,
    features: NDArray[Any] | str | Path,
    k: int,
    *,
    partitions: int | None = None,
    seed: int | None = None,
    engine: str = "local",
    workers: int = 1,
    address: str | None = None,
) -> Selection:
    """Select k items of a set that need not fit into memory.

    The result depends on the partitions and the seed, and not on the engine or the workers.

    Args:
        objective: The set function. It must be evaluable on parts of a set (see SetFunction).
        features: [items, features]: an array, a `.npy` file, which is mapped into memory, or a
            Parquet file all of whose columns are features.
        k: The number of items to select.
        partitions: How many partitions; by default, so that one of them takes 256 MiB.
        seed: Random partitions. None for consecutive items, which is faster to read.
        engine: "local", or "ray" for tasks of a Ray cluster, which must be able to read the file.
        workers: With the engine local, partitions that are searched at the same time.
        address: Of a Ray cluster; None for one on this machine.

    Examples:
        >>> import dgn
        >>> features = np.random.default_rng(0).random((1000, 8))
        >>> f = dgn.FeatureCoverage(np.ones(8))
        >>> found = partitioned_greedy(f, features, 5, partitions=4)
        >>> len(found.indices), found.certificate.ratio > 0.63
        (5, True)
    """
    integer("k", k)
    integer("workers", workers)
    check_engine(engine)
    source = _Source.of(features)
    items, width = source.shape
    by_size = max(1, -(-items * width * source.itemsize // _DEFAULT_BYTES))
    count = by_size if partitions is None else integer("partitions", partitions)
    count = min(count, items)
    run = _runner(engine, workers, address)
    parts = [_Part(source, number, count, seed) for number in range(count)]
    found = list(run(_search, [(objective, part, k) for part in parts]))
    union = np.concatenate([one.rows for one in found])
    indices = np.concatenate([one.indices for one in found])
    # Ties go to the lowest index, whatever the partitions are.
    order = np.argsort(indices, kind="stable")
    union, indices = union[order], indices[order]
    last = cast("Selection", lazy_greedy(objective, union, k))
    chosen = np.array(last.indices, np.int64)
    best = max(found, key=lambda one: one.value)
    if best.value > last.certificate.value:
        chosen = np.asarray(np.searchsorted(indices, best.indices), np.int64)
    selection = _replayed(objective, union, chosen)
    state = _state_of(objective, union, chosen)
    taken = np.sort(indices[chosen])
    left = run(_largest_gains, [(objective, part, k, state, taken) for part in parts])
    bound = selection.certificate.value + _largest_sum(left, k)
    bound = min(bound, _largest_sum((one.largest for one in found), k))
    value = selection.certificate.value
    return Selection(
        tuple(int(index) for index in indices[chosen]),
        selection.gains,
        selection.values,
        Certificate(value, max(value, bound)),
    )


@dataclass(frozen=True)
class _Source:
    """A matrix in memory or in a file; a file is opened where it is read."""

    shape: tuple[int, int]
    itemsize: int
    array: NDArray[Any] | None = None
    file: str = ""

    @classmethod
    def of(cls, features: NDArray[Any] | str | Path) -> _Source:
        if not isinstance(features, str | Path):
            array = np.asarray(features)
            _check_shape(array.shape, "features")
            return cls(cast("tuple[int, int]", array.shape), array.itemsize, array)
        file = str(features)
        if file.endswith(".npy"):
            try:
                array = np.lib.format.open_memmap(file, mode="r")
            except (OSError, ValueError, EOFError) as error:
                raise BrokenInput(file, None, message=f"it cannot be mapped ({error}).") from None
            _check_shape(array.shape, file)
            return cls(cast("tuple[int, int]", array.shape), array.itemsize, file=file)
        if file.endswith(".parquet"):
            require_extra("A Parquet file", package="pyarrow", extra="ray")
            import pyarrow.parquet as pq

            parquet: Any = pq
            with _readable(file):
                about = parquet.read_metadata(file)
            _check_shape((about.num_rows, about.num_columns), file)
            return cls((about.num_rows, about.num_columns), 4, file=file)
        raise InvalidInput("features", found=file, allowed="an array, a .npy or a .parquet file")

    def rows(self, indices: slice | NDArray[np.int64]) -> NDArray[Any]:
        if self.array is not None:
            return np.asarray(self.array[indices])
        if self.file.endswith(".npy"):
            return np.array(np.load(self.file, mmap_mode="r")[indices])
        return _parquet_rows(self.file, indices)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2 or 0 in shape:
        raise InvalidInput(
            "features", found=f"{name} with the shape {shape}", allowed="[items, features]"
        )


def _parquet_rows(file: str, indices: slice | NDArray[np.int64]) -> NDArray[Any]:
    """Some rows, row group by row group."""
    import pyarrow.parquet as pq

    parquet: Any = pq
    found: list[NDArray[Any]] = []
    first = 0
    with _readable(file), parquet.ParquetFile(file) as table:
        for group in range(table.num_row_groups):
            last = first + table.metadata.row_group(group).num_rows
            if isinstance(indices, slice):
                own: Any = slice(max(indices.start, first) - first, min(indices.stop, last) - first)
                is_wanted = own.start < own.stop
            else:
                own = indices[(indices >= first) & (indices < last)] - first
                is_wanted = bool(len(own))
            if is_wanted:
                columns = table.read_row_group(group).columns
                rows = np.stack([column.to_numpy() for column in columns], axis=1)
                found.append(rows[own].astype(np.float32, copy=False))
            first = last
    return np.concatenate(found)


@contextmanager
def _readable(file: str) -> Generator[None]:
    """What Arrow says about a file, or about columns that are not numbers, as one sentence."""
    import pyarrow

    arrow: Any = pyarrow
    broken: Any = (OSError, ValueError, TypeError, arrow.ArrowException)
    try:
        yield
    except broken as error:
        reason = " ".join(str(error).split())[:200]
        message = f"it is not a Parquet file whose columns are numbers ({reason})."
        raise BrokenInput(file, None, message=message) from None


@dataclass(frozen=True)
class _Part:
    """One of `count` partitions."""

    source: _Source
    number: int
    count: int
    seed: int | None

    def indices(self) -> NDArray[np.int64]:
        items = self.source.shape[0]
        if self.seed is None:
            start, stop = (items * n // self.count for n in (self.number, self.number + 1))
            return np.arange(start, stop)
        # The same for every worker: which partition each item belongs to.
        owner = np.random.default_rng(self.seed).integers(0, self.count, items, dtype=np.int32)
        owner[: self.count] = np.arange(self.count)  # none is empty
        return np.flatnonzero(owner == self.number)

    def rows(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        is_range = self.seed is None and len(indices)
        wanted = slice(int(indices[0]), int(indices[-1]) + 1) if is_range else indices
        return self.source.rows(wanted)


def _search(objective: SetFunction, part: _Part, k: int) -> _Found:
    indices = part.indices()
    rows = part.rows(indices)
    found = cast("Selection", lazy_greedy(objective, rows, k))
    chosen = np.array(found.indices, np.int64)
    largest = _largest(objective, rows, k, None, np.zeros(0, np.int64))
    return _Found(indices[chosen], rows[chosen], found.certificate.value, largest)


def _largest_gains(
    objective: SetFunction, part: _Part, k: int, state: State, taken: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The k largest gains, given the selection, of the items of a partition."""
    indices = part.indices()
    own = np.flatnonzero(np.isin(indices, taken, assume_unique=True))
    return _largest(objective, part.rows(indices), k, state, own)


def _largest(
    objective: SetFunction,
    rows: NDArray[Any],
    k: int,
    state: State | None,
    without: NDArray[np.int64],
) -> NDArray[np.float64]:
    gains = np.empty(len(rows), np.float64)
    for start in range(0, len(rows), _ROWS_PER_CHUNK):
        items = Items(rows[start : start + _ROWS_PER_CHUNK]).widened()
        given = objective.gains(items, objective.empty(items, state))
        gains[start : start + items.size] = np.asarray(given)[0]
    gains[without] = 0.0
    few = min(k, len(gains))
    return np.partition(gains, len(gains) - few)[len(gains) - few :]


def _largest_sum(parts: Iterator[NDArray[np.float64]] | Any, k: int) -> float:
    together = np.concatenate(list(parts))
    return float(np.sort(together)[::-1][:k].sum())


def _replayed(objective: SetFunction, rows: NDArray[Any], chosen: NDArray[np.int64]) -> Selection:
    """The gains and values of a selection in its own order."""
    items = Items(rows[chosen]).widened()
    state = objective.empty(items)
    gains: list[float] = []
    values: list[float] = []
    for index in range(len(chosen)):
        gains.append(float(np.asarray(objective.gains(items, state))[0, index]))
        member = np.zeros((1, len(chosen)), items.features.dtype)
        member[0, index] = 1
        state = objective.add(items, state, member)
        values.append(float(np.asarray(objective.value(state))[0]))
    return Selection(
        tuple(range(len(chosen))), tuple(gains), tuple(values), Certificate(values[-1], values[-1])
    )


def _state_of(objective: SetFunction, rows: NDArray[Any], chosen: NDArray[np.int64]) -> State:
    items = Items(rows[chosen]).widened()
    member = np.ones((1, len(chosen)), items.features.dtype)
    return objective.add(items, objective.empty(items), member)


def _runner(engine: str, workers: int, address: str | None) -> Callable[..., Iterator[Any]]:
    """What calls a function with every tuple of arguments, and returns the results in order."""
    if engine == "ray":
        ray = connected(address)

        def on_ray(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
            task: Any = ray.remote(num_cpus=1, max_retries=-1)(function)
            yield from ray.get([task.remote(*call) for call in calls])

        return on_ray

    def here(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Iterator[Any]:
        if workers == 1:
            yield from (function(*call) for call in calls)
            return
        with ThreadPoolExecutor(workers) as pool:  # the searches release the GIL
            yield from pool.map(function, *zip(*calls, strict=True))

    return here
