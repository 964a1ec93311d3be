"""LlamaIndex: a node postprocessor; needs `dgn[llama-index]`."""

# No `from __future__ import annotations`: pydantic reads the annotations when the class is made.
from typing import Annotated, Any

from dgn.apps.adapters._chosen import (
    choose,
    filled_scores,
    gather_limits,
    limits_of,
    saved_model,
    selector_for,
)
from dgn.errors import InvalidInput, require_extra
from dgn.selector import Limits, Selector

require_extra("The LlamaIndex adapter", package="llama_index", extra="llama-index")

from llama_index.core.bridge.pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    WithJsonSchema,
    field_serializer,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import PlainValidator


class DGNNodePostprocessor(BaseNodePostprocessor):
    """Keeps the nodes that together cover the query, in the order of selection.

        engine = index.as_query_engine(node_postprocessors=[DGNNodePostprocessor(k=5)])

    It returns copies: the score of each is the share of the query that it covers by itself, and
    its metadata has `dgn_gain`, `dgn_relevance` and `dgn_covers` in addition. `to_dict` has
    everything but `count_tokens`, and the name of the model in place of the selector.

    Args:
        selector: What selects; by default the model. If it is given, `model` is only the name by
            which it is saved.
        options: The attributes below.

    Attributes:
        model: A model of `Selector.from_pretrained`; by default the one that ships with dgn.
        limits: How many nodes to keep, and the other limits of `Selector.select`. They may also be
            given by themselves: `k=3`, `max_tokens=500`.
        title_key: The key of the metadata with the title; nodes may lack it.
        use_scores: Whether the scores of the retriever are taken into account.
        use_embeddings: Whether the embeddings of the query and of the nodes are taken into account;
            all of them must have one then.
        group_key: The key of the metadata with the group of a node, such as its source, for
            `max_per_group`; nodes without it are not limited.
        pinned_key: The key of the metadata that is true for nodes that must be kept.
        given: Texts that are already in the prompt; nothing that repeats them is kept.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    model: str | None = Field(default=None)
    limits: Annotated[
        Limits,
        PlainValidator(limits_of),
        PlainSerializer(Limits.to_dict),
        WithJsonSchema({"type": "object"}),
    ] = Field(default=Limits())
    title_key: str = Field(default="title")
    use_scores: bool = Field(default=False)
    use_embeddings: bool = Field(default=False)
    group_key: str | None = Field(default=None)
    pinned_key: str | None = Field(default=None)
    given: list[str] = Field(default_factory=list[str])
    _selector: Selector = PrivateAttr()
    _has_own_selector: bool = PrivateAttr(default=False)

    def __init__(self, selector: Selector | None = None, **options: Any) -> None:
        super().__init__(**gather_limits(options))
        self._has_own_selector = selector is not None
        self._selector = selector_for(self.model, selector)

    @field_serializer("model")
    def _saved_model(self, model: str | None) -> str | None:
        return saved_model(model, has_own_selector=self._has_own_selector)

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex saves."""
        return "DGNNodePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InvalidInput("query_bundle", message="A query is needed to select nodes.")
        metadata_of = [node.node.metadata for node in nodes]
        vectors = [node.node.embedding for node in nodes] if self.use_embeddings else None
        if vectors is not None and None in vectors:
            message = f"nodes[{vectors.index(None)}] has no embedding, which use_embeddings needs."
            raise InvalidInput("use_embeddings", message=message)
        chosen = choose(
            self._selector,
            query_bundle.query_str,
            [node.node.get_content(metadata_mode=MetadataMode.NONE) for node in nodes],
            self.limits,
            metadata_of,
            title_key=self.title_key,
            group_key=self.group_key,
            pinned_key=self.pinned_key,
            scores=filled_scores([node.score for node in nodes]) if self.use_scores else None,
            given=self.given,
            query_embedding=query_bundle.embedding if self.use_embeddings else None,
            embeddings=vectors,
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
