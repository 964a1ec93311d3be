"""The package rerankers: a ranker; needs `dgn[rerankers]`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from dgn.apps.adapters._chosen import scores_at
from dgn.errors import require_extra
from dgn.selector import Limits, Selector
from dgn.selector.limits import LimitArguments
from dgn.text.query import Query

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
        score_key: The key of the metadata with a score of the retriever, to be taken into account;
            every document must have it then.
        limits: k, max_tokens and the other limits of `Selector.select`. Documents that they leave
            out come last, with a score of 0.
    """

    def __init__(
        self,
        model_name_or_path: str | None = None,
        verbose: int = 0,
        *,
        score_key: str | None = None,
        **limits: Unpack[LimitArguments],
    ) -> None:
        del verbose
        self.selector = Selector.from_pretrained(model_name_or_path)
        self.score_key, self.limits = score_key, Limits(**limits)
        self._has_limits = bool({"k", "max_tokens", "stop_at"} & {*limits})

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
        scores = scores_at([document.metadata or {} for document in documents], self.score_key)
        limits = self.limits if self._has_limits else replace(self.limits, k=len(texts))
        built = Query.of(query, texts, scores=scores)
        selection = self.selector.select_queries([built], limits)[0]
        gains = dict(zip(selection.indices, selection.gains, strict=True))
        # Those that repeat others are never selected; they come last, as do those left out.
        order = [*selection.indices, *(i for i in range(len(texts)) if i not in gains)]
        results = [
            Result(documents[index], score=gains.get(index, 0.0), rank=position + 1)
            for position, index in enumerate(order)
        ]
        return RankedResults(results, query, has_scores=True)

    def score(self, query: str, doc: str) -> float:
        """The share of the query that a document covers by itself, from 0 to 1."""
        return self.selector.select(query, [doc], k=1).relevance[0]
