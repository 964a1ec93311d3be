"""The front door: a claim and some text in, the few sentences that together cover it out."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from dgn.arrays import Array
from dgn.encoders import Encoded, Query, TextEncoder
from dgn.encoders.encoder import for_budget
from dgn.encoders.scores import with_scores
from dgn.errors import InvalidInput
from dgn.maximizers import Selection, Selections, budgeted_greedy, greedy
from dgn.objectives import Items, SetFunction
from dgn.selector.coverage import smallest_cover
from dgn.selector.selection import SentenceSelection
from dgn.selector.sources import Document, Question, question_of

DEFAULT_K = 5
_AT_ONCE = 64
_LARGEST_BUDGET = 1_000_000_001
_SENTENCES_AT_ONCE = 8192
"""Padding counted: what a batch holds at most, unless a single question holds more."""


class Maximizer(Protocol):
    """A search in one set: `greedy`, `lazy_greedy`, `exact`, or one of the user's own."""

    def __call__(self, objective: SetFunction, items: Items, k: int) -> Selections | Selection: ...


class Selector:
    """Picks the sentences that together cover a claim.

        selector = Selector.from_pretrained()
        picked = selector.select(claim, sentences, k=5, title="…")
        print(picked.explain())

    encoder: from texts to features; `from_pretrained` brings a trained one.
    objective: a set function to use on those features instead of the encoder's own; or a function
    that makes one from what the encoder gave.
    maximizer: the search for k sentences.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        *,
        objective: SetFunction | Callable[[Encoded], SetFunction] | None = None,
        maximizer: Maximizer = greedy,
    ) -> None:
        self.encoder = encoder
        self._objective, self._maximizer = objective, maximizer

    @classmethod
    def from_pretrained(cls, model: str | Path | None = None) -> Selector:
        """A trained selector: the one inside this package, or that of a folder or of a hub.

        model: None for the model that ships with dgn: no network, no further file. "untrained" for
        cosines, IDF and titles alone, which knows nothing of encyclopedias. A folder that
        `save_pretrained` or `dgn train --encoder facets` wrote; or a name on the Hugging Face hub
        ("who/what"), which needs `pip install 'dgn[hub]'`.
        """
        from dgn.selector.pretrained import load_encoder

        return cls(load_encoder(model))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model into a folder: config.json, model.safetensors, README.md."""
        from dgn.selector.pretrained import save_encoder

        if self._objective is not None or self._maximizer is not greedy:
            raise InvalidInput(
                "selector",
                found="an objective or a maximizer put in by hand",
                allowed="Selector(encoder): a folder holds the encoder alone",
            )
        save_encoder(self.encoder, Path(folder))

    def select(
        self,
        claim: str,
        sentences: Iterable[str] | None = None,
        *,
        documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
        title: str | Sequence[str] = "",
        k: int | None = None,
        budget: float | None = None,
        cover: float | None = None,
        scores: Sequence[float] | None = None,
        score_weight: float = 1.0,
    ) -> SentenceSelection:
        """Pick from sentences, or from documents.

        sentences: in the order of their page, if they have one; `title` is the page's, or one for
        each. documents: texts, Documents, or dicts with text and title.
        k: how many to pick; 5 if nothing else is said. budget: in place of k, how many tokens (of
        the encoder) the picks may have together; sentences are then weighed by gain per token.
        cover: pick no more than it takes to cover this share (from 0 to 1) of what all sentences
        together cover; k is then a limit.
        scores: of a reranker of your own, one a sentence; any finite numbers. score_weight: what
        the best score is worth, as a share of the largest gain without scores.
        """
        question = question_of(claim, sentences, documents=documents, title=title, scores=scores)
        limits: dict[str, Any] = {"k": k, "budget": budget, "cover": cover}
        (picked,) = self.answer([question], **limits, score_weight=score_weight)
        return picked

    def select_many(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        k: int | None = None,
        budget: float | None = None,
        cover: float | None = None,
        score_weight: float = 1.0,
        at_once: int = _AT_ONCE,
    ) -> Iterator[SentenceSelection]:
        """Pick for many claims, some at once; far faster than one by one, with the same picks.

        queries: dicts with the arguments of `select`: claim, sentences or documents, title, scores.
        Taken as they come and answered in order: a generator without an end is welcome.
        """
        if at_once < 1:
            raise InvalidInput("at_once", found=str(at_once), allowed="at least 1")
        waiting = enumerate(queries)
        while chunk := list(itertools.islice(waiting, at_once)):
            questions = [_question(number, query) for number, query in chunk]
            yield from self.answer(
                questions, k=k, budget=budget, cover=cover, score_weight=score_weight
            )

    def answer(
        self,
        questions: Sequence[Question],
        *,
        k: int | None = None,
        budget: float | None = None,
        cover: float | None = None,
        score_weight: float = 1.0,
    ) -> list[SentenceSelection]:
        """Pick for questions that `question_of` made, as many at once as go together."""
        _check_limits(k, budget, cover, score_weight)
        picked: list[SentenceSelection] = []
        for some in _portions(questions):
            picked += self._pick_at_once(some, k, budget, cover, score_weight)
        return picked

    def _pick_at_once(
        self,
        questions: Sequence[Question],
        k: int | None,
        budget: float | None,
        cover: float | None,
        score_weight: float,
    ) -> list[SentenceSelection]:
        encoded = self._encoded([question.query() for question in questions])
        if budget is not None:
            encoded = for_budget(encoded)
        if any(question.scores is not None for question in questions):
            encoded = with_scores(encoded, [one.scores for one in questions], score_weight)
        limit = k or DEFAULT_K
        if budget is not None:
            costs = self._costs(questions, encoded.items.size)
            selections = budgeted_greedy(encoded.objective, encoded.items, costs, budget)
        else:
            limit = encoded.items.size if cover is not None and k is None else limit
            batched = self._maximizer is greedy
            selections = greedy(encoded.objective, encoded.items, limit) if batched else None
        picked: list[SentenceSelection] = []
        for row, question in enumerate(questions):
            own = encoded.row(row)
            selection = self._search(own, limit) if selections is None else selections[row]
            if cover is not None:
                selection = self._cut(own, selection, cover)
            picked.append(SentenceSelection(**vars(selection), question=question, encoded=own))
        return picked

    def _search(self, encoded: Encoded, k: int) -> Selection:
        """Of one question: not every search knows batches."""
        found = self._maximizer(encoded.objective, encoded.items, k)
        return found if isinstance(found, Selection) else found[0]

    def _encoded(self, queries: Sequence[Query]) -> Encoded:
        encoded = self.encoder.encode(queries)
        if self._objective is None:
            return encoded
        chosen = self._objective
        objective = chosen if isinstance(chosen, SetFunction) else chosen(encoded)
        return dataclasses.replace(encoded, objective=objective)

    def _cut(self, encoded: Encoded, selection: Selection, cover: float) -> Selection:
        """The first picks that are enough, with the certificate for that many."""
        enough = max(1, smallest_cover(encoded, selection, cover))
        if enough >= len(selection):
            return selection
        return self._search(encoded, enough)

    def _costs(self, questions: Sequence[Question], size: int) -> Array:
        import numpy as np

        costs = np.ones((len(questions), size))
        counts = iter(
            self.encoder.token_counts([one.text for q in questions for one in q.sentences])
        )
        for row, question in enumerate(questions):
            for place in range(len(question.sentences)):
                costs[row, place] = max(1, next(counts))
        return costs


def _question(number: int, query: Any) -> Question:
    known = {"claim", "sentences", "documents", "title", "scores"}
    if not isinstance(query, Mapping) or not cast("Mapping[str, Any]", query).keys() <= known:
        raise InvalidInput(
            "queries",
            found=f"{query!r:.60} at {number}",
            allowed=f"dicts with {', '.join(sorted(known))}",
        )
    try:
        return question_of(**cast("Mapping[str, Any]", query))
    except (InvalidInput, TypeError) as error:
        raise InvalidInput(
            "queries", found=f"at {number}: {error}", allowed="what select takes"
        ) from None


def _portions(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    """Questions that go together: one with thousands of sentences would pad all others to them."""
    start, most = 0, 0
    for place, question in enumerate(questions):
        most = max(most, len(question.sentences))
        if place > start and (place + 1 - start) * most > _SENTENCES_AT_ONCE:
            yield questions[start:place]
            start, most = place, len(question.sentences)
    if start < len(questions):
        yield questions[start:]


def _check_limits(
    k: int | None, budget: float | None, cover: float | None, score_weight: float
) -> None:
    if k is not None and (type(k) is not int or k < 1):
        raise InvalidInput("k", found=repr(k), allowed="a whole number from 1 on")
    if budget is not None and not 0 < budget < _LARGEST_BUDGET:
        raise InvalidInput("budget", found=f"{budget}", allowed="above 0, at most a billion tokens")
    if budget is not None and (k is not None or cover is not None):
        raise InvalidInput("budget", found="k or cover beside it", allowed="a budget alone")
    if cover is not None and not 0 < cover <= 1:
        raise InvalidInput("cover", found=f"{cover}", allowed="above 0, at most 1")
    if not 0 <= score_weight < float("inf"):
        raise InvalidInput("score_weight", found=f"{score_weight}", allowed="0 or more")
