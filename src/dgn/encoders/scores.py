"""Scores of the user's own reranker, as one more feature of the sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dgn.encoders.encoder import Encoded
from dgn.errors import InvalidInput
from dgn.objectives import FeatureCoverage, Items

_LINEAR = 1e-3
"""So small a feature stays on the straight part of the logarithm."""


def with_scores(
    encoded: Encoded, scores: Sequence[Sequence[float] | None], weight: float
) -> Encoded:
    """The same with scores of the user's own, as one more feature of the sentences.

    weight: what the best-scored sentence gets for its score, as a share of the largest gain that a
    sentence has without it. Scores add up without diminishing, as relevance does.
    """
    objective = encoded.objective
    if not isinstance(objective, FeatureCoverage):
        raise InvalidInput(
            "scores", found=f"a {type(objective).__name__}", allowed="a FeatureCoverage to add to"
        )
    features = encoded.items.features
    column = np.zeros(features.shape[:2], features.dtype)
    for row, of_query in enumerate(scores):
        if of_query is not None:
            column[row, : len(of_query)] = _from_zero_to_one(np.asarray(of_query, np.float64))
    first = objective.gains(encoded.items, objective.empty(encoded.items)).max(axis=1)
    column *= _LINEAR
    first = np.where(first > 0, first, 1.0)  # where no word is found, the scores alone decide
    own = weight * first / float(objective.concave.of(np.array(_LINEAR)))
    known = np.ones(features.shape[2]) if objective.weights is None else objective.weights
    known = np.broadcast_to(known, (features.shape[0], features.shape[2]))
    weights = np.concatenate([known, own[:, None]], axis=1).astype(features.dtype)
    items = Items(np.concatenate([features, column[..., None]], axis=2), encoded.items.mask)
    return dataclasses.replace(
        encoded, objective=FeatureCoverage(weights, objective.concave), items=items
    )


def _from_zero_to_one(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)
