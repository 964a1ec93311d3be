"""The front door: a query and some text in, the few passages that together cover it out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.encoders import Encoder
from dgn.encoders.base import PreparedPassages
from dgn.errors import InvalidInput
from dgn.maximizers import Certificate, Selection, greedy
from dgn.objectives import Items, SetFunction
from dgn.query import Document, Query
from dgn.selector.limits import DEFAULT_SCORE_WEIGHT, Limits, integer
from dgn.selector.problem import Problem
from dgn.selector.result import PassageSelection
from dgn.selector.search import Maximizer, PassageSearch, token_costs, without_repeats
from dgn.threads import single_threaded_blas

if TYPE_CHECKING:
    from dgn.selector.index import PassageIndex

_PASSAGES_PER_BATCH = 8192
"""Padding included: what a batch contains at most, unless a single query contains more."""

_NOTHING = Selection((), (), (), Certificate(0.0, 0.0))


class Selector:
    """Selects the passages that together cover a query.

        selector = Selector.from_pretrained()
        selection = selector.select(query, passages, k=5)
        print(selection.explain())

    A selector may be shared by threads.

    Args:
        encoder: From texts to a set function; `from_pretrained` loads a trained one.
        objective: A set function to use in place of the encoder's own, or a function that makes
            one from the encoder's set function and items.
        maximizer: The search for k passages.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        objective: SetFunction | Callable[[SetFunction, Items], SetFunction] | None = None,
        maximizer: Maximizer = greedy,
    ) -> None:
        self.encoder = encoder
        self.card = ""
        self._objective, self._maximizer = objective, maximizer
        # An objective of the user may have data of its own for every item.
        self._search = PassageSearch(maximizer, may_reorder=objective is None)

    @classmethod
    def from_pretrained(
        cls, model: str | Path | None = None, *, vectors: str | None = None
    ) -> Selector:
        """Load a trained selector.

        Args:
            model: None for the model that ships with dgn, which needs no download. "untrained"
                for word vectors, IDF and titles alone. A folder that `save_pretrained` or
                `dgn train` wrote. Or a name on the Hugging Face hub ("user/name"), which needs
                `dgn[hub]`.
            vectors: Vectors to use in place of those that the model names, for a model on
                pooled vectors whose file has moved.
        """
        from dgn.selector.model_folder import load_model

        loaded = load_model(model, vectors)
        selector = cls(loaded.encoder)
        selector.card = loaded.card
        return selector

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model into a folder: config.json, model.safetensors and README.md."""
        from dgn.selector.model_folder import save_model

        if self._objective is not None or self._maximizer is not greedy:
            raise InvalidInput(
                "selector",
                message="A selector with its own objective or maximizer cannot be saved; a model "
                "folder contains the encoder alone.",
            )
        save_model(self.encoder, Path(folder), self.card)

    def select(
        self,
        query: str,
        passages: Iterable[str] | None = None,
        *,
        documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
        titles: str | Iterable[str] | None = None,
        scores: Iterable[float] | None = None,
        k: int | None = None,
        max_tokens: float | None = None,
        coverage: float | None = None,
        count_tokens: Callable[[str], int] | None = None,
        score_weight: float = DEFAULT_SCORE_WEIGHT,
        min_relevance: float = 0.0,
    ) -> PassageSelection:
        """Select passages, or sentences of documents, that together cover a query.

        Args:
            query: A claim or a question.
            passages: Loose passages: any iterable of strings. Their order does not matter.
            documents: In place of passages: Documents, texts, or dictionaries with `text` or
                `sentences`, and optionally `title` and `id`; further keys are kept as metadata.
                Texts are split into sentences. `indices` then number the sentences of all
                documents in order.
            titles: For passages: one title for all, or one for each. Words of a title count as
                covered by its passages.
            scores: Relevance scores of your own, one for each passage; any finite numbers.
            k: Select this many passages, or all if there are fewer; 5 if neither k, max_tokens
                nor coverage is given. The last ones may add nothing; their gains say so. A passage
                that repeats another one is never selected.
            max_tokens: Select passages with at most this many tokens together, by gain per
                token. It may be combined with k. Only words of the query count then, and what all
                passages have in common does not, so that gains differ from those without it.
            coverage: Stop once this fraction of the achievable coverage is reached; above 0 and at
                most 1.
            count_tokens: Counts the tokens of a text for max_tokens; by default, the tokens of
                the encoder.
            score_weight: What the best score is worth, as a multiple of the largest gain without
                scores.
            min_relevance: Leave out passages that cover less than this share of the query by
                themselves, from 0 to 1; then fewer than k, or none, may be selected.

        Raises:
            InvalidInput: An argument is not what is described here.
        """
        built = Query.of(query, passages, documents=documents, titles=titles, scores=scores)
        limits = Limits.of(k, max_tokens, coverage, count_tokens, score_weight, min_relevance)
        return self._select([built], limits)[0]

    def select_many(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        k: int | None = None,
        max_tokens: float | None = None,
        coverage: float | None = None,
        count_tokens: Callable[[str], int] | None = None,
        score_weight: float = DEFAULT_SCORE_WEIGHT,
        min_relevance: float = 0.0,
        batch_size: int = 64,
    ) -> Iterator[PassageSelection]:
        """Select for many queries, in batches; much faster than one by one.

        Args:
            queries: Dictionaries with the arguments of `select`: query, passages or documents,
                titles, scores. They are read as needed and answered in order, so that an endless
                generator is fine.
            k: As in `select`, for all queries.
            max_tokens: As in `select`, for all queries.
            coverage: As in `select`, for all queries.
            count_tokens: As in `select`.
            score_weight: As in `select`.
            min_relevance: As in `select`.
            batch_size: The number of queries that are processed together.
        """
        size = integer("batch_size", batch_size)
        limits = Limits.of(k, max_tokens, coverage, count_tokens, score_weight, min_relevance)
        if isinstance(queries, Mapping) or not isinstance(cast("Any", queries), Iterable):
            found = type(cast("object", queries)).__name__
            raise InvalidInput("queries", found=found, allowed="an iterable of dictionaries")
        return self._select_in_batches(queries, limits, size)

    def _select_in_batches(
        self, queries: Iterable[Mapping[str, Any]], limits: Limits, size: int
    ) -> Iterator[PassageSelection]:
        numbered = enumerate(queries)
        while chunk := list(itertools.islice(numbered, size)):
            yield from self._select([_query_of(number, one) for number, one in chunk], limits)

    def select_queries(
        self,
        queries: Sequence[Query],
        *,
        k: int | None = None,
        max_tokens: float | None = None,
        coverage: float | None = None,
        score_weight: float = DEFAULT_SCORE_WEIGHT,
        min_relevance: float = 0.0,
    ) -> list[PassageSelection]:
        """Select for queries that were built with `Query.of` or read from a file, in one batch."""
        limits = Limits.of(k, max_tokens, coverage, None, score_weight, min_relevance)
        return self._select(queries, limits)

    def index(
        self,
        documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
        *,
        passages: Iterable[str] | None = None,
        titles: str | Iterable[str] | None = None,
    ) -> PassageIndex:
        """Read a corpus once, so that later queries over it pay for the query alone.

        Args:
            documents: As in `select`.
            passages: In place of documents: loose passages.
            titles: For passages: one title for all, or one for each.

        Examples:
            >>> index = Selector.from_pretrained().index(["Ada wrote a program. It was in 1843."])
            >>> index.select("Who wrote a program?", k=1).texts
            ('Ada wrote a program.',)
        """
        from dgn.selector.index import PassageIndex

        built = Query.of("any", passages, documents=documents, titles=titles)
        return PassageIndex.of(self, built.passages)

    def load_index(self, folder: str | Path) -> PassageIndex:
        """Open an index that `PassageIndex.save` wrote; its arrays are mapped into memory."""
        from dgn.selector.index import PassageIndex

        return PassageIndex.load(self, Path(folder))

    def select_prepared(
        self,
        query: Query,
        limits: Limits,
        prepared: PreparedPassages | None,
        places: NDArray[np.int64],
    ) -> PassageSelection:
        """Select for a query whose passages an index has read; see `PassageIndex.select`."""
        if prepared is None:
            return self._select([query], limits)[0]
        objective, items = self._adapted(*prepared.encode(query, places))
        problem = Problem(objective, without_repeats([query], items))
        return self._select_in([query], limits, problem)[0]

    def _select(self, queries: Sequence[Query], limits: Limits) -> list[PassageSelection]:
        selected: list[PassageSelection] = []
        with single_threaded_blas() if self.encoder.uses_blas else nullcontext():
            for some in _portions(queries):
                selected += self._select_batch(some, limits)
        return selected

    def _select_batch(self, queries: Sequence[Query], limits: Limits) -> list[PassageSelection]:
        objective, items = self._adapted(*self.encoder.encode(queries))
        return self._select_in(queries, limits, Problem(objective, without_repeats(queries, items)))

    def _select_in(
        self, queries: Sequence[Query], limits: Limits, problem: Problem
    ) -> list[PassageSelection]:
        relevant, is_empty = problem, [False] * len(queries)
        if limits.min_relevance:
            relevant, is_empty = problem.relevant(limits.min_relevance)
        searched = relevant if limits.max_tokens is None else relevant.priced()
        scores = [query.scores for query in queries]
        if any(one is not None for one in scores):
            searched = searched.with_scores(scores, limits.score_weight)
        costs = token_costs(queries, searched.items.size, limits, self.encoder)
        found = self._search.select(queries, searched, limits, costs)
        selected: list[PassageSelection] = []
        for row, query in enumerate(queries):
            own = problem.of_query(row)
            looked = own if searched is problem else searched.of_query(row)
            selection = _NOTHING if is_empty[row] else found[row]
            if limits.coverage is not None:
                price = None if costs is None else costs[row : row + 1, : looked.items.size]
                left = own if relevant is problem else relevant.of_query(row)
                selection = self._search.cut(left, looked, selection, limits, price)
            selected.append(
                PassageSelection(
                    **vars(selection),
                    query=query,
                    facets=self.encoder.facets(query.text),
                    problem=own,
                    searched=looked,
                    per_token=limits.max_tokens is not None,
                )
            )
        return selected

    def _adapted(self, objective: SetFunction, items: Items) -> tuple[SetFunction, Items]:
        """The items with the objective of the user, if there is one."""
        if isinstance(self._objective, SetFunction):
            objective = self._objective
        elif self._objective is not None:
            objective = self._objective(objective, items)
        return objective, items


def _query_of(number: int, given: Any) -> Query:
    known = {"query", "passages", "documents", "titles", "scores", "id"}
    name = f"queries[{number}]"
    if not isinstance(given, Mapping):
        raise InvalidInput(name, found=f"{given!r:.60}", allowed="a dictionary")
    fields = cast("Mapping[str, Any]", given)
    unknown = sorted(map(str, set(fields) - known))
    if unknown or "query" not in fields:
        problem = f"has the unknown key {unknown[0]!r}" if unknown else "has no query"
        raise InvalidInput(
            name, message=f"{name} {problem}; the keys are {', '.join(sorted(known))}."
        )
    try:
        return Query.of(**fields)
    except InvalidInput as error:
        raise InvalidInput(name, message=f"{name}: {error}") from None


def _portions(queries: Sequence[Query]) -> Iterator[Sequence[Query]]:
    """Queries to process together: one with thousands of passages would pad all others."""
    start, most = 0, 0
    for place, query in enumerate(queries):
        most = max(most, len(query.passages))
        if place > start and (place + 1 - start) * most > _PASSAGES_PER_BATCH:
            yield queries[start:place]
            start, most = place, len(query.passages)
    if start < len(queries):
        yield queries[start:]
