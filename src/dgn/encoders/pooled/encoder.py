"""The pooled features at run time: NumPy alone, trained or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.encoders.base import Encoder
from dgn.objectives import FeatureCoverage, Items, Power, SetFunction
from dgn.query import Query
from dgn.text import PooledVectors, split_words, unit_rows


@final
class PooledEncoder(Encoder):
    """X = query ⊙ passage of pooled vectors, through the layers that were learned.

    Without weights this is the untrained greedy baseline of the paper: relu(scale · X), all
    features with the same weight.

    Args:
        vectors: The vectors of texts.
        scale: Untrained only: what X is multiplied with.
        unit: Whether the vectors are scaled to length 1.
        weights: What was learned: `features.layers.N.weight` and `.bias` for each layer, and
            either `objective.raw` (a DGN) or `score.weight` and `score.bias` (a pointwise model).
        source: The vectors as `open_vectors` takes them, for saving.
    """

    def __init__(
        self,
        vectors: PooledVectors,
        scale: float = 100.0,
        *,
        unit: bool = True,
        weights: Mapping[str, NDArray[Any]] | None = None,
        source: str = "",
    ) -> None:
        self._vectors, self._scale, self._unit = vectors, scale, unit
        self.weights, self._source = dict(weights or {}), source

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        texts = [text for query in queries for text in (query.text, *query.texts)]
        vectors = np.asarray(self._vectors.pooled(texts))
        if self._unit:
            vectors = unit_rows(vectors)
        # Features on disk are float16; the same rounding gives the same selection as in training.
        vectors = vectors.astype(np.float16).astype(np.float32)
        longest = max(len(query.passages) for query in queries)
        x = np.zeros((len(queries), longest, vectors.shape[1]), np.float32)
        mask = np.zeros((len(queries), longest), np.bool_)
        place = 0
        for row, query in enumerate(queries):
            count = len(query.passages)
            x[row, :count] = vectors[place] * vectors[place + 1 : place + 1 + count]
            mask[row, :count] = True
            place += 1 + count
        return self._set_function(x, mask)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(split_words(text)) for text in texts]

    @property
    def parameters(self) -> int:
        return sum(weight.size for weight in self.weights.values())

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if not self.weights:
            return super().save()
        description = {
            "family": "pooled",
            "vectors": self._vectors.fingerprint,
            "source": self._source,
            "unit": self._unit,
            "widths": widths_of(self.weights),
            "pointwise": "score.weight" in self.weights,
        }
        return description, self.weights

    def _set_function(self, x: NDArray[Any], mask: NDArray[Any]) -> tuple[SetFunction, Items]:
        if not self.weights:
            return FeatureCoverage(), Items(np.maximum(self._scale * x, 0), mask)
        hidden = x
        for layer in range(len(widths_of(self.weights)) - 1):
            weight = self.weights[f"features.layers.{layer}.weight"]
            hidden = hidden @ weight.T + self.weights[f"features.layers.{layer}.bias"]
            hidden = np.maximum(hidden, 0)
        if "objective.raw" in self.weights:
            alpha = np.logaddexp(self.weights["objective.raw"], np.float32(0))
            return FeatureCoverage(alpha), Items(hidden, mask)
        score = hidden @ self.weights["score.weight"].T + self.weights["score.bias"]
        # Probabilities keep the order of the scores and make a modular set function of them;
        # in float64, because large scores must not become equal.
        probability = np.exp(-np.logaddexp(0, -score.astype(np.float64)))
        return FeatureCoverage(concave=Power(1.0)), Items(probability, mask)


def widths_of(weights: Mapping[str, NDArray[Any]]) -> list[int]:
    """The number of inputs, then the width of every layer."""
    layers = sum(
        name.startswith("features.layers.") and name.endswith(".weight") for name in weights
    )
    shapes = [weights[f"features.layers.{layer}.weight"].shape for layer in range(layers)]
    return [shapes[0][1], *(shape[0] for shape in shapes)]
