"""Batches of matches, for training the claim facets."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.data.batches import Batch, Batches, Place
from dgn.encoders.match_table import MatchTable, PaddedClaims


@final
class MatchBatches(Batches):
    """Batches whose x is Matches, padded there and then."""

    def __init__(self, table: MatchTable, batch_size: int, seed: int, place: Place) -> None:
        super().__init__(table.items, int(table.items.max()), table.dimension, batch_size, seed)
        self._place, self._claims = place, PaddedClaims(table)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        matches, labels = self._claims.of(rows)
        placed: Any = matches.placed(self._place)
        return Batch(
            placed,
            self._place(labels.gold),
            placed.mask,
            rows,
            self._place(labels.rivals),
            self._place(labels.soft),
        )
