"""Scores and embeddings of the caller as further features, and how much they are worth.

Both are columns under the same concave function as the words, so that f stays monotone and
submodular, the compiled search is used, and passages that say something new are still selected when
some passages with a high score were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import Concave, FeatureCoverage, Items, Log1p, Mixture, SetFunction
from dgn.selector.coverage import relevance_of
from dgn.text.query import Query

_SCALE = 3.0
"""The best score before the concave function; 0 is the worst."""

_VECTOR_SCALE = 30.0
"""What query ⊙ passage is multiplied with before the concave function, as in the paper."""

_VECTOR_SHARE = 0.5
"""The part of the weight of embeddings that the single dimensions have; the cosine has the rest."""

_FEW = 4
"""With fewer passages, agreement says nothing, and scores are worth this much: """
_FEW_WEIGHT = 0.25

# The numbers below were chosen on the training parts of 32 sets: experiments/own_scores.py.
_AGREEING = 0.4
"""From this agreement with the model on, scores are trusted completely."""

_SURE, _UNSURE = 0.4, 0.1
"""If the best passage covers less of the query than the second, the model cannot judge scores."""

Columns = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Further features of one query, [passages, columns], and their weights, [columns]."""


def with_scores(
    queries: Sequence[Query],
    objective: SetFunction,
    items: Items,
    weight: float | None,
    given: Items | None = None,
    share: float = 1.0,
) -> tuple[SetFunction, Items, Items | None]:
    """Add the scores and the embeddings of the callers; without any, nothing changes.

    Args:
        queries: The queries.
        objective: The set function.
        items: The passages.
        weight: What the best score of a query is worth, as a multiple of the largest gain without
            scores; None to find it out for each query.
        given: Texts that are given with the queries; they get the same features, without a score.
        share: Of what was found out, how much counts.

    Returns:
        The function, the passages and the given texts.
    """
    scores = [query.scores for query in queries]
    if all(one is None for one in scores) and all(one.embeddings is None for one in queries):
        return objective, items, given
    gains = np.asarray(objective.gains(items, objective.empty(items)), np.float64)
    first = gains.max(axis=1)
    first = np.where(first > 0, first, 1.0)  # if no word is found, the scores alone decide
    concave = objective.concave if isinstance(objective, FeatureCoverage) else Log1p()
    columns: list[list[Columns]] = []
    silent: list[int] = []
    for row, query in enumerate(queries):
        own: list[Columns] = []
        size = len(query.passages)
        f, passages = (
            (objective, items)
            if items.batch == 1
            else (objective.of_set(row), items.of_set(row, size))
        )
        trust = _Trust(f, passages, gains[row, :size], weight, share)
        if trust.says_nothing and (scores[row] is not None or query.embeddings is not None):
            silent.append(row)
        if scores[row] is not None:
            values = _scaled(np.asarray(scores[row], np.float64))
            own.append(_score_column(values, first[row] * trust.in_scores(values), concave))
        if query.embeddings is not None:
            vectors = query.embeddings.astype(np.float64)
            worth = first[row] * trust.in_scores(vectors[1:] @ vectors[0])
            of_dimensions = 0.0 if trust.says_nothing else _VECTOR_SHARE
            own += _vector_columns(vectors, worth, items.mask[row, :size], concave, of_dimensions)
        columns.append(own)
    if silent:  # what is left of the model is a guess; the caller knows more
        features = items.features.copy()
        features[silent] = 0
        items = Items(features, items.mask)
    return _joined(objective, items, columns, given)


def vector_function(query_embedding: Any, embeddings: Any) -> tuple[SetFunction, Items]:
    """The objective of the paper on vectors alone, for images, products and other items.

    The items are query ⊙ item, as far as it is positive: what an item and the query have in
    common, dimension by dimension. Items with nearly the same vector cover the same.

    Args:
        query_embedding: [width], the vector of what is looked for.
        embeddings: [items, width], the vectors of the items.

    Returns:
        A set function and items, for `greedy` and the other searches.

    Examples:
        >>> from dgn import greedy
        >>> f, items = vector_function([1, 1, 0], [[1, 0, 0], [1, 0.1, 0], [0, 1, 1], [0, 0, 1]])
        >>> greedy(f, items, k=2).indices
        (1, 2)
    """
    from dgn.text.query import checked_embeddings

    count = len(embeddings)
    vectors = checked_embeddings(query_embedding, embeddings, count)
    assert vectors is not None  # noqa: S101
    common = np.maximum(vectors[1:] * vectors[0], 0)
    return FeatureCoverage(), Items(_VECTOR_SCALE * common)


class _Trust:
    """How much scores of a query are worth, as a multiple of the largest gain without them.

    Scores that contradict a model that is sure of its best passage are trusted less.
    """

    def __init__(
        self,
        objective: SetFunction,
        items: Items,
        gains: NDArray[np.float64],
        weight: float | None,
        share: float,
    ) -> None:
        self._weight, self._gains, self._share = weight, gains, share
        self._allowed = np.asarray(items.mask[0], np.bool_)
        best = relevance_of(objective, items).max(initial=0.0)
        self._sure = _share(best, _UNSURE, _SURE)
        self.says_nothing = not best
        """Whether no passage contains a word of the query, or one that is near it."""

    def in_scores(self, scores: NDArray[np.float64]) -> float:
        """What the best of these scores, one for each passage, is worth."""
        if self._weight is not None:
            return self._weight
        allowed = self._allowed
        if self.says_nothing:
            return 1.0
        if allowed.sum() < _FEW:
            return self._share * _FEW_WEIGHT
        agreeing = _share(_agreement(scores[allowed], self._gains[allowed]), 0.0, _AGREEING)
        return self._share * (1 - self._sure * (1 - agreeing))


def _score_column(scores: NDArray[np.float64], worth: float, concave: Concave) -> Columns:
    """Scores from 0 to 1, of which the best one is worth so much."""
    return _SCALE * scores[:, None], worth / concave.of(np.array([_SCALE]))


def _vector_columns(
    vectors: NDArray[np.float64],
    worth: float,
    allowed: NDArray[np.bool_],
    concave: Concave,
    share: float,
) -> list[Columns]:
    """The cosine with the query, and a share of what both have in common in each dimension."""
    cosines = _scaled(vectors[1:] @ vectors[0])
    found = [_score_column(cosines, (1 - share) * worth, concave)]
    if not share:
        return found
    common = np.maximum(vectors[1:] * vectors[0], 0)
    # What all passages have in common says nothing about any of them.
    common = _VECTOR_SCALE * np.maximum(common - common[allowed].min(axis=0, initial=np.inf), 0)
    most = concave.of(common).sum(axis=1)[allowed].max(initial=0.0)
    if most > 0:
        weights = np.full(common.shape[1], share * worth / float(most))
        found.append((common, weights))
    return found


def _joined(
    objective: SetFunction,
    items: Items,
    columns: Sequence[Sequence[Columns]],
    given: Items | None,
) -> tuple[SetFunction, Items, Items | None]:
    """The function and the items with further columns, padded to the most of any query."""
    features = items.features
    width = max(sum(len(weights) for _, weights in own) for own in columns)
    shape = (items.batch, features.shape[-1])
    middle = features.shape[-1]
    wider = _widened(features, width)
    weights = np.zeros((items.batch, middle + width), features.dtype)
    f = objective if type(objective) is FeatureCoverage else None
    ends = np.full(items.batch, middle)
    if f is not None:
        weights[:, :middle] = 1 if f.weights is None else f.weights
        # Directly after the features of the query itself, where padding begins: sums over a row
        # are then the same in every batch, bit for bit.
        if getattr(f.weights, "ndim", 1) == 2:
            ends = np.array([np.flatnonzero(row)[-1] + 1 if row.any() else 0 for row in weights])
    for row, own in enumerate(columns):
        at = int(ends[row])
        for values, by_column in own:
            end = at + len(by_column)
            wider[row, : len(values), at:end], weights[row, at:end] = values, by_column
            at = end
    found = Items(wider, items.mask if items.has_padding else None)
    if given is not None:
        more = _widened(given.features, width)
        for row, end in enumerate(ends.tolist()):
            more[row, :, end:] = 0  # what stands there are scores now
        given = Items(more, given.mask)
    if f is None:
        added = FeatureCoverage(weights[:, middle:])
        views = (slice(0, middle), slice(middle, None))
        return Mixture((objective, added), np.ones(2, weights.dtype), views), found, given
    target = None
    if f.target is not None:
        target = np.zeros_like(weights)
        target[:, :middle] = np.broadcast_to(f.target, shape)
        for row, end in enumerate(ends.tolist()):
            target[row, end:] = 0
    return FeatureCoverage(weights, f.concave, target), found, given


def _widened(features: NDArray[Any], width: int) -> NDArray[Any]:
    """The features with so many further columns of zeros."""
    more = np.zeros((*features.shape[:2], width), features.dtype)
    return np.concatenate([features, more], axis=2)


def _scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores between 0 and 1; equal scores say nothing and become 0."""
    scores = scores / (np.abs(scores).max() or 1.0)  # the range of huge scores would overflow
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)


def _agreement(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The correlation of two lists of scores; 0 if one of them says nothing."""
    a, b = first - first.mean(), second - second.mean()
    length = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / length if length > 1e-12 else 0.0


def _share(value: float, low: float, high: float) -> float:
    """How far a value is from low to high, from 0 to 1."""
    return min(1.0, max(0.0, (value - low) / (high - low)))
