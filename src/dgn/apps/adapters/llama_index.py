"""LlamaIndex: a node postprocessor; needs `dgn[llama-index]`."""

# No `from __future__ import annotations`: pydantic reads the annotations when the class is made.
from typing import Any

from dgn.apps.adapters._chosen import choose, gather_limits
from dgn.errors import InvalidInput, require_extra
from dgn.selector import Limits, Selector

require_extra("The LlamaIndex adapter", package="llama_index", extra="llama-index")

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle


class DGNNodePostprocessor(BaseNodePostprocessor):
    """Keeps the nodes that together cover the query, in the order of selection.

        engine = index.as_query_engine(node_postprocessors=[DGNNodePostprocessor(k=5)])

    It returns copies: the score of each is the share of the query that it covers by itself, and
    its metadata has `dgn_gain`, `dgn_relevance` and `dgn_covers` in addition.

    Args:
        selector: What selects; by default the model that ships with dgn.
        options: The attributes below.

    Attributes:
        limits: How many nodes to keep, and the other limits of `Selector.select`. They may also be
            given by themselves: `k=3`, `max_tokens=500`.
        title_key: The key of the metadata with the title; nodes may lack it.
        use_scores: Whether the scores of the retriever are taken into account.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    limits: Limits = Field(default=Limits())
    title_key: str = Field(default="title")
    use_scores: bool = Field(default=False)
    _selector: Selector = PrivateAttr()

    def __init__(self, selector: Selector | None = None, **options: Any) -> None:
        super().__init__(**gather_limits(options))
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
        chosen = choose(
            self._selector,
            query_bundle.query_str,
            [node.node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes],
            self.limits,
            titles=[str(node.node.metadata.get(self.title_key) or "") for node in nodes],
            scores=[node.get_score() for node in nodes] if self.use_scores else None,
        )
        kept: list[NodeWithScore] = []
        for index, metadata in chosen:
            node = nodes[index].node.model_copy()
            node.metadata = {**node.metadata, **metadata}
            # What an embedding or a language model reads stays as it was.
            keys = list(metadata)
            node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, *keys]
            node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, *keys]
            kept.append(NodeWithScore(node=node, score=metadata["dgn_relevance"]))
        return kept
