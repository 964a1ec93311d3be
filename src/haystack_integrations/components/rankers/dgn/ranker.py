"""A component of Haystack that keeps the documents that together cover the query."""

# No `from __future__ import annotations`: Haystack reads the annotations of `run`.
from dataclasses import replace
from typing import Any

from dgn.adapters.chosen import choose
from dgn.errors import InvalidInput, require_extra
from dgn.selector import Selector

require_extra("The Haystack adapter", package="haystack", extra="haystack")

from haystack import Document, component, default_from_dict, default_to_dict


@component
class DGNRanker:
    """Keeps the documents that together cover the query, in the order of selection.

        pipeline.add_component("ranker", DGNRanker(top_k=5))
        pipeline.connect("retriever", "ranker")

    It returns copies. The score of each is the share of the query that it covers by itself, and
    its meta has `dgn_gain`, `dgn_score` and `dgn_covers` in addition.

    Args:
        model: A model of `Selector.from_pretrained`; None for the one that ships with dgn.
        top_k: How many documents to keep; None if only another limit counts.
        max_tokens: Keep documents with at most this many tokens together.
        coverage: Stop once this fraction of the achievable coverage is reached.
        min_relevance: Leave out documents that cover less of the query by themselves.
        title_field: The field of the meta with the title; documents may lack it.
        use_scores: Whether the scores of the retriever are taken into account.
    """

    def __init__(
        self,
        model: str | None = None,
        top_k: int | None = 5,
        max_tokens: float | None = None,
        coverage: float | None = None,
        min_relevance: float = 0.0,
        title_field: str = "title",
        use_scores: bool = False,
    ) -> None:
        self.model, self.top_k, self.max_tokens = model, top_k, max_tokens
        self.coverage, self.min_relevance = coverage, min_relevance
        self.title_field, self.use_scores = title_field, use_scores
        self._selector: Selector | None = None

    def warm_up(self) -> None:
        """Load the model; `run` does so too, if it has not been done."""
        if self._selector is None:
            self._selector = Selector.from_pretrained(self.model)

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack saves it."""
        return default_to_dict(
            self,
            model=self.model,
            top_k=self.top_k,
            max_tokens=self.max_tokens,
            coverage=self.coverage,
            min_relevance=self.min_relevance,
            title_field=self.title_field,
            use_scores=self.use_scores,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "DGNRanker":
        """The component from what `to_dict` returned."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Select documents.

        Args:
            query: The query.
            documents: The documents, which must have text.
            top_k: How many to keep this time.
        """
        self.warm_up()
        assert self._selector is not None  # noqa: S101
        for place, document in enumerate(documents):
            if document.content is None:
                message = f"documents[{place}] has no text; DGNRanker selects texts only."
                raise InvalidInput("documents", message=message)
        scores = None
        if self.use_scores:
            known = [document.score for document in documents if document.score is not None]
            worst = min(known, default=0.0)
            scores = [worst if one.score is None else one.score for one in documents]
        found = choose(
            self._selector,
            query,
            [document.content or "" for document in documents],
            titles=[str(document.meta.get(self.title_field) or "") for document in documents],
            scores=scores,
            k=self.top_k if top_k is None else top_k,
            max_tokens=self.max_tokens,
            coverage=self.coverage,
            min_relevance=self.min_relevance,
        )
        kept = [
            replace(
                documents[one.index],
                score=one.score,
                meta={**documents[one.index].meta, **one.metadata()},
            )
            for one in found
        ]
        return {"documents": kept}
