"""Facility location: every feature is served by its best item alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dgn.core.arrays import Array, Float, namespace
from dgn.core.functions.base import WeightedCoverage, as_array
from dgn.core.items import Items, State
from dgn.errors import InvalidInput

_MOST_VECTORS, _BLOCK = 20_000, 512


@final
@dataclass(frozen=True, eq=False)
class FacilityLocation(WeightedCoverage):
    """f(A) = Σ_u w_u · max_{a∈A} h_{a,u}, where h_{a,u} says how well item a serves place u.

    With a similarity matrix as features (the places are the items themselves), the value of a set
    is how well it represents all items. Choose it to summarize a set by typical items; `of_vectors`
    makes the matrix. A soft set serves u with max_a s_a · h_{a,u}.
    """

    feature_hint = (
        "FacilityLocation needs similarities; FacilityLocation.of_vectors(x) makes them of vectors."
    )

    @classmethod
    def of_vectors(cls, vectors: Any, weights: Any = None) -> tuple[FacilityLocation, Items]:
        """The function and the items for vectors: similarities are cosines, and 0 below it.

        Args:
            vectors: [items, width], at most 20,000 of them: 1.6 GB for their similarities.
            weights: [items], how much each item counts as a place; by default all alike.

        Returns:
            The function and the items, for `greedy`, or for `lazy_greedy` if there are thousands.

        Examples:
            >>> from dgn import greedy
            >>> vectors = [[1.0, 0.0], [0.9, 0.1], [1.0, 0.1], [0.0, 1.0]]
            >>> greedy(*FacilityLocation.of_vectors(vectors), k=2).indices
            (1, 3)
        """
        rows = as_array("vectors", vectors)
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise InvalidInput(
                "vectors", found=f"shape {rows.shape}", allowed="finite numbers, [items, width]"
            )
        if len(rows) > _MOST_VECTORS:
            raise InvalidInput(
                "vectors",
                message=f"{len(rows):,} vectors are too many to be compared with each other; "
                f"{_MOST_VECTORS:,} are allowed. Use parts of them, and then what was selected.",
            )
        largest = np.abs(rows).max(axis=1, keepdims=True)
        units = (rows / np.where(largest > 0, largest, 1)).astype(np.float32)
        length = np.linalg.norm(units, axis=1, keepdims=True)
        units /= np.where(length > 0, length, 1)
        similar = np.empty((len(units), len(units)), np.float32)
        for start in range(0, len(units), _BLOCK):
            block = similar[start : start + _BLOCK]
            np.matmul(units[start : start + _BLOCK], units.T, out=block)
            np.maximum(block, 0, out=block)
        return cls(weights), Items(similar)

    @property
    def monotone(self) -> bool | None:
        return True

    def covered(self, level: Float[Array, "batch features"]) -> Float[Array, "batch features"]:
        return level

    def increases(self, items: Items, state: State) -> Float[Array, "batch items features"]:
        xp = namespace(items.features)
        better = items.features - state.level[:, None, :]
        return xp.maximum(better, xp.zeros_like(better))

    def highest(self, best: Float[Array, "batch features"], items: int) -> Array:
        del items
        return best

    def raised(
        self, items: Items, state: State, joining: Float[Array, "batch items"]
    ) -> Float[Array, "batch features"]:
        xp = namespace(items.features)
        inside = 1 - state.outside + joining
        served = inside[..., None] * items.features
        return xp.maximum(state.level, xp.max(served, axis=1))
