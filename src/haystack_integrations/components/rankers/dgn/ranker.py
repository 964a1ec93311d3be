"""A component of Haystack that keeps the documents that together cover the query."""

# No `from __future__ import annotations`: Haystack reads the annotations of `run`.
from dataclasses import replace
from typing import Any

from dgn.apps.adapters._chosen import choose, filled_scores
from dgn.errors import InvalidInput, require_extra
from dgn.selector import Limits, Selector

require_extra("The Haystack adapter", package="haystack", extra="haystack")

from haystack import Document, component, default_from_dict, default_to_dict


@component
class DGNRanker:
    """Keeps the documents that together cover the query, in the order of selection.

        pipeline.add_component("ranker", DGNRanker(top_k=5))
        pipeline.connect("retriever", "ranker")

    It returns copies. The score of each is the share of the query that it covers by itself, and
    its meta has `dgn_gain`, `dgn_relevance` and `dgn_covers` in addition.

    Args:
        model: A model of `Selector.from_pretrained`; None for the one that ships with dgn.
        top_k: How many documents to keep; 5 if neither top_k, max_tokens nor stop_at is given.
        title_field: The field of the meta with the title; documents may lack it.
        use_scores: Whether the scores of the retriever are taken into account.
        group_field: The field of the meta with the group of a document, such as its source, for
            `max_per_group`; documents without it are not limited.
        pinned_field: The field of the meta that is true for documents that must be kept.
        limits: max_tokens, stop_at and the other limits of `Selector.select`. All but
            `count_tokens`, a function, are saved.
    """

    def __init__(
        self,
        model: str | None = None,
        top_k: int | None = None,
        title_field: str = "title",
        use_scores: bool = False,
        group_field: str | None = None,
        pinned_field: str | None = None,
        **limits: Any,
    ) -> None:
        self.model, self.limits = model, Limits(k=top_k, **limits)
        self.title_field, self.use_scores = title_field, use_scores
        self.group_field, self.pinned_field = group_field, pinned_field
        self._selector: Selector | None = None

    def warm_up(self) -> None:
        """Load the model; `run` does so too, if it has not been done."""
        if self._selector is None:
            self._selector = Selector.from_pretrained(self.model)

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack saves it."""
        limits = self.limits.to_dict()
        return default_to_dict(
            self,
            model=self.model,
            title_field=self.title_field,
            use_scores=self.use_scores,
            group_field=self.group_field,
            pinned_field=self.pinned_field,
            top_k=limits.pop("k"),
            **limits,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "DGNRanker":
        """The component from what `to_dict` returned."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
        given: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """Select documents.

        Args:
            query: The query.
            documents: The documents, which must have text.
            top_k: How many to keep this time.
            query_embedding: The embedding of the query, to be taken into account with those of the
                documents; all of them must have one then.
            given: Texts that are already in the prompt; nothing that repeats them is kept.
        """
        self.warm_up()
        assert self._selector is not None  # noqa: S101
        for index, document in enumerate(documents):
            if document.content is None:
                message = f"documents[{index}] has no text; DGNRanker selects texts only."
                raise InvalidInput("documents", message=message)
            if query_embedding is not None and document.embedding is None:
                message = f"documents[{index}] has no embedding, which query_embedding needs."
                raise InvalidInput("documents", message=message)
        metadata_of = [document.meta for document in documents]
        has_vectors = query_embedding is not None and documents
        scores = filled_scores([one.score for one in documents]) if self.use_scores else None
        limits = self.limits if top_k is None else replace(self.limits, k=top_k)
        chosen = choose(
            self._selector,
            query,
            [document.content or "" for document in documents],
            limits,
            metadata_of,
            title_key=self.title_field,
            group_key=self.group_field,
            pinned_key=self.pinned_field,
            scores=scores,
            given=given,
            query_embedding=query_embedding if has_vectors else None,
            embeddings=[one.embedding for one in documents] if has_vectors else None,
        )
        kept = [
            replace(
                documents[index],
                score=metadata["dgn_relevance"],
                meta={**documents[index].meta, **metadata},
            )
            for index, metadata in chosen
        ]
        return {"documents": kept}
