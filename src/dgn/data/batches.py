"""Features of a whole data set, resident in memory, and batches gathered from them.

Every sentence is embedded once, however many claims look at its page. A batch gathers the rows
that it needs and forms X = claim ⊙ sentence there and then, on the device where the tables lie: X
itself is never stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, device_of, namespace
from dgn.errors import InvalidInput

_BATCHES_IN_A_POOL = 50
ARRAYS = ("claims", "sentences", "offsets", "candidates", "gold", "ids")


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The features of a data set.

    claims: [claims, dimension]; sentences: [sentences, dimension]; float16.
    offsets: [claims + 1]; the candidates of claim i are candidates[offsets[i]:offsets[i + 1]].
    candidates: rows of `sentences`. gold: one for each candidate.
    ids: [claims], the claims' ids: the way back to their text.
    """

    claims: NDArray[Any]
    sentences: NDArray[Any]
    offsets: NDArray[np.int64]
    candidates: NDArray[np.int32]
    gold: NDArray[np.bool_]
    ids: NDArray[Any]

    def __len__(self) -> int:
        return len(self.claims)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[claims], how many candidates each has."""
        return np.diff(self.offsets)

    @classmethod
    def load(cls, folder: Path | str) -> FeatureTable:
        """Open the features that `dgn data features` wrote."""
        folder = Path(folder)
        if not (folder / "meta.json").is_file():
            raise InvalidInput(
                "folder", found=f"no features in {folder}", allowed="what dgn data features wrote"
            )
        return cls(*(np.load(folder / f"{name}.npy") for name in ARRAYS))


@dataclass(frozen=True, eq=False)
class Batch:
    """x: [batch, items, dimension], float32; gold, mask: [batch, items]; rows: [batch], which."""

    x: Array
    gold: Array
    mask: Array
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Position:
    """Where an epoch stands: what to save with a checkpoint, and to go on from."""

    epoch: int = 0
    batch: int = 0


class ClaimBatches:
    """Batches of claims of much the same length, in an order that a seed decides.

    claims, sentences: the tables of a FeatureTable as arrays of any library, on any device; the
    batches come as the same. Left out, they are the table's own, as NumPy.
    """

    def __init__(
        self,
        table: FeatureTable,
        batch_size: int,
        seed: int,
        claims: Array = None,
        sentences: Array = None,
    ) -> None:
        if batch_size < 1:
            raise InvalidInput("batch_size", found=str(batch_size), allowed="at least 1")
        self.table, self.batch_size, self.seed = table, batch_size, seed
        self._claims = table.claims if claims is None else claims
        self._sentences = table.sentences if sentences is None else sentences

    def __len__(self) -> int:
        return -(-len(self.table) // self.batch_size)

    def from_position(self, position: Position) -> Iterator[tuple[Position, Batch]]:
        """The rest of the epoch, each batch with the position behind it."""
        order = self._order(position.epoch)
        for number in range(position.batch, len(order)):
            yield Position(position.epoch, number + 1), self.batch(order[number])

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The batch of these claims."""
        table = self.table
        lengths = table.lengths[rows]
        place = np.arange(int(lengths.max()))
        mask = place < lengths[:, None]
        index = np.where(mask, table.offsets[rows, None] + place, 0)
        gold = table.gold[index] & mask
        sentences = self._take(self._sentences, table.candidates[index].reshape(-1))
        xp = namespace(sentences)
        sentences = xp.reshape(sentences, (*mask.shape, sentences.shape[-1]))
        claims = self._take(self._claims, rows)[:, None, :]
        x = xp.astype(claims, xp.float32) * xp.astype(sentences, xp.float32)
        return Batch(x, self._like_tables(gold), self._like_tables(mask), rows)

    def _order(self, epoch: int) -> list[NDArray[np.int64]]:
        """The claims of each batch: shuffled, then sorted by length within pools, then shuffled."""
        random = np.random.default_rng([self.seed, epoch])
        shuffled = random.permutation(len(self.table))
        pool = self.batch_size * _BATCHES_IN_A_POOL
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(shuffled), pool):
            together = shuffled[start : start + pool]
            together = together[np.argsort(self.table.lengths[together], kind="stable")]
            batches += np.split(together, range(self.batch_size, len(together), self.batch_size))
        return [batches[i] for i in random.permutation(len(batches))]

    def _take(self, table: Array, rows: NDArray[Any]) -> Array:
        return namespace(table).take(table, self._like_tables(rows.astype(np.int64)), axis=0)

    def _like_tables(self, array: NDArray[Any]) -> Array:
        xp = namespace(self._sentences)
        return xp.asarray(array, device=device_of(self._sentences))


def write_meta(folder: Path, meta: dict[str, object]) -> None:
    """The last file of a features folder: what it was made from."""
    (folder / "meta.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
