"""The search of a selector: which passages of each query, within its limits.

The encoder gives a set function and items. Limits may leave out passages, add features (scores of
the caller), add constraints, and cut the selection; each of these is a function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dgn.core import Certificate, Selection, budgeted_greedy, greedy
from dgn.core.functions import Items, SetFunction, State
from dgn.errors import InvalidInput
from dgn.selector.coverage import progress, relevance_of
from dgn.selector.limits import Limits, integer
from dgn.selector.scores import with_scores
from dgn.text.encoders import Encoder
from dgn.text.query import Query

_LENGTH_EXPONENT = 0.1
"""How much the length of a passage counts within a token limit, for each power of e by which the
limit exceeds the median length. Chosen on the training parts of 32 sets: experiments/budgets.py."""

_LARGEST_EXPONENT = 0.5

_NOTHING = Selection((), (), (), Certificate(0.0, 0.0))


Maximizer: TypeAlias = Callable[..., Any]
"""A search in one set: `greedy`, `lazy_greedy`, `exact`, or one of your own.

It is called with the set function, the items and k; `context`, `pinned`, `groups` and
`max_per_group` are passed only if a query needs them.
"""


@dataclass(frozen=True, eq=False)
class PassageSearch:
    """What was searched for one query, as `dgn.explain` takes it.

    Attributes:
        objective: The set function that was maximized.
        items: The passages that could be selected, as items.
        constraints: What else the search was told: context, pinned, groups, costs and budget.
        tokens: The tokens of every passage of the query; None without a token limit.
    """

    objective: SetFunction
    items: Items
    constraints: dict[str, Any]
    tokens: tuple[int, ...] | None = None


def search_passages(
    queries: Sequence[Query],
    objective: SetFunction,
    items: Items,
    limits: Limits,
    *,
    encoder: Encoder,
    given: Items | None = None,
    maximizer: Maximizer = greedy,
    may_reorder: bool = True,
) -> list[tuple[Selection, PassageSearch]]:
    """Select passages of each query within the limits.

    Args:
        queries: The queries.
        objective: The set function of the batch.
        items: The passages of the queries as items, without repeated ones.
        limits: How much to select.
        encoder: What has read the queries.
        given: The texts that are given with the queries, as items.
        maximizer: The search for k passages.
        may_reorder: Whether the function allows the items in another order.

    Returns:
        For each query the selection, and what was searched.
    """
    for query in queries:
        _check_pinned(query, limits)
    allowed, is_empty = items, [_is_given(query) for query in queries]
    if limits.min_relevance:
        allowed, is_irrelevant = _relevant(queries, objective, items, limits.min_relevance)
        is_empty = [one or other for one, other in zip(is_empty, is_irrelevant, strict=True)]
    f, searched, with_columns = with_scores(
        queries, objective, allowed, limits.score_weight, encoder.known_scores, given
    )
    constraints = _constraints(queries, items.size, limits, encoder)
    if with_columns is not None:
        constraints["context"] = _after(f, with_columns)
    order = None
    if may_reorder and any(query.passages[0].position is None for query in queries):
        order = np.array([_tie_order(query, items.size) for query in queries])
    selections = _search(f, searched, limits, constraints, maximizer, order)
    results: list[tuple[Selection, PassageSearch]] = []
    for row, selection in enumerate(selections):
        own_f, own_items = of_query(f, searched, row)
        tokens = None
        if limits.max_tokens is not None:
            counts = constraints["costs"][row, : len(queries[row].passages)]
            tokens = tuple(int(count) for count in counts.tolist())
        own = PassageSearch(own_f, own_items, _of_row(constraints, row, own_items.size), tokens)
        if is_empty[row]:
            selection = _NOTHING
        elif limits.stop_at is not None:
            left = of_query(objective, allowed, row)
            before = given.of_set(row) if given is not None and queries[row].given else None
            count = _enough(*left, selection, limits.stop_at, before, len(queries[row].pinned))
            if count < len(selection):
                # The second search gives the bound for so many passages.
                (again,) = _search(own_f, own_items, limits, own.constraints, maximizer, k=count)
                selection = _first(selection, count, again.certificate.bound)
        results.append((selection, own))
    return results


def _after(objective: SetFunction, given: Items) -> State:
    """What the given texts cover, added one by one: a sum of several would depend on padding."""
    state = objective.empty(given)
    for index in range(given.size):
        member = np.zeros(given.mask.shape, given.features.dtype)
        member[:, index] = given.mask[:, index]
        state = objective.add(given, state, member)
    return state


def of_query(objective: SetFunction, items: Items, row: int) -> tuple[SetFunction, Items]:
    """The function and the items of one query of a batch, with arrays of their own."""
    if items.batch == 1 and items.mask[0, -1]:
        return objective, items
    return objective.of_set(row), items.of_set(row)


def without_repeats(queries: Sequence[Query], items: Items) -> Items:
    """The items without passages that repeat another one, or a given text; pinned ones stay.

    If all passages of a query repeat given texts, they stay, since a search needs one; it is then
    told to select nothing.
    """
    if all(
        len(set(query.twins)) == len(query.twins) and not query.repeats_given for query in queries
    ):
        return items
    repeats = np.zeros((items.batch, items.size), np.bool_)
    for row, query in enumerate(queries):
        repeats[row, : len(query.twins)] = np.array(query.twins) != np.arange(len(query.twins))
        if not _is_given(query):
            repeats[row, list(query.repeats_given)] = True
        repeats[row, list(query.pinned)] = False
    return Items(items.features, items.mask & ~repeats)


def _is_given(query: Query) -> bool:
    """Whether every passage repeats a given text, and none has to be selected."""
    return len(query.repeats_given) == len(query.passages) and not query.pinned


def _check_pinned(query: Query, limits: Limits) -> None:
    most = limits.most(len(query.passages))
    if len(query.pinned) > most:
        raise InvalidInput(
            "pinned",
            message=f"pinned names {len(query.pinned)} passages, and k is {most}; raise k.",
        )


def _relevant(
    queries: Sequence[Query], objective: SetFunction, items: Items, least: float
) -> tuple[Items, list[bool]]:
    """The items without passages of less relevance, and whether a query has none left.

    Of a query that has none left, the passages stay, since a search needs one.
    """
    mask = items.mask.copy()
    is_empty: list[bool] = []
    for row, query in enumerate(queries):
        relevance = relevance_of(*of_query(objective, items, row))
        kept = mask[row, : len(relevance)] & (relevance >= least)
        kept[list(query.pinned)] = True
        is_empty.append(not kept.any())
        if kept.any():
            mask[row, : len(relevance)] = kept
    return Items(items.features, mask), is_empty


def _constraints(
    queries: Sequence[Query], size: int, limits: Limits, encoder: Encoder
) -> dict[str, Any]:
    """The constraints of a batch, as searches take them."""
    found: dict[str, Any] = {}
    if any(query.pinned for query in queries):
        found["pinned"] = [list(query.pinned) for query in queries]
    most = limits.max_per_document or limits.max_per_group
    if most is not None:
        groups = np.full((len(queries), size), -1, np.int64)
        for row, query in enumerate(queries):
            groups[row, : len(query.passages)] = _numbered(_groups_of(query, limits))
        found |= {"groups": groups, "max_per_group": most}
    elif any(query.groups is not None for query in queries):
        raise InvalidInput("groups", message="groups needs max_per_group, the quota of each.")
    if limits.max_tokens is not None:
        found["costs"] = costs = token_costs(queries, size, limits, encoder)
        for row, query in enumerate(queries):
            needed = costs[row, list(query.pinned)].sum()
            if needed > limits.max_tokens:
                raise InvalidInput(
                    "pinned",
                    message=f"The pinned passages have {needed:g} tokens, and max_tokens is "
                    f"{limits.max_tokens:g}.",
                )
        found["budget"] = limits.max_tokens
    return found


def _groups_of(query: Query, limits: Limits) -> Sequence[Hashable]:
    """The group of each passage; None for a passage that no quota limits."""
    if limits.max_per_group is not None:
        if query.groups is None:
            raise InvalidInput(
                "max_per_group", message="max_per_group needs groups, one for each passage."
            )
        return query.groups
    if query.groups is not None:
        raise InvalidInput(
            "groups", message="groups cannot be combined with max_per_document; use max_per_group."
        )
    documents = [
        passage.title or None if passage.document is None else passage.document
        for passage in query.passages
    ]
    if all(document is None for document in documents):
        raise InvalidInput(
            "max_per_document",
            message="max_per_document needs documents, or titles of the passages; for other "
            "groups, pass groups and max_per_group.",
        )
    return documents


def _numbered(groups: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {None: -1}
    return [numbers.setdefault(group, len(numbers) - 1) for group in groups]


def token_costs(
    queries: Sequence[Query], size: int, limits: Limits, encoder: Encoder
) -> NDArray[np.float64]:
    """[queries, size], the tokens of each passage, at least 1."""
    texts = [text for query in queries for text in query.texts]
    if limits.count_tokens is None:
        counts = encoder.count_tokens(texts)
    else:
        counts = [integer("count_tokens(text)", limits.count_tokens(text), 0) for text in texts]
    left = iter(counts)
    costs = np.ones((len(queries), size))
    for row, query in enumerate(queries):
        for index in range(len(query.passages)):
            costs[row, index] = max(1, next(left))
    return costs


def _length_exponents(
    costs: NDArray[np.float64], mask: NDArray[np.bool_], budget: float
) -> NDArray[np.float64]:
    """[queries], how much the length of a passage counts: more, the more passages fit."""
    exponents = np.zeros(len(costs))
    for row, own in enumerate(costs):
        if mask[row].any():
            fitting = budget / float(np.median(own[mask[row]]))
            exponents[row] = _LENGTH_EXPONENT * math.log(max(1.0, fitting))
    return np.minimum(exponents, _LARGEST_EXPONENT)


def _tie_order(query: Query, size: int) -> list[int]:
    """The passages in the order in which ties are given to them: loose ones by their texts.

    A search gives ties to the lowest index, and the order of loose passages must not matter.
    """
    count = len(query.passages)
    if query.passages[0].position is not None:
        return list(range(size))
    return [*sorted(range(count), key=query.texts.__getitem__), *range(count, size)]


def _search(
    objective: SetFunction,
    items: Items,
    limits: Limits,
    constraints: dict[str, Any],
    maximizer: Maximizer,
    order: NDArray[np.int64] | None = None,
    *,
    k: int | None = None,
) -> list[Selection]:
    """One Selection for each query.

    Args:
        objective: The set function.
        items: The passages.
        limits: How much to select.
        constraints: Further arguments of the search.
        maximizer: The search for k passages.
        order: [queries, passages], the order in which ties are given; by default as they are.
        k: How many to select, in place of what the limits say.
    """
    k = limits.most(items.size) if k is None else k
    if order is not None:
        constraints = _in_order(constraints, order)
        ordered = _search(objective, items.ordered(order), limits, constraints, maximizer, k=k)
        return [
            Selection(
                tuple(own[list(one.indices)].tolist()), one.gains, one.values, one.certificate
            )
            for own, one in zip(order, ordered, strict=True)
        ]
    if limits.max_tokens is not None:
        others = {name: value for name, value in constraints.items() if name not in _PAID}
        costs = constraints["costs"]
        exponents = _length_exponents(costs, items.mask, limits.max_tokens)
        found: Any = budgeted_greedy(
            objective,
            items,
            costs,
            limits.max_tokens,
            k=k,
            cost_exponents=(exponents,),
            skipped_cover=True,
            **others,
        )
        return list(found)
    if maximizer is greedy:
        return list(cast("Any", greedy(objective, items, k, **constraints)))
    # Not every search knows batches.
    found = [
        maximizer(*of_query(objective, items, row), k, **_of_row(constraints, row, None))
        for row in range(items.batch)
    ]
    return [one if isinstance(one, Selection) else one[0] for one in found]


_PAID = ("costs", "budget")


def _in_order(constraints: dict[str, Any], order: NDArray[np.int64]) -> dict[str, Any]:
    """The constraints of items in another order."""
    found = dict(constraints)
    for name in ("costs", "groups"):
        if name in found:
            found[name] = np.take_along_axis(found[name], order, axis=1)
    if "pinned" in found:
        places = np.argsort(order, axis=1)
        rows = zip(found["pinned"], places, strict=True)
        found["pinned"] = [own[pinned].tolist() for pinned, own in rows]
    return found


def _of_row(constraints: dict[str, Any], row: int, size: int | None) -> dict[str, Any]:
    """The constraints of one query of a batch, with arrays of their own."""
    found = dict(constraints)
    for name in ("costs", "groups"):
        if name in found:
            found[name] = found[name][row : row + 1, :size].copy()
    if "pinned" in found:
        found["pinned"] = [found["pinned"][row]]
    if "context" in found:
        context: State = found["context"]
        found["context"] = context.rows(np.array([row]))
    return found


def _enough(
    objective: SetFunction,
    items: Items,
    selection: Selection,
    share: float,
    given: Items | None,
    least: int,
) -> int:
    """How many of the selected passages reach this share of the achievable coverage."""
    reached, achievable = progress(objective, items, selection.indices, given)
    enough = np.flatnonzero(reached >= share * achievable * (1 - 1e-6))
    return max(1, least, int(enough[0])) if len(enough) else len(selection)


def _first(selection: Selection, count: int, bound: float) -> Selection:
    """The first passages of a selection, with the bound for that many."""
    value = selection.values[count - 1]
    return Selection(
        selection.indices[:count],
        selection.gains[:count],
        selection.values[:count],
        Certificate(value, max(value, bound)),
    )
