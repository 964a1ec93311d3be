"""The search of a selector: which passages of each query, within its limits.

The encoder gives a set function and items. Limits may leave out passages, change the function
(scores of the caller, costs in tokens), and cut the selection; each of these is a function here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array
from dgn.core.functions import FeatureCoverage, Items, Mixture, SetFunction
from dgn.core.search import Certificate, Selection, Selections, budgeted_greedy, greedy
from dgn.selector.coverage import progress, relevance_of
from dgn.selector.limits import Limits, integer
from dgn.text.query import Query

_SCORE_SCALE = 3.0
"""The best score before the concave function; 0 is the worst."""

_NOTHING = Selection((), (), (), Certificate(0.0, 0.0))


class Maximizer(Protocol):
    """A search in one set: `greedy`, `lazy_greedy`, `exact`, or one of your own."""

    def __call__(self, objective: SetFunction, items: Items, k: int) -> Selection | Selections: ...


def search_passages(
    queries: Sequence[Query],
    objective: SetFunction,
    items: Items,
    limits: Limits,
    *,
    count_tokens: Callable[[Sequence[str]], list[int]],
    maximizer: Maximizer = greedy,
    may_reorder: bool = True,
) -> list[tuple[Selection, SetFunction, Items]]:
    """Select passages of each query within the limits.

    Args:
        queries: The queries.
        objective: The set function of the batch.
        items: The passages of the queries as items, without repeated ones.
        limits: How much to select.
        count_tokens: Counts the tokens of texts, unless the limits have a function of their own.
        maximizer: The search for k passages.
        may_reorder: Whether the function allows the items in another order.

    Returns:
        For each query the selection, and the function and the items that were really searched.
    """
    allowed, is_empty = items, [False] * len(queries)
    if limits.min_relevance:
        allowed, is_empty = _relevant(objective, items, limits.min_relevance)
    f, searched = objective, allowed
    costs = None
    if limits.max_tokens is not None:
        f, searched = _per_token(f, searched)
        costs = _token_costs(queries, items.size, limits, count_tokens)
    scores = [query.scores for query in queries]
    if any(one is not None for one in scores):
        f, searched = with_scores(f, searched, scores, limits.score_weight)
    selections = _search_in_tie_order(
        queries, f, searched, limits, costs, maximizer, may_reorder=may_reorder
    )
    results: list[tuple[Selection, SetFunction, Items]] = []
    for row, selection in enumerate(selections):
        own_f, own_items = of_query(f, searched, row)
        if is_empty[row]:
            selection = _NOTHING
        elif limits.stop_at is not None:
            left = of_query(objective, allowed, row)
            price = None if costs is None else costs[row : row + 1, : own_items.size]
            count = _enough(*left, selection, limits.stop_at)
            if count < len(selection):
                # The second search gives the bound for so many passages.
                again = _search(own_f, own_items, limits, count, price, maximizer)[0]
                selection = _first(selection, count, again.certificate.bound)
        results.append((selection, own_f, own_items))
    return results


def of_query(objective: SetFunction, items: Items, row: int) -> tuple[SetFunction, Items]:
    """The function and the items of one query of a batch, with arrays of their own."""
    if items.batch == 1 and items.mask[0, -1]:
        return objective, items
    return objective.of_set(row), items.of_set(row)


def without_repeats(queries: Sequence[Query], items: Items) -> Items:
    """The items without passages that repeat an earlier one: they add nothing to any set."""
    if all(len(set(query.twins)) == len(query.twins) for query in queries):
        return items
    repeats = np.zeros((items.batch, items.size), np.bool_)
    for row, query in enumerate(queries):
        repeats[row, : len(query.twins)] = np.array(query.twins) != np.arange(len(query.twins))
    return Items(items.features, items.mask & ~repeats)


def with_scores(
    objective: SetFunction, items: Items, scores: Sequence[Sequence[float] | None], weight: float
) -> tuple[SetFunction, Items]:
    """Add the caller's scores as one more feature; f stays monotone and submodular.

    It is under a concave function as the other features are, so that passages that say something
    new are still selected when some passages with a high score were.

    Args:
        objective: The set function.
        items: The passages.
        scores: For each query, one score for each passage, or None.
        weight: What the best score of a query is worth, as a multiple of the largest gain without
            scores.
    """
    features = items.features
    column = np.zeros((items.batch, items.size), features.dtype)
    for row, own in enumerate(scores):
        if own is not None:
            column[row, : len(own)] = _SCORE_SCALE * _scaled(np.asarray(own, np.float64))
    first = objective.gains(items, objective.empty(items)).max(axis=1)
    first = np.where(first > 0, first, 1.0)  # if no word is found, the scores alone decide
    mask = items.mask if items.has_padding else None
    if type(objective) is not FeatureCoverage:
        alone = FeatureCoverage((weight * first / np.log1p(_SCORE_SCALE))[:, None])
        both = Mixture((objective, alone), np.ones(2), (slice(None, -1), slice(-1, None)))
        return both, Items(np.concatenate([features, column[..., None]], axis=2), mask)
    best = objective.concave.of(np.array(_SCORE_SCALE))
    worth = (weight * first / best).astype(features.dtype)
    width = features.shape[2]
    weights = np.zeros((items.batch, width + 1), features.dtype)
    weights[:, :width] = 1 if objective.weights is None else objective.weights
    # Directly after the features of the query itself, where padding begins: sums over a row are
    # then the same in every batch, bit for bit.
    ends = np.full(items.batch, width)
    if getattr(objective.weights, "ndim", 1) == 2:
        ends = np.array([np.flatnonzero(row)[-1] + 1 if row.any() else 0 for row in weights])
    rows = np.arange(items.batch)
    weights[rows, ends] = worth
    wider = np.concatenate([features, np.zeros_like(features[:, :, :1])], axis=2)
    wider[rows, :, ends] = column
    target = objective.target
    if target is not None:
        target = np.zeros_like(weights)
        target[:, :width] = objective.target
        target[rows, ends] = 0
    return FeatureCoverage(weights, objective.concave, target), Items(wider, mask)


def _relevant(objective: SetFunction, items: Items, least: float) -> tuple[Items, list[bool]]:
    """The items without passages of less relevance, and whether a query has none left.

    Of a query that has none left, the passages stay, since a search needs one.
    """
    mask = items.mask.copy()
    is_empty: list[bool] = []
    for row in range(items.batch):
        relevance = relevance_of(*of_query(objective, items, row))
        kept = mask[row, : len(relevance)] & (relevance >= least)
        is_empty.append(not kept.any())
        if kept.any():
            mask[row, : len(relevance)] = kept
    return Items(items.features, mask), is_empty


def _per_token(objective: SetFunction, items: Items) -> tuple[SetFunction, Items]:
    """The function and the items for a search that pays per token.

    Only features that count in the coverage are kept, and what every passage of a query has in
    common is subtracted: it is worth the same in a short passage as in a long one, and per token it
    would buy short passages that say nothing. If nothing else is left of a query, its passages stay
    as they are.
    """
    f, mask = objective.counted(), items.mask
    hidden = np.where(mask[..., None], items.features, np.inf)
    reduced = Items(items.features - hidden.min(axis=1, keepdims=True), mask)
    has_gain = f.gains(reduced, f.empty(reduced)).max(axis=1) > 0
    # Multiplied, because the features of a query are replaced completely or not at all.
    share = has_gain[:, None, None].astype(reduced.features.dtype)
    return f, Items(share * reduced.features + (1 - share) * items.features, mask)


def _token_costs(
    queries: Sequence[Query],
    size: int,
    limits: Limits,
    count_tokens: Callable[[Sequence[str]], list[int]],
) -> NDArray[np.float64]:
    """[queries, size], the tokens of each passage."""
    texts = [text for query in queries for text in query.texts]
    if limits.count_tokens is None:
        counts = count_tokens(texts)
    else:
        counts = [integer("count_tokens(text)", limits.count_tokens(text), 0) for text in texts]
    left = iter(counts)
    costs = np.ones((len(queries), size))
    for row, query in enumerate(queries):
        for index in range(len(query.passages)):
            costs[row, index] = max(1, next(left))
    return costs


def _search_in_tie_order(
    queries: Sequence[Query],
    objective: SetFunction,
    items: Items,
    limits: Limits,
    costs: NDArray[np.float64] | None,
    maximizer: Maximizer,
    *,
    may_reorder: bool,
) -> Sequence[Selection]:
    """One Selection for each query; ties between loose passages go by their texts.

    A search gives ties to the lowest index, and the order of loose passages must not matter.
    """
    k = limits.most(items.size)
    is_in_order = all(query.passages[0].position is not None for query in queries)
    if is_in_order or not may_reorder:
        return list(_search(objective, items, limits, k, costs, maximizer))
    order = np.array([_tie_order(query, items.size) for query in queries])
    prices = None if costs is None else np.take_along_axis(costs, order, axis=1)
    selections = _search(objective, items.ordered(order), limits, k, prices, maximizer)
    return [
        Selection(tuple(own[list(one.indices)].tolist()), one.gains, one.values, one.certificate)
        for own, one in zip(order, selections, strict=True)
    ]


def _tie_order(query: Query, size: int) -> list[int]:
    """The passages in the order in which ties are given to them: loose ones by their texts."""
    count = len(query.passages)
    if query.passages[0].position is not None:
        return list(range(size))
    return [*sorted(range(count), key=query.texts.__getitem__), *range(count, size)]


def _search(
    objective: SetFunction,
    items: Items,
    limits: Limits,
    k: int,
    costs: Array | None,
    maximizer: Maximizer,
) -> Sequence[Selection]:
    """One Selection for each query."""
    if limits.max_tokens is not None:
        found = budgeted_greedy(objective, items, costs, limits.max_tokens, k=k)
        return list(cast("Selections", found))
    if maximizer is greedy:
        return list(cast("Selections", greedy(objective, items, k)))
    # Not every search knows batches.
    rows = (of_query(objective, items, row) for row in range(items.batch))
    each: list[Any] = [maximizer(f, own, k) for f, own in rows]
    return [one if isinstance(one, Selection) else one[0] for one in each]


def _enough(objective: SetFunction, items: Items, selection: Selection, share: float) -> int:
    """How many of the selected passages reach this share of the achievable coverage."""
    reached, achievable = progress(objective, items, selection.indices)
    enough = np.flatnonzero(reached >= share * achievable * (1 - 1e-6))
    return max(1, int(enough[0])) if len(enough) else len(selection)


def _first(selection: Selection, count: int, bound: float) -> Selection:
    """The first passages of a selection, with the bound for that many."""
    value = selection.values[count - 1]
    return Selection(
        selection.indices[:count],
        selection.gains[:count],
        selection.values[:count],
        Certificate(value, max(value, bound)),
    )


def _scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores between 0 and 1; equal scores say nothing and become 0."""
    scores = scores / (np.abs(scores).max() or 1.0)  # the range of huge scores would overflow
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)
