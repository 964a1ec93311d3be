"""Batches of claims of much the same length, in an order that a seed decides.

An epoch can go on at any batch: the order depends on nothing but the seed and the epoch's number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, namespace
from dgn.data.feature_table import FeatureTable
from dgn.errors import InvalidInput

_BATCHES_IN_A_POOL = 50

Place = Callable[[NDArray[Any]], Array]
"""Puts a NumPy array where batches are formed: into another library, onto a device."""


@dataclass(frozen=True, eq=False)
class Batch:
    """x: [batch, items, inputs], float32, or what else a network takes; gold, mask: [batch,
    items]; rows: [batch], which claims.

    rivals: [batch, items], how much an item that is not gold counts against the gold; None for 1.
    soft: [batch, items], logits of a stronger model, NaN where there is none; None for none at all.
    """

    x: Any
    gold: Array
    mask: Array
    rows: NDArray[np.int64]
    rivals: Array | None = None
    soft: Array | None = None


@dataclass(frozen=True)
class Position:
    """Where an epoch stands: what to save with a checkpoint, and to go on from."""

    epoch: int = 0
    batch: int = 0


class Batches(ABC):
    """The claims of a data set, batch by batch.

    lengths: [claims], how many candidates each has. width: how many items a batch has at most.
    inputs: how many numbers an item has.
    """

    def __init__(
        self, lengths: NDArray[np.int64], width: int, inputs: int, batch_size: int, seed: int
    ) -> None:
        if batch_size < 1:
            raise InvalidInput("batch_size", found=str(batch_size), allowed="at least 1")
        self.lengths, self.width, self.inputs = lengths, width, inputs
        self.batch_size, self.seed = batch_size, seed

    @final
    def __len__(self) -> int:
        return -(-self.claim_count // self.batch_size)

    @final
    @property
    def claim_count(self) -> int:
        """How many claims there are."""
        return len(self.lengths)

    @abstractmethod
    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The batch of these claims."""

    @final
    def from_position(self, position: Position) -> Iterator[tuple[Position, Batch]]:
        """The rest of the epoch, each batch with the position behind it."""
        for behind, rows in self.rows_from(position):
            yield behind, self.batch(rows)

    @final
    def rows_from(self, position: Position) -> Iterator[tuple[Position, NDArray[np.int64]]]:
        """The claims of each batch in the rest of the epoch, with the position behind it."""
        order = self._order(position.epoch)
        for number in range(position.batch, len(order)):
            yield Position(position.epoch, number + 1), order[number]

    @final
    def once(self) -> Iterator[Batch]:
        """All claims once, by length, for evaluation: nothing is random, little is padding."""
        by_length = np.argsort(self.lengths, kind="stable")
        for start in range(0, self.claim_count, self.batch_size):
            yield self.batch(by_length[start : start + self.batch_size])

    def _order(self, epoch: int) -> list[NDArray[np.int64]]:
        """The claims of each batch: shuffled, then sorted by length within pools, then shuffled."""
        random = np.random.default_rng([self.seed, epoch])
        shuffled = random.permutation(self.claim_count)
        pool = self.batch_size * _BATCHES_IN_A_POOL
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(shuffled), pool):
            together = shuffled[start : start + pool]
            together = together[np.argsort(self.lengths[together], kind="stable")]
            batches += np.split(together, range(self.batch_size, len(together), self.batch_size))
        return [batches[i] for i in random.permutation(len(batches))]


def _as_it_is(array: NDArray[Any]) -> Array:
    return array


@final
class ClaimBatches(Batches):
    """Batches of X = claim ⊙ sentence, formed there and then: X itself is never stored.

    place: puts the table where the batches are to be formed, once; after that, only the numbers of
    a batch's claims go there. Left out, the batches are NumPy's.
    """

    def __init__(
        self, table: FeatureTable, batch_size: int, seed: int, place: Place = _as_it_is
    ) -> None:
        lengths = table.lengths
        super().__init__(lengths, int(lengths.max()), table.dimension, batch_size, seed)
        self.table, self._place = table, place
        self._claims, self._sentences = place(table.claims), place(table.sentences)
        self._starts, self._lengths = place(table.offsets[:-1]), place(lengths)
        self._candidates, self._gold = place(table.candidates.astype(np.int64)), place(table.gold)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        xp = namespace(self._sentences)
        here = self._place(rows)
        # Counted on the host, where the lengths are too: a device would have to be waited for.
        longest = int(self.lengths[rows].max())
        place = self._place(np.arange(longest))
        mask = place[None, :] < xp.take(self._lengths, here, axis=0)[:, None]
        index = xp.where(mask, xp.take(self._starts, here, axis=0)[:, None] + place, 0)
        index = xp.reshape(index, (-1,))
        gold = xp.reshape(xp.take(self._gold, index, axis=0), mask.shape) & mask
        rows_of_sentences = xp.take(self._candidates, index, axis=0)
        sentences = xp.take(self._sentences, rows_of_sentences, axis=0)
        sentences = xp.reshape(sentences, (*mask.shape, self.inputs))
        claims = xp.take(self._claims, here, axis=0)[:, None, :]
        x = xp.astype(claims, xp.float32) * xp.astype(sentences, xp.float32)
        return Batch(x, gold, mask, rows)


@final
class DenseBatches(Batches):
    """Batches of an X that is there already, [claims, items, inputs], with gold and mask."""

    def __init__(
        self,
        x: NDArray[np.float32],
        gold: NDArray[np.bool_],
        mask: NDArray[np.bool_],
        batch_size: int,
        seed: int,
        place: Place = _as_it_is,
    ) -> None:
        _, width, inputs = x.shape
        super().__init__(mask.sum(axis=1), width, inputs, batch_size, seed)
        self._place, self._arrays = place, (place(x), place(gold), place(mask))

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        here = self._place(rows)
        x, gold, mask = (namespace(a).take(a, here, axis=0) for a in self._arrays)
        return Batch(x, gold, mask, rows)
