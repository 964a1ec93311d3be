"""What passages say beyond the words of the query, as the second part of the function.

    f = F + λ·P,   P(A) = Σ_u r_u · max_{a ∈ A ∪ G} K(u, a),   λ = b / (1 − b) · F(V) / P(V)

F is the coverage of the query's words, P how well the selected passages (and the given texts G)
represent all passages V, K the similarity of two of them, and r the relevance of a passage. b is
`breadth`: 0 is F alone, and 1 is P alone. Both are monotone and submodular, and so is their sum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, Mixture, SetFunction
from dgn.errors import InvalidInput
from dgn.selector.coverage import relevance_of
from dgn.selector.search import tie_order
from dgn.text.encoder import Encoder
from dgn.text.query import Query
from dgn.text.similarity import Contents

MOST_COMPARED, _LEAST_COMPARED, _MOST_NUMBERS = 512, 64, 1 << 22
"""P is about at most so many passages, those with the largest first gain; about fewer, if there are
so many passages that a number for each pair of both would take more memory than this."""

MOST_WITHOUT_QUERY = 20_000
_BLOCK = 1024

_LEAST_RELEVANCE = 0.01
_RELEVANCE_EXPONENT = 2 / 3
"""Passages of little relevance count for somewhat more than it: an answer may lack the query's
words. With 1, three copies of one story outvote it."""


def contents_of_query(encoder: Encoder, query: Query, indices: NDArray[np.int64]) -> Contents:
    """What the query, some of its passages, and the given texts say."""
    contents = _contents(encoder, query, indices)
    if contents is None:
        name = type(encoder).__name__
        raise InvalidInput(
            "breadth",
            message=f"{name} does not say what passages are about (Encoder.contents), which "
            "breadth above 0 and selecting without a query need.",
        )
    return contents


def _contents(encoder: Encoder, query: Query, indices: NDArray[np.int64]) -> Contents | None:
    contents = encoder.contents(query, indices)
    if contents is None or query.embeddings is None:
        return contents
    vectors = np.zeros((len(contents.start) - 1, query.embeddings.shape[1]), np.float32)
    rows = indices + 1
    first = int(bool(query.text))
    vectors[: len(rows) + first] = query.embeddings[[0, *rows] if first else rows]
    return replace(contents, vectors=vectors)


def without_given(encoder: Encoder, query: Query, items: Items) -> Items:
    """The passages of a query, each with the part of its features that no given text has said."""
    parts: list[NDArray[np.float32]] = []
    for start in range(0, len(query.passages), _BLOCK):
        indices = np.arange(start, min(start + _BLOCK, len(query.passages)))
        contents = _contents(encoder, query, indices)
        if contents is None:
            return items
        parts.append(contents.copies_of_given())
    copied = np.concatenate(parts)
    if not copied.any():
        return items
    left = np.ones((1, items.size, 1), items.features.dtype)
    left[0, : len(copied), 0] = 1 - copied
    return Items(items.features * left, items.mask)


def with_breadth(
    encoder: Encoder,
    query: Query,
    objective: SetFunction,
    items: Items,
    given: Items | None,
    breadth: float,
    new: Items | None = None,
) -> tuple[Mixture, Items, Items | None, Items | None]:
    """F + λP for one query.

    Args:
        encoder: What has read the query.
        query: The query.
        objective: F, with the caller's scores.
        items: Its passages, without repeats.
        given: The given texts, as items.
        breadth: b, above 0.
        new: The passages without what given texts have said; None if that is nothing.

    Returns:
        The function; and `items`, `given` and `new` with what they say as further features.
    """
    chosen = _most_promising(query, objective, items if new is None else new)
    similar = contents_of_query(encoder, query, chosen).similarities()
    count, width = len(chosen), items.features.shape[2]
    relevance = relevance_of(objective, items)[chosen] ** _RELEVANCE_EXPONENT
    relevance = np.maximum(relevance, _LEAST_RELEVANCE)
    dtype = items.features.dtype

    def widened(part: Items, rows: Any, said: NDArray[Any]) -> Items:
        features = np.zeros((1, part.size, width + count), dtype)
        features[:, :, :width] = part.features
        features[0, rows, width:] = said
        return Items(features, part.mask)

    whole = _value_of_all(objective, items)
    weights = np.array([[0.0, 1.0]])
    if breadth < 1 and whole > 0:
        weights = np.array([[1.0, breadth / (1 - breadth) * whole / float(relevance.sum())]])
    represented = FacilityLocation(relevance[None].astype(dtype))
    mixture = Mixture(
        (_with_weights(objective, width), represented),
        weights.astype(dtype),
        (slice(0, width), slice(width, width + count)),
    )
    said = similar[:, :count].T
    if given is not None:
        given = widened(given, slice(0, len(query.given)), similar[:, count:].T)
    new = None if new is None else widened(new, chosen, said)
    return mixture, widened(items, chosen, said), given, new


def without_query(encoder: Encoder, query: Query) -> tuple[FacilityLocation, Items, Items | None]:
    """P alone, where rare kinds of passages count as much as common ones.

    Returns:
        The function, the passages, and the given texts.
    """
    count = len(query.passages)
    if count > MOST_WITHOUT_QUERY:
        raise InvalidInput(
            "passages",
            message=f"{count:,} passages are too many to be compared with each other; without a "
            f"query, {MOST_WITHOUT_QUERY:,} are allowed. Use parts of them first, or pass a query.",
        )
    contents = contents_of_query(encoder, query, np.arange(count))
    similar = contents.similarities()
    takes_part = np.array(query.twins) == np.arange(count)
    takes_part[list(query.blank)] = False
    neighbours = np.maximum(similar[:, :count] @ takes_part.astype(np.float32), 1)  # and itself
    weights = np.where(takes_part, 1 / neighbours, 0)[None].astype(np.float32)
    given = Items(similar[None, :, count:].swapaxes(1, 2)) if query.given else None
    # K is symmetric: its columns are what each passage says.
    return FacilityLocation(weights), Items(similar[None, :, :count]), given


def _most_promising(query: Query, objective: SetFunction, items: Items) -> NDArray[np.int64]:
    """The passages that P is about: those with the largest first gain, and pinned ones."""
    real = np.flatnonzero(items.mask[0])
    most = max(_LEAST_COMPARED, min(MOST_COMPARED, _MOST_NUMBERS // max(1, len(real))))
    if len(real) <= most:
        return real
    gains = np.asarray(objective.gains(items, objective.empty(items)))[0]
    gains = np.where(items.mask[0], gains, -1)
    gains[list(query.pinned)] = np.inf
    most = max(most, len(query.pinned))
    order = tie_order(query, items.size)
    return np.sort(order[np.argsort(-gains[order], kind="stable")[:most]])


def _value_of_all(objective: SetFunction, items: Items) -> float:
    """F(V); without the columns that pad a batch, by whose number NumPy rounds sums."""
    if isinstance(objective, FeatureCoverage) and np.ndim(objective.weights) == 2:
        weights = np.asarray(objective.weights)[0]
        counts = np.flatnonzero(weights)
        level = items.features[0][:, counts].sum(axis=0)  # padding is 0
        return float(objective.concave.of(level) @ weights[counts])
    everything = np.asarray(items.mask, items.features.dtype)
    return objective.value(objective.add(items, objective.empty(items), everything)).item()


def _with_weights(objective: SetFunction, width: int) -> SetFunction:
    """The function with weights of its own for each feature, as the kernel of a sum needs them."""
    if isinstance(objective, FeatureCoverage) and objective.weights is None:
        return FeatureCoverage(np.ones(width), objective.concave, objective.target)
    return objective
