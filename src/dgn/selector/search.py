"""The search of a selector: which passages of each query, within its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast, final

import numpy as np

from dgn.arrays import Array
from dgn.encoders import Encoder
from dgn.maximizers import Certificate, Selection, Selections, budgeted_greedy, greedy
from dgn.objectives import Items, SetFunction
from dgn.query import Query
from dgn.selector.limits import Limits
from dgn.selector.problem import Problem


class Maximizer(Protocol):
    """A search in one set: `greedy`, `lazy_greedy`, `exact`, or one of your own."""

    def __call__(self, objective: SetFunction, items: Items, k: int) -> Selection | Selections: ...


@final
class PassageSearch:
    """Searches the problems of queries.

    Args:
        maximizer: The search for k passages.
        may_reorder: Whether the function allows the items in another order.
    """

    def __init__(self, maximizer: Maximizer, *, may_reorder: bool) -> None:
        self._maximizer, self._may_reorder = maximizer, may_reorder

    def select(
        self, queries: Sequence[Query], problem: Problem, limits: Limits, costs: Array | None
    ) -> list[Selection]:
        """One Selection for each query; ties between loose passages go by their texts.

        A search gives ties to the lowest index, and the order of loose passages must not matter.
        """
        k = limits.k or problem.items.size
        is_in_order = all(query.passages[0].position is not None for query in queries)
        if is_in_order or not self._may_reorder:
            return list(self._search(problem, limits, k, costs))
        size = problem.items.size
        order = [[*_tie_order(query), *range(len(query.passages), size)] for query in queries]
        places = np.array(order)
        turned = Problem(problem.objective, problem.items.ordered(places))
        prices = None if costs is None else np.take_along_axis(costs, places, axis=1)
        return [
            Selection(
                tuple(own[index] for index in one.indices), one.gains, one.values, one.certificate
            )
            for own, one in zip(order, self._search(turned, limits, k, prices), strict=True)
        ]

    def cut(
        self,
        own: Problem,
        searched: Problem,
        selection: Selection,
        limits: Limits,
        costs: Array | None,
    ) -> Selection:
        """The first passages that reach the coverage, with the certificate for that many."""
        reached, achievable = own.progress(selection.indices)
        share = limits.coverage or 0.0
        enough = np.flatnonzero(reached >= share * achievable * (1 - 1e-6))
        count = max(1, int(enough[0])) if len(enough) else len(selection)
        if count >= len(selection):
            return selection
        # The passages stay those of the first search; the second one gives the bound for so many.
        bound = self._search(searched, limits, count, costs)[0].certificate.bound
        value = selection.values[count - 1]
        return Selection(
            selection.indices[:count],
            selection.gains[:count],
            selection.values[:count],
            Certificate(value, max(value, bound)),
        )

    def _search(
        self, problem: Problem, limits: Limits, k: int, costs: Array | None
    ) -> Sequence[Selection]:
        """One Selection for each query of the problem."""
        f, items = problem.objective, problem.items
        if limits.max_tokens is not None:
            return list(
                cast("Selections", budgeted_greedy(f, items, costs, limits.max_tokens, k=k))
            )
        if self._maximizer is greedy:
            return list(cast("Selections", greedy(f, items, k)))
        # Not every search knows batches.
        rows = [problem.of_query(row) for row in range(items.batch)]
        found = [self._maximizer(row.objective, row.items, k) for row in rows]
        return [one if isinstance(one, Selection) else one[0] for one in found]


def token_costs(
    queries: Sequence[Query], size: int, limits: Limits, encoder: Encoder
) -> Array | None:
    """[queries, size], the tokens of each passage; None without a limit of tokens."""
    if limits.max_tokens is None:
        return None
    texts = [text for query in queries for text in query.texts]
    counts = iter(limits.tokens_of(texts, encoder))
    costs = np.ones((len(queries), size))
    for row, query in enumerate(queries):
        for place in range(len(query.passages)):
            costs[row, place] = max(1, next(counts))
    return costs


def without_repeats(queries: Sequence[Query], items: Items) -> Items:
    """The items without passages that repeat an earlier one: they add nothing to any set."""
    if all(len(set(query.twins)) == len(query.twins) for query in queries):
        return items
    repeats = np.zeros((items.batch, items.size), np.bool_)
    for row, query in enumerate(queries):
        repeats[row, : len(query.twins)] = np.array(query.twins) != np.arange(len(query.twins))
    return Items(items.features, items.mask & ~repeats)


def _tie_order(query: Query) -> Sequence[int]:
    """The passages in the order in which ties are given to them: loose ones by their texts."""
    places = range(len(query.passages))
    if query.passages[0].position is not None:
        return places
    texts = query.texts
    return sorted(places, key=texts.__getitem__)
