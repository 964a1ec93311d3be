"""LangChain: a compressor for `ContextualCompressionRetriever`; needs `dgn[langchain]`."""

# No `from __future__ import annotations`: pydantic reads the annotations when the class is made.
from collections.abc import Sequence
from typing import Any

from dgn.adapters.chosen import choose
from dgn.errors import require_extra
from dgn.selector import Selector

require_extra("The LangChain adapter", package="langchain_core", extra="langchain")

from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field


class DGNDocumentCompressor(BaseDocumentCompressor):
    """Keeps the documents that together cover the query, in the order of selection.

        retriever = ContextualCompressionRetriever(
            base_compressor=DGNDocumentCompressor(k=5), base_retriever=your_retriever
        )

    It returns copies. Their metadata has `dgn_gain`, `dgn_score` and `dgn_covers` in addition.

    Attributes:
        selector: What selects; by default the model that ships with dgn.
        k: How many documents to keep; None if only another limit counts.
        max_tokens: Keep documents with at most this many tokens together.
        coverage: Stop once this fraction of the achievable coverage is reached.
        min_relevance: Leave out documents that cover less of the query by themselves.
        title_key: The key of the metadata with the title; documents may lack it.
        score_key: The key of the metadata with a score of the retriever, to be taken into account;
            every document must have it then.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    selector: Selector = Field(default_factory=Selector.from_pretrained)
    k: int | None = 5
    max_tokens: float | None = None
    coverage: float | None = None
    min_relevance: float = 0.0
    title_key: str = "title"
    score_key: str | None = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        """Select documents; `acompress_documents` does the same in another thread."""
        del callbacks
        found = choose(
            self.selector,
            query,
            [document.page_content for document in documents],
            titles=[str(document.metadata.get(self.title_key) or "") for document in documents],
            scores=self._scores(documents),
            k=self.k,
            max_tokens=self.max_tokens,
            coverage=self.coverage,
            min_relevance=self.min_relevance,
        )
        return [
            documents[one.index].model_copy(
                update={"metadata": {**documents[one.index].metadata, **one.metadata()}}
            )
            for one in found
        ]

    def _scores(self, documents: Sequence[Document]) -> list[float] | None:
        if self.score_key is None:
            return None
        return [document.metadata[self.score_key] for document in documents]
