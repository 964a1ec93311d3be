"""LlamaIndex: a node postprocessor; needs `dgn[llama-index]`."""

# No `from __future__ import annotations`: pydantic reads the annotations when the class is made.
from typing import Any

from dgn.adapters.chosen import choose
from dgn.errors import InvalidInput, require_extra
from dgn.selector import Selector

require_extra("The LlamaIndex adapter", package="llama_index", extra="llama-index")

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle


class DGNNodePostprocessor(BaseNodePostprocessor):
    """Keeps the nodes that together cover the query, in the order of selection.

        engine = index.as_query_engine(node_postprocessors=[DGNNodePostprocessor(k=5)])

    It returns copies: the score of each is the share of the query that it covers by itself, and
    its metadata has `dgn_gain`, `dgn_score` and `dgn_covers` in addition.

    Args:
        selector: What selects; by default the model that ships with dgn.
        options: The attributes below.

    Attributes:
        k: How many nodes to keep; None if only another limit counts.
        max_tokens: Keep nodes with at most this many tokens together.
        coverage: Stop once this fraction of the achievable coverage is reached.
        min_relevance: Leave out nodes that cover less of the query by themselves.
        title_key: The key of the metadata with the title; nodes may lack it.
        use_scores: Whether the scores of the retriever are taken into account.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    k: int | None = Field(default=5)
    max_tokens: float | None = Field(default=None)
    coverage: float | None = Field(default=None)
    min_relevance: float = Field(default=0.0)
    title_key: str = Field(default="title")
    use_scores: bool = Field(default=False)
    _selector: Selector = PrivateAttr()

    def __init__(self, selector: Selector | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._selector = Selector.from_pretrained() if selector is None else selector

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex saves."""
        return "DGNNodePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InvalidInput("query_bundle", message="A query is needed to select nodes.")
        found = choose(
            self._selector,
            query_bundle.query_str,
            [node.node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes],
            titles=[str(node.node.metadata.get(self.title_key) or "") for node in nodes],
            scores=[node.get_score() for node in nodes] if self.use_scores else None,
            k=self.k,
            max_tokens=self.max_tokens,
            coverage=self.coverage,
            min_relevance=self.min_relevance,
        )
        kept: list[NodeWithScore] = []
        for one in found:
            node = nodes[one.index].node.model_copy()
            node.metadata = {**node.metadata, **one.metadata()}
            # What an embedding or a language model reads stays as it was.
            keys = list(one.metadata())
            node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, *keys]
            node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, *keys]
            kept.append(NodeWithScore(node=node, score=one.score))
        return kept
