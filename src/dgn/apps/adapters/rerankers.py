"""The package rerankers: a ranker; needs `dgn[rerankers]`."""

from __future__ import annotations

from typing import Any

from dgn.errors import require_extra
from dgn.selector import Selector

require_extra("The rerankers adapter", package="rerankers", extra="rerankers")

from rerankers import utils
from rerankers.documents import Document
from rerankers.models.ranker import BaseRanker
from rerankers.results import RankedResults, Result

_utils: Any = utils  # whose functions are only partly typed


class DGNRanker(BaseRanker):
    """Ranks documents by the order in which they are selected.

        DGNRanker().rank("Who designed the bridge?", docs, doc_ids).top_k(5)

    The score of a document is what it adds to those before it, so that a document that repeats
    others comes late.

    Args:
        model_name_or_path: A model of `Selector.from_pretrained`; None for the one that ships.
        verbose: Not used; rerankers passes it.
    """

    def __init__(self, model_name_or_path: str | None = None, verbose: int = 0) -> None:
        del verbose
        self.selector = Selector.from_pretrained(model_name_or_path)

    def rank(
        self,
        query: str,
        docs: str | list[str] | Document | list[Document],
        doc_ids: list[str] | list[int] | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> RankedResults:
        """Rank all documents."""
        documents: list[Any] = _utils.prep_docs(docs, doc_ids, metadata)
        texts = [document.text for document in documents]
        selection = self.selector.select(query, texts, k=len(texts))
        gains = dict(zip(selection.indices, selection.gains, strict=True))
        # Those that repeat others are never selected; they come last.
        order = [*selection.indices, *(i for i in range(len(texts)) if i not in gains)]
        results = [
            Result(documents[index], score=gains.get(index, 0.0), rank=position + 1)
            for position, index in enumerate(order)
        ]
        return RankedResults(results, query, has_scores=True)

    def score(self, query: str, doc: str) -> float:
        """The share of the query that a document covers by itself, from 0 to 1."""
        return self.selector.select(query, [doc], k=1).relevance[0]
