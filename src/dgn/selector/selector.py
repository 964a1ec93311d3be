"""The front door: a query and some text in, the few passages that together cover it out."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from dgn.core import Certificate, native
from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput
from dgn.parallel import single_threaded_blas
from dgn.selector.breadth import with_breadth, without_given, without_query
from dgn.selector.limits import LimitArguments, Limits, integer
from dgn.selector.result import PassageSelection
from dgn.selector.scores import with_scores
from dgn.selector.search import (
    constraints_of,
    context_of,
    of_query,
    search_all,
    search_passages,
    stopped_early,
    token_counts,
    twins_in_groups,
    with_other_twins,
    without_repeats,
)
from dgn.text.encoder import Encoder
from dgn.text.query import Document, Passage, Query, passages_of

if TYPE_CHECKING:
    from dgn.selector.index import PassageIndex

_PASSAGES_PER_BATCH = 8192
"""Padding included: what a batch contains at most, unless a single query contains more."""

_QUERY_KEYS = tuple(sorted(inspect.signature(Query.of).parameters))


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
    """

    def __init__(
        self,
        encoder: Encoder | None = None,
        *,
        objective: SetFunction | Callable[[SetFunction, Items], SetFunction] | None = None,
    ) -> None:
        if not isinstance(cast("Any", encoder), Encoder):
            found = "nothing" if encoder is None else f"{encoder!r:.40}"
            allowed = "an Encoder; Selector.from_pretrained() loads a trained selector"
            raise InvalidInput("encoder", found=found, allowed=allowed)
        self.encoder: Encoder = cast("Encoder", encoder)
        self.card, self.name = "", ""
        self._objective = objective

    @classmethod
    def from_pretrained(cls, model: str | Path | None = None) -> Selector:
        """Load a trained selector.

        Args:
            model: None or "default" for the model that ships with dgn, which needs no download.
                "untrained" for word vectors, IDF and titles alone. "minilm" for a transformer,
                which reads every text once (needs `dgn[minilm]`). A folder that
                `save_pretrained` or `dgn train` wrote. Or a name on the Hugging Face hub
                ("user/name"), which needs `dgn[hub]`.
        """
        from dgn.selector.model_folder import load_model

        encoder, card = load_model(model)
        selector = cls(encoder)
        selector.card = card
        selector.name = "default" if model is None else str(model)
        return selector

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model into a folder: config.json, model.safetensors and README.md."""
        from dgn.selector.model_folder import save_model

        if self._objective is not None:
            raise InvalidInput(
                "selector",
                message="A selector with its own objective cannot be saved; a model folder "
                "contains the encoder alone.",
            )
        save_model(self.encoder, Path(folder), self.card)

    def select(
        self,
        query: str | None,
        passages: Iterable[str | Passage | Mapping[str, Any]] | None = None,
        *,
        documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
        titles: str | Iterable[str] | None = None,
        scores: Iterable[float] | None = None,
        query_embedding: Any = None,
        embeddings: Any = None,
        given: Iterable[str | Passage | Mapping[str, Any]] | None = None,
        pinned: Iterable[int] | None = None,
        groups: Iterable[Hashable] | None = None,
        language: str | None = None,
        **limits: Unpack[LimitArguments],
    ) -> PassageSelection:
        """Select passages, or sentences of documents, that together cover a query.

        Args:
            query: A claim or a question; or None, to select the passages that represent all of
                them, where rare kinds count as much as common ones.
            passages: Loose passages: any iterable of strings, of Passages, or of dictionaries with
                `text`. Their order does not matter. A passage that repeats another one is never
                selected.
            documents: In place of passages: Documents, texts, or dictionaries with `text` or
                `sentences`, and optionally `title` and `id`; further keys are kept as metadata.
                Texts are split into sentences. `indices` then number the sentences of all
                documents in order.
            titles: For passages: one title for all, or one for each. Words of a title count as
                covered by its passages.
            scores: Relevance scores of your own, one for each passage; any finite numbers, of which
                the largest is the best.
            query_embedding: [width], your own vector of the query: a NumPy array, a torch tensor or
                a list. It comes together with `embeddings`.
            embeddings: [passages, width], your own vectors of the passages. How near they are to
                the query counts, and passages with nearly the same vector cover the same.
            given: Texts that are already there, in a prompt or from an earlier selection: they
                cover, and nothing that repeats them is selected.
            pinned: Passages that must be selected, as positions; the others complement them.
            groups: The group of each passage, for max_per_group: any strings or numbers; None for a
                passage that is not limited.
            language: The language of the query and of the passages, such as "de"; by default, it is
                found for each of them.
            limits: The fields of `Limits`.
                k: Select this many passages, or all if there are fewer; 5 if neither k, max_tokens
                nor stop_at is given. The last ones may add nothing; their gains say so.
                max_tokens: Select passages with at most this many tokens together.
                stop_at: Stop once this fraction of the achievable coverage is reached; above 0 and
                at most 1.
                min_relevance: Leave out passages that cover less than this share of the query by
                themselves, from 0 to 1; then fewer than k, or none, may be selected.
                count_tokens: Counts the tokens of a text for max_tokens; by default, the tokens of
                the encoder.
                score_weight: What the best score, or the nearest embedding, is worth, as a multiple
                of the largest gain without it; None finds it out for each query.
                max_per_document: Select at most this many passages of one document; of loose
                passages, of those with the same title.
                max_per_group: Select at most this many passages of each of the groups.
                breadth: How much it counts that the selected passages represent all passages, and
                do not repeat each other in other words, from 0 to 1.

        Raises:
            InvalidInput: An argument is not what is described here.
        """
        checked = Limits.of(limits)
        built = Query.of(
            query,
            passages,
            documents=documents,
            titles=titles,
            scores=scores,
            query_embedding=query_embedding,
            embeddings=embeddings,
            given=given,
            pinned=pinned,
            groups=groups,
            language=language,
        )
        return self.select_queries([built], checked)[0]

    def select_many(
        self,
        queries: Iterable[Mapping[str, Any] | Query],
        *,
        batch_size: int = 64,
        **limits: Unpack[LimitArguments],
    ) -> Iterator[PassageSelection]:
        """Select for many queries, in batches; much faster than one by one.

        Args:
            queries: Dictionaries with the arguments of `select` except its limits (query, passages
                or documents, titles, scores, …), or Query objects. They are read as needed and
                answered in order, so that an endless generator is fine.
            batch_size: The number of queries that are processed together.
            limits: k, max_tokens, stop_at and the other limits of `select`, for all queries.
        """
        size, checked = integer("batch_size", batch_size), Limits.of(limits)
        if isinstance(queries, Mapping) or not isinstance(cast("Any", queries), Iterable):
            found = type(cast("object", queries)).__name__
            raise InvalidInput("queries", found=found, allowed="an iterable of dictionaries")
        return self._select_in_batches(queries, checked, size)

    def _select_in_batches(
        self, queries: Iterable[Any], limits: Limits, size: int
    ) -> Iterator[PassageSelection]:
        numbered = enumerate(queries)
        while chunk := list(itertools.islice(numbered, size)):
            built = [_query_of(number, one) for number, one in chunk]
            yield from self.select_queries(built, limits)

    def select_queries(
        self, queries: Sequence[Query], limits: Limits | None = None
    ) -> list[PassageSelection]:
        """Select for queries that were built before, with the same limits for all.

        Args:
            queries: What `Query.of` returns, or what a reader of `dgn.data` has read.
            limits: How much to select; by default 5 passages.
        """
        limits = limits or Limits()
        selected: list[PassageSelection] = []
        with single_threaded_blas() if self.encoder.uses_blas else nullcontext():
            for some in _portions(queries):
                if all(query.text for query in some):
                    selected += self.select_encoded(some, limits, *self.encoder.encode(some))
                    continue
                for query in some:
                    if query.text:
                        encoded = self.encoder.encode([query])
                        selected += self.select_encoded([query], limits, *encoded)
                    else:
                        selected.append(self._select_without_query(query, limits))
        return [self.in_groups_with_room(one) for one in selected]

    def in_groups_with_room(self, selection: PassageSelection) -> PassageSelection:
        """Of equal passages in different groups, the one whose group has room counts.

        One passage stands for all that repeat it; if its group was full, or if another one is in no
        group, another one stands for them in a second search. The certificate is then that of a
        search without groups, because a better set might have others of the equal passages.
        """
        if not twins_in_groups(selection):
            return selection
        for _ in selection.query.passages:
            query = with_other_twins(selection)
            if query is None:
                break
            (selection,) = self._selected_again(query, selection.limits)
        free = replace(selection.limits, max_per_group=None, max_per_document=None)
        (loose,) = self._selected_again(replace(selection.query, groups=None), free)
        value = selection.certificate.value
        bound = max(value, selection.certificate.bound, loose.certificate.bound)
        return replace(selection, certificate=Certificate(value, bound))

    def _selected_again(self, query: Query, limits: Limits) -> list[PassageSelection]:
        if not query.text:
            return [self._select_without_query(query, limits)]
        return self.select_encoded([query], limits, *self.encoder.encode([query]))

    def index(
        self,
        documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
        *,
        passages: Iterable[str | Passage | Mapping[str, Any]] | None = None,
        titles: str | Iterable[str] | None = None,
        embeddings: Any = None,
    ) -> PassageIndex:
        """Read a corpus once, so that later queries over it pay for the query alone.

        Args:
            documents: As in `select`.
            passages: In place of documents: loose passages.
            titles: For passages: one title for all, or one for each.
            embeddings: [passages, width], your own vectors of the passages, or of the sentences of
                the documents; `index.select` then takes `query_embedding`.

        Examples:
            >>> index = Selector.from_pretrained().index(["Ada wrote a program. It was in 1843."])
            >>> index.select("Who wrote a program?", k=1).texts
            ('Ada wrote a program.',)
        """
        from dgn.selector.index import PassageIndex

        checked = passages_of(passages, documents, titles=titles)
        return PassageIndex.of(self, checked, embeddings)

    def load_index(self, folder: str | Path) -> PassageIndex:
        """Open an index that `PassageIndex.save` wrote; its arrays are mapped into memory."""
        from dgn.selector.index import PassageIndex

        return PassageIndex.load(self, Path(folder))

    def select_encoded(
        self, queries: Sequence[Query], limits: Limits, objective: SetFunction, items: Items
    ) -> list[PassageSelection]:
        """Select for queries that an encoder has read.

        Args:
            queries: The queries.
            limits: How much to select.
            objective: The set function that the encoder returned for them.
            items: The items that it returned.
        """
        given = self._given(queries, items)
        objective = self._adapted(objective, items)
        items = without_repeats(queries, items)
        weight, share = limits.score_weight, self.encoder.score_share
        objective, items, given = with_scores(queries, objective, items, weight, given, share)
        breadth = limits.breadth
        if breadth is None:  # an objective of the user is used as it is
            breadth = self.encoder.breadth if self._objective is None else 0.0
        if breadth == 0 and given is None:
            return self._searched(queries, objective, items, limits)
        selected: list[PassageSelection] = []
        for row, query in enumerate(queries):
            f, passages = of_query(queries, objective, items, row)
            present = given.of_set(row) if given is not None and query.given else None
            new = None
            if present is not None:
                new = without_given(self.encoder, query, passages)
            if breadth > 0:
                f, passages, present, new = with_breadth(
                    self.encoder, query, f, passages, present, breadth, new
                )
            selected += self._searched([query], f, passages, limits, present, new)
        return selected

    def _searched(
        self,
        queries: Sequence[Query],
        objective: SetFunction,
        items: Items,
        limits: Limits,
        given: Items | None = None,
        new: Items | None = None,
    ) -> list[PassageSelection]:
        """Search for queries whose function is complete; with given texts, for one query.

        Args:
            queries: The queries.
            objective: Their function.
            items: Their passages.
            limits: How much to select.
            given: The given texts, as items.
            new: The passages without what given texts have said; None if that is nothing.
        """
        rows = [of_query(queries, objective, items, row) for row in range(len(queries))]
        tokens = [token_counts(query, limits, self.encoder) for query in queries]
        constraints = [
            constraints_of(query, *rows[row], limits, tokens[row])
            for row, query in enumerate(queries)
        ]
        selections = search_passages(
            queries,
            objective,
            items if new is None else new,
            constraints,
            limits,
            given=given,
            # An objective of the user may have data of its own for every item.
            ties_by_text=self._objective is None,
        )
        selected: list[PassageSelection] = []
        for row, (query, selection) in enumerate(zip(queries, selections, strict=True)):
            if limits.stop_at is not None:
                selection = stopped_early(
                    query, *rows[row], constraints[row], limits, selection, given
                )
            selected.append(
                PassageSelection(
                    *(selection.indices, selection.gains, selection.values),
                    selection.certificate,
                    query,
                    limits,
                    self.encoder.facets,
                    *rows[row],
                    constraints[row],
                    given,
                    new,
                    None if (counts := tokens[row]) is None else tuple(counts),
                    self.encoder.nearest,
                )
            )
        return selected

    def _select_without_query(self, query: Query, limits: Limits) -> PassageSelection:
        """The passages that represent all of them."""
        for name, is_passed in (
            ("min_relevance", limits.min_relevance > 0),
            ("stop_at", limits.stop_at is not None),
            ("scores", query.scores is not None),
            ("breadth", limits.breadth not in (None, 1)),
        ):
            if is_passed:
                raise InvalidInput(name, message=f"{name} needs a query.")
        f, items, given = without_query(self.encoder, query)
        tokens = token_counts(query, limits, self.encoder)
        constraints = constraints_of(query, f, items, limits, tokens, is_free=False)
        context = None if given is None else context_of(f, given)
        selection = search_all(query, f, items, constraints, context)
        return PassageSelection(
            *(selection.indices, selection.gains, selection.values),
            selection.certificate,
            query,
            limits,
            self.encoder.facets,
            f,
            items,
            constraints,
            given,
            None,
            None if tokens is None else tuple(tokens),
        )

    def _given(self, queries: Sequence[Query], items: Items) -> Items | None:
        """The texts that are given with the queries, read as their passages are."""
        if not any(query.given for query in queries):
            return None
        # All queries, because the features of a batch are padded to the longest query.
        # The words of a query are the same words only if they are read in the same language.
        texts = [
            Query(query.text, query.given or (Passage(""),), language=query.read_language)
            for query in queries
        ]
        given = self.encoder.encode(texts)[1]
        if given.features.shape[2] != items.features.shape[2]:
            raise InvalidInput(
                "given", message=f"{type(self.encoder).__name__} cannot take given texts."
            )
        real = np.zeros(given.mask.shape, np.bool_)
        for row, query in enumerate(queries):
            real[row, : len(query.given)] = True
        return Items(given.features, given.mask & real)

    def _adapted(self, objective: SetFunction, items: Items) -> SetFunction:
        """The objective of the user, if there is one."""
        if isinstance(self._objective, SetFunction):
            return self._objective
        return objective if self._objective is None else self._objective(objective, items)


def _query_of(number: int, given: Any) -> Query:
    if isinstance(given, Query):
        return given
    name = f"queries[{number}]"
    if not isinstance(given, Mapping):
        raise InvalidInput(name, found=f"{given!r:.60}", allowed="a dictionary")
    values = cast("Mapping[str, Any]", given)
    unknown = sorted(map(str, set(values) - set(_QUERY_KEYS)))
    if unknown or "query" not in values:
        reason = f"has the unknown key {unknown[0]!r}" if unknown else "has no query"
        raise InvalidInput(name, message=f"{name} {reason}; the keys are {', '.join(_QUERY_KEYS)}.")
    try:
        return Query.of(**values)
    except InvalidInput as error:
        raise InvalidInput(name, message=f"{name}: {error}") from None


def _portions(queries: Sequence[Query]) -> Iterator[Sequence[Query]]:
    """Queries to process together: one with thousands of passages would pad all others.

    Without kernels, one query at a time: NumPy rounds the sums of a row by its padding.
    """
    if not native.is_available():
        for query in queries:
            yield [query]
        return
    start, most = 0, 0
    for index, query in enumerate(queries):
        most = max(most, len(query.passages))
        if index > start and (index + 1 - start) * most > _PASSAGES_PER_BATCH:
            yield queries[start:index]
            start, most = index, len(query.passages)
    if start < len(queries):
        yield queries[start:]
