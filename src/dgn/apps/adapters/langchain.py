"""LangChain: a compressor for `ContextualCompressionRetriever`; needs `dgn[langchain]`."""

# No `from __future__ import annotations`: pydantic reads the annotations when the class is made.
from collections.abc import Sequence
from typing import Any, cast

from dgn.apps.adapters._chosen import choose, gather_limits
from dgn.errors import require_extra
from dgn.selector import Limits, Selector

require_extra("The LangChain adapter", package="langchain_core", extra="langchain")

from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, model_validator


class DGNDocumentCompressor(BaseDocumentCompressor):
    """Keeps the documents that together cover the query, in the order of selection.

        retriever = ContextualCompressionRetriever(
            base_compressor=DGNDocumentCompressor(k=5), base_retriever=your_retriever
        )

    It returns copies. Their metadata has `dgn_gain`, `dgn_relevance` and `dgn_covers` in addition.

    Attributes:
        selector: What selects; by default the model that ships with dgn.
        limits: How many documents to keep, and the other limits of `Selector.select`. They may
            also be given by themselves: `k=3`, `max_tokens=500`.
        title_key: The key of the metadata with the title; documents may lack it.
        score_key: The key of the metadata with a score of the retriever, to be taken into account;
            every document must have it then.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    selector: Selector = Field(default_factory=Selector.from_pretrained)
    limits: Limits = Limits()
    title_key: str = "title"
    score_key: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather_limits(cls, options: Any) -> Any:
        return gather_limits(cast("Any", options)) if isinstance(options, dict) else options

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        """Select documents; `acompress_documents` does the same in another thread."""
        del callbacks
        chosen = choose(
            self.selector,
            query,
            [document.page_content for document in documents],
            self.limits,
            titles=[str(document.metadata.get(self.title_key) or "") for document in documents],
            scores=self._scores(documents),
        )
        return [
            documents[index].model_copy(
                update={"metadata": {**documents[index].metadata, **metadata}}
            )
            for index, metadata in chosen
        ]

    def _scores(self, documents: Sequence[Document]) -> list[float] | None:
        if self.score_key is None:
            return None
        return [document.metadata[self.score_key] for document in documents]
