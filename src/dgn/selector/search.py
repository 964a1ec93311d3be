"""The search of a selector: which passages of each query, within its limits.

The encoder gives a set function and items. Limits leave out passages, and become the `Constraints`
of a search; scores of the caller become further features (scores.py). Queries that k alone limits
are searched as one batch, the others one by one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.core import Certificate, Selection, greedy
from dgn.core.constraints import Constraints
from dgn.core.functions import Items, SetFunction, State
from dgn.core.greedy import greedy_within
from dgn.core.lazy import lazy_within
from dgn.errors import InvalidInput
from dgn.selector.coverage import progress, relevance_of
from dgn.selector.limits import Limits, integer
from dgn.text.encoder import Encoder
from dgn.text.query import Query

if TYPE_CHECKING:
    from dgn.selector.result import PassageSelection

_LENGTH_EXPONENT = 0.1
"""How much the length of a passage counts within a token limit, for each power of e by which the
limit exceeds the median length. Chosen on the training parts of 32 sets: experiments/budgets.py."""

_LARGEST_EXPONENT = 0.5

_LEAST_GAIN = 1e-6
"""A passage that adds less than this share of the largest gain adds nothing."""

_MANY = 2048
"""More passages than this are searched lazily."""


def of_query(
    queries: Sequence[Query], objective: SetFunction, items: Items, row: int
) -> tuple[SetFunction, Items]:
    """The function and the items of one query of a batch, with arrays of their own."""
    if items.batch == 1:
        return objective, items
    return objective.of_set(row), items.of_set(row, len(queries[row].passages))


def without_repeats(queries: Sequence[Query], items: Items) -> Items:
    """The items without passages that are blank, or repeat others or a given text.

    Pinned ones stay. If no passage is left, all stay, since items need one; the constraints then
    allow none.
    """
    if all(
        len(set(query.twins)) == len(query.twins) and not query.repeats_given and not query.blank
        for query in queries
    ):
        return items
    mask = np.array(items.mask)
    for row, query in enumerate(queries):
        kept = _unrepeated(query)
        if kept.any():
            mask[row, : len(kept)] = kept
    return Items(items.features, mask)


def _unrepeated(query: Query) -> NDArray[np.bool_]:
    kept = np.array(query.twins) == np.arange(len(query.passages))
    kept[list(query.blank)] = False
    kept[list(query.repeats_given)] = False
    kept[list(query.pinned)] = True
    return kept


def constraints_of(
    query: Query,
    objective: SetFunction,
    items: Items,
    limits: Limits,
    tokens: Sequence[int] | None,
    *,
    is_free: bool = True,
) -> Constraints | None:
    """The constraints of a query; None if k alone limits it.

    Args:
        query: The query.
        objective: Its set function.
        items: Its passages, without those that repeat others.
        limits: How much to select.
        tokens: The tokens of each passage, at least 1; None without a token limit.
        is_free: Whether None is returned if k alone limits the query.
    """
    most, pinned = limits.most(len(query.passages)), list(query.pinned)
    groups = _groups_of(query, limits)
    if len(pinned) > most:
        raise InvalidInput(
            "pinned",
            message=f"pinned names {len(pinned)} passages, and k is {most}; raise k.",
        )
    takes_part = _unrepeated(query)
    if limits.min_relevance:
        relevance = relevance_of(objective, items)[: len(takes_part)]
        takes_part &= relevance >= limits.min_relevance
        takes_part[pinned] = True
    is_limited = groups is not None or tokens is not None or bool(pinned or limits.min_relevance)
    if is_free and not is_limited and takes_part.any():
        return None
    needed = 0 if tokens is None else sum(tokens[index] for index in pinned)
    if limits.max_tokens is not None and needed > limits.max_tokens:
        raise InvalidInput(
            "pinned",
            message=f"The pinned passages have {needed} tokens, and max_tokens is "
            f"{limits.max_tokens:g}.",
        )
    (constraints,) = Constraints.of_sets(
        takes_part[None],
        most,
        single=True,
        pinned=pinned or None,
        groups=groups,
        max_per_group=None if groups is None else limits.max_per_document or limits.max_per_group,
        costs=tokens,
        budget=limits.max_tokens,
    )
    return constraints


def twins_in_groups(selection: PassageSelection) -> bool:
    """Whether equal passages are in different groups with quotas."""
    query, limits = selection.query, selection.constraints
    if limits is None or limits.groups is None or len(set(query.twins)) == len(query.twins):
        return False
    groups = limits.groups.tolist()
    return any(groups[twin] != groups[place] for place, twin in enumerate(query.twins))


def with_other_twins(selection: PassageSelection) -> Query | None:
    """The query with another one of some equal passages, whose group has room; None if none has."""
    query, left = selection.query, cast("Any", selection.constraints)
    groups = _groups_of(query, selection.limits) or []
    for index in selection.indices:
        left = left.after(index)
    room = left.quotas[left.groups]
    for twin in sorted(set(query.twins).difference(query.pinned)):
        free = [n for n, own in enumerate(query.twins) if own == twin and groups[n] < 0]
        if groups[twin] >= 0 and free:
            return _with_twin(query, twin, free[0])
        if twin in selection.indices:
            continue
        others = [other for other, own in enumerate(query.twins) if own == twin and room[other] > 0]
        if room[twin] < 1 and others:
            return _with_twin(query, twin, max(others, key=lambda other: (room[other], -other)))
    return None


def _with_twin(query: Query, twin: int, other: int) -> Query:
    """The query in which another one of equal passages stands for them."""
    changed = replace(query)
    changed.__dict__["twins"] = tuple(other if own == twin else own for own in query.twins)
    return changed


def search_passages(
    queries: Sequence[Query],
    objective: SetFunction,
    items: Items,
    constraints: Sequence[Constraints | None],
    limits: Limits,
    *,
    given: Items | None = None,
    ties_by_text: bool = True,
) -> list[Selection]:
    """Select passages of each query within its constraints.

    Args:
        queries: The queries.
        objective: The set function of the batch.
        items: The passages that take part, as items.
        constraints: Those of each query; None if k alone limits it.
        limits: How much to select.
        given: The texts that are given with the queries, as items.
        ties_by_text: Whether ties between loose passages are given to the text that comes first,
            so that the order of the passages does not matter; otherwise to the first passage.
    """
    orders: list[NDArray[np.int64]] | None = None
    if ties_by_text and any(query.passages[0].position is None for query in queries):
        orders = [tie_order(query, items.size) for query in queries]
        items = items.ordered(np.array(orders))
    k = limits.most(items.size)
    if given is None and all(limited is None for limited in constraints):
        selections = list(cast("Any", greedy(objective, items, k)))
    else:
        selections: list[Selection] = []
        for row, (query, limited) in enumerate(zip(queries, constraints, strict=True)):
            f, passages = of_query(queries, objective, items, row)
            context = None
            if given is not None and query.given:
                context = context_of(f, given.of_set(row))
            if limited is None:
                selections.append(_first_of(greedy(f, passages, k, context=context)))
                continue
            if orders is not None:
                limited = limited.ordered(orders[row][: len(query.passages)])
            selections.append(
                greedy_within(f, passages, limited, context, cost_exponent=length_exponent(limited))
            )
    if orders is not None:
        selections = [
            replace(selection, indices=tuple(order[list(selection.indices)].tolist()))
            for selection, order in zip(selections, orders, strict=True)
        ]
    return [*map(_without_idle, selections, queries)]


def search_all(
    query: Query,
    objective: SetFunction,
    items: Items,
    constraints: Constraints | None,
    context: State | None,
) -> Selection:
    """Select the passages that represent all of them, without a query."""
    assert constraints is not None  # noqa: S101
    order = tie_order(query, items.size)
    ordered = constraints.ordered(order[: len(query.passages)])
    items = items.ordered(order[None])
    if items.size > _MANY:
        found = lazy_within(objective, items, ordered, context)
    else:
        exponent = length_exponent(constraints)
        found = greedy_within(objective, items, ordered, context, cost_exponent=exponent)
    found = replace(found, indices=tuple(order[list(found.indices)].tolist()))
    return _without_idle(found, query)


def stopped_early(
    query: Query,
    objective: SetFunction,
    items: Items,
    constraints: Constraints | None,
    limits: Limits,
    selection: Selection,
    given: Items | None,
) -> Selection:
    """The first passages of a selection that reach the share `stop_at` of the coverage."""
    assert limits.stop_at is not None  # noqa: S101
    reached, achievable = progress(objective, items, selection.indices, given)
    enough = np.flatnonzero(reached >= limits.stop_at * achievable * (1 - 1e-6))
    if not len(enough):
        return selection
    count = max(1, len(query.pinned), int(enough[0]))
    if count >= len(selection):
        return selection
    # The second search gives the bound for so many passages.
    fewer = [constraints and replace(constraints, k=count)]
    only = replace(limits, k=count, stop_at=None)
    (again,) = search_passages([query], objective, items, fewer, only, given=given)
    value = selection.values[count - 1]
    return Selection(
        selection.indices[:count],
        selection.gains[:count],
        selection.values[:count],
        Certificate(value, max(value, again.certificate.bound)),
    )


def context_of(objective: SetFunction, given: Items) -> State:
    """What the given texts cover, added one by one: a sum of several would depend on padding."""
    state = objective.empty(given)
    for index in range(given.size):
        member = np.zeros(given.mask.shape, given.features.dtype)
        member[:, index] = given.mask[:, index]
        state = objective.add(given, state, member)
    return state


def token_counts(query: Query, limits: Limits, encoder: Encoder) -> list[int] | None:
    """The tokens of each passage, at least 1; None without a token limit."""
    if limits.max_tokens is None:
        return None
    if limits.count_tokens is None:
        counts = encoder.count_tokens(query.texts)
    else:
        texts, count = query.texts, limits.count_tokens
        counts = [integer("count_tokens(text)", count(text), 0) for text in texts]
    return [max(1, count) for count in counts]


def _groups_of(query: Query, limits: Limits) -> list[int] | None:
    """The number of the group of each passage, −1 for a passage that no quota limits."""
    if limits.max_per_group is None and limits.max_per_document is None:
        if query.groups is not None:
            raise InvalidInput("groups", message="groups needs max_per_group, the quota of each.")
        return None
    groups: Sequence[Hashable] | None = query.groups
    if limits.max_per_group is not None and groups is None:
        raise InvalidInput(
            "max_per_group", message="max_per_group needs groups, one for each passage."
        )
    if limits.max_per_document is not None:
        if groups is not None:
            raise InvalidInput(
                "groups",
                message="groups cannot be combined with max_per_document; use max_per_group.",
            )
        groups = [
            passage.title or None if passage.document is None else passage.document
            for passage in query.passages
        ]
        if all(group is None for group in groups):
            raise InvalidInput(
                "max_per_document",
                message="max_per_document needs documents, or titles of the passages; for other "
                "groups, pass groups and max_per_group.",
            )
    numbers: dict[Hashable, int] = {None: -1}
    return [numbers.setdefault(group, len(numbers) - 1) for group in groups or ()]


def length_exponent(constraints: Constraints) -> float:
    """How much the length of a passage counts: more, the more passages fit."""
    costs = constraints.costs
    if costs is None or not constraints.allowed.any():
        return 0.0
    fitting = constraints.budget / float(np.median(costs[constraints.allowed]))
    return min(_LENGTH_EXPONENT * math.log(max(1.0, fitting)), _LARGEST_EXPONENT)


def tie_order(query: Query, size: int) -> NDArray[np.int64]:
    """The passages in the order in which ties are given to them: loose ones by their texts."""
    order = list(range(size))
    if query.passages[0].position is None:
        count = len(query.passages)
        order[:count] = sorted(range(count), key=query.texts.__getitem__)
    return np.array(order)


def _without_idle(selection: Selection, query: Query) -> Selection:
    """The selection without passages that add nothing; pinned ones stay."""
    least = _LEAST_GAIN * max(selection.gains, default=0.0)
    kept = [
        place
        for place, (index, gain) in enumerate(zip(selection.indices, selection.gains, strict=True))
        if gain > least or index in query.pinned
    ]
    if len(kept) == len(selection):
        return selection
    value = selection.values[kept[-1]] if kept else 0.0
    return Selection(
        tuple(selection.indices[place] for place in kept),
        tuple(selection.gains[place] for place in kept),
        tuple(selection.values[place] for place in kept),
        Certificate(value, max(value, selection.certificate.bound)),
    )


def _first_of(found: Any) -> Selection:
    return found if isinstance(found, Selection) else found[0]
