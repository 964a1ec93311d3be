"""Tables of sets with gold, in memory, and their batches: what a network learns from.

    DenseTable(x, gold, mask)               # sets of vectors, padded already
    MatchTable([...])                       # queries against their passages (dgn.learn.facets)

A table says how large its sets are and makes a batch of some of them; the order follows from the
seed and the number of the epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.core.arrays import Bool, Float
from dgn.errors import InvalidInput

_BATCHES_PER_POOL = 50


@dataclass(frozen=True, eq=False)
class Batch:
    """Some sets of a table, padded to the same number of items.

    Attributes:
        x: What the network takes, for example [batch, items, inputs].
        gold: [batch, items], True for gold items.
        mask: [batch, items], True for real items.
    """

    x: Any
    gold: Bool[Tensor, "batch items"]
    mask: Bool[Tensor, "batch items"]


class Table(ABC):
    """Sets with gold, in memory.

    Args:
        lengths: [sets], the number of items of each set.
    """

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        self.lengths = lengths

    @final
    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """The batch of the sets with these numbers."""

    @final
    def steps(self, batch_size: int) -> int:
        """The number of batches of an epoch."""
        return -(-len(self) // batch_size)

    @final
    def shuffled(self, batch_size: int, seed: int, epoch: int) -> Iterator[Batch]:
        """All sets once, in batches of similar length; the seed and the epoch give the order."""
        random = np.random.default_rng([seed, epoch])
        shuffled = random.permutation(len(self))
        pool = batch_size * _BATCHES_PER_POOL
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(shuffled), pool):
            together = shuffled[start : start + pool]
            together = together[np.argsort(self.lengths[together], kind="stable")]
            batches += np.split(together, range(batch_size, len(together), batch_size))
        order: list[int] = random.permutation(len(batches)).tolist()
        for number in order:
            yield self.batch(batches[number])

    @final
    def once(self, batch_size: int) -> Iterator[tuple[NDArray[np.int64], Batch]]:
        """All sets once, by length, with the numbers of the sets of each batch."""
        by_length = np.argsort(self.lengths, kind="stable")
        for start in range(0, len(self), batch_size):
            rows = by_length[start : start + batch_size]
            yield rows, self.batch(rows)


@final
class DenseTable(Table):
    """Sets of vectors, padded already; batches are on the device of the tensors.

    Args:
        x: [sets, items, inputs].
        gold: [sets, items], True for gold items.
        mask: [sets, items], True for real items; by default, all are.
    """

    def __init__(
        self,
        x: Float[Tensor, "sets items inputs"],
        gold: Tensor,
        mask: Tensor | None = None,
    ) -> None:
        self._x, self._gold = x, gold
        self._mask = torch.ones_like(gold) if mask is None else mask
        if x.shape[:2] != gold.shape or gold.shape != self._mask.shape:
            shapes = ", ".join(str(tuple(part.shape)) for part in (x, gold, self._mask))
            raise InvalidInput(
                "table",
                found=f"the shapes {shapes}",
                allowed="x of [sets, items, inputs], gold and mask of [sets, items]",
            )
        super().__init__(np.asarray(self._mask.sum(dim=1).cpu(), np.int64))

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        numbers = torch.from_numpy(rows).to(self._x.device)
        mask = self._mask[numbers]
        return Batch(self._x[numbers], self._gold[numbers] & mask, mask)
