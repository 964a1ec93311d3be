"""Batches of queries of similar length, in an order that the seed determines.

An epoch can be resumed at any batch: the order depends only on the seed and the epoch's number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, namespace
from dgn.errors import InvalidInput

_BATCHES_PER_POOL = 50

ToDevice = Callable[[NDArray[Any]], Array]
"""Moves a NumPy array to where batches are formed: into another library, onto a device."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some queries of a data set, padded to the same number of items.

    Attributes:
        x: What the network's encoder takes, for example [batch, items, inputs].
        gold: [batch, items], True for gold items.
        mask: [batch, items], True for real items.
        rows: [batch], the numbers of the queries.
        negative_weight: [batch, items], how much an item that is not gold counts against the
            gold; None for 1 everywhere.
        teacher_logits: [batch, items], logits of a stronger model, NaN where there are none; None
            if there are none at all.
    """

    x: Any
    gold: Array
    mask: Array
    rows: Array
    negative_weight: Array | None = None
    teacher_logits: Array | None = None


@dataclass(frozen=True)
class Position:
    """A position in training, which a checkpoint saves: the epoch and the next batch."""

    epoch: int = 0
    batch: int = 0


class Batches(ABC):
    """The queries of a data set, batch by batch.

    Args:
        lengths: [queries], the number of items of each query.
        width: The largest number of items of a batch.
        inputs: The number of inputs per item.
        batch_size: The number of queries per batch.
        seed: Determines the order of the queries.
        to_device: Moves the numbers of queries to where batches are formed.
    """

    def __init__(
        self,
        lengths: NDArray[np.int64],
        width: int,
        inputs: int,
        batch_size: int,
        seed: int,
        to_device: ToDevice,
    ) -> None:
        if batch_size < 1:
            raise InvalidInput("batch_size", found=str(batch_size), allowed="at least 1")
        self.lengths, self.width, self.inputs = lengths, width, inputs
        self.batch_size, self.seed = batch_size, seed
        self._to_device = to_device

    @final
    def __len__(self) -> int:
        return -(-self.query_count // self.batch_size)

    @final
    @property
    def query_count(self) -> int:
        """The number of queries."""
        return len(self.lengths)

    @final
    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The batch of these queries."""
        return replace(self.form(self._to_device(rows), self.shape_of(rows)), rows=rows)

    @abstractmethod
    def shape_of(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        """What a batch of these queries must be padded to: its items, and what else varies.

        It is computed on the host, so that nothing waits for a device.
        """

    @abstractmethod
    def form(self, rows: Array, shape: tuple[int, ...]) -> Batch:
        """The batch of queries whose numbers are already where batches are formed.

        Args:
            rows: [batch], the numbers of the queries.
            shape: At least what `shape_of` returns.
        """

    @final
    def rows_from(self, position: Position) -> Iterator[tuple[Position, NDArray[np.int64]]]:
        """The queries of each batch in the rest of the epoch, with the position after it."""
        order = self._order(position.epoch)
        for number in range(position.batch, len(order)):
            yield Position(position.epoch, number + 1), order[number]

    @final
    def once(self) -> Iterator[Batch]:
        """All queries once, by length, for evaluation: nothing is random, padding is rare."""
        by_length = np.argsort(self.lengths, kind="stable")
        for start in range(0, self.query_count, self.batch_size):
            yield self.batch(by_length[start : start + self.batch_size])

    def _order(self, epoch: int) -> list[NDArray[np.int64]]:
        """The queries of each batch: shuffled, sorted by length within pools, shuffled again."""
        random = np.random.default_rng([self.seed, epoch])
        shuffled = random.permutation(self.query_count)
        pool = self.batch_size * _BATCHES_PER_POOL
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(shuffled), pool):
            together = shuffled[start : start + pool]
            together = together[np.argsort(self.lengths[together], kind="stable")]
            batches += np.split(together, range(self.batch_size, len(together), self.batch_size))
        return [batches[i] for i in random.permutation(len(batches))]


@final
class DenseBatches(Batches):
    """Batches of inputs that are already in memory.

    Args:
        x: [queries, items, inputs].
        gold: [queries, items], True for gold items.
        mask: [queries, items], True for real items.
        batch_size: The number of queries per batch.
        seed: Determines the order of the queries.
        to_device: Moves the arrays to where batches are formed; by default they stay NumPy arrays.
    """

    def __init__(
        self,
        x: NDArray[np.float32],
        gold: NDArray[np.bool_],
        mask: NDArray[np.bool_],
        batch_size: int,
        seed: int,
        to_device: ToDevice = lambda array: array,
    ) -> None:
        _, width, inputs = x.shape
        super().__init__(mask.sum(axis=1), width, inputs, batch_size, seed, to_device)
        self._arrays = (to_device(x), to_device(gold), to_device(mask))

    def shape_of(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        del rows
        return (self.width,)

    def form(self, rows: Array, shape: tuple[int, ...]) -> Batch:
        del shape
        x, gold, mask = (namespace(a).take(a, rows, axis=0) for a in self._arrays)
        return Batch(x, gold, mask, rows)
