"""LangChain: a compressor for `ContextualCompressionRetriever`; needs `dgn[langchain]`."""

# No `from __future__ import annotations`: pydantic reads the annotations when the class is made.
from collections.abc import Sequence
from typing import Annotated, Any, cast

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

require_extra("The LangChain adapter", package="langchain_core", extra="langchain")

from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    WithJsonSchema,
    field_serializer,
    model_validator,
)


class DGNDocumentCompressor(BaseDocumentCompressor):
    """Keeps the documents that together cover the query, in the order of selection.

        retriever = ContextualCompressionRetriever(
            base_compressor=DGNDocumentCompressor(k=5), base_retriever=your_retriever
        )

    It returns copies. Their metadata has `dgn_gain`, `dgn_relevance` and `dgn_covers` in addition.
    `model_dump_json` writes everything but `count_tokens`, and the name of the model in place of
    the selector.

    Attributes:
        model: A model of `Selector.from_pretrained`; by default the one that ships with dgn.
        selector: What selects; by default the model. If it is given, `model` is only the name by
            which it is saved.
        limits: How many documents to keep, and the other limits of `Selector.select`. They may
            also be given by themselves: `k=3`, `max_tokens=500`. `top_n=3` is k, as in other
            compressors.
        title_key: The key of the metadata with the title; documents may lack it.
        use_scores: Whether the scores of the retriever are taken into account; a document without
            one counts as the worst.
        score_key: The key of the metadata with the score; to name it is to use scores.
        group_key: The key of the metadata with the group of a document, such as its source, for
            `max_per_group`; documents without it are not limited.
        pinned_key: The key of the metadata that is true for documents that must be kept.
        given: Texts that are already in the prompt; nothing that repeats them is kept.
        embeddings: LangChain's embeddings, which embed the query and the documents; their
            similarity is taken into account. They are not saved.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    model: str | None = None
    selector: Annotated[Selector, WithJsonSchema({"type": "null"})] = Field(
        default=cast("Selector", None), exclude=True
    )
    limits: Annotated[
        Limits,
        PlainValidator(limits_of),
        PlainSerializer(Limits.to_dict),
        WithJsonSchema({"type": "object"}),
    ] = Limits()
    title_key: str = "title"
    use_scores: bool = False
    score_key: str = "relevance_score"
    group_key: str | None = None
    pinned_key: str | None = None
    given: list[str] = Field(default_factory=list[str])
    embeddings: Annotated[Any, WithJsonSchema({"type": "null"})] = Field(default=None, exclude=True)
    _has_own_selector: bool = PrivateAttr(default=False)

    @model_validator(mode="before")
    @classmethod
    def _gather_limits(cls, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        known = cast("dict[str, Any]", options)
        if known.get("selector") is None:
            known = {name: value for name, value in known.items() if name != "selector"}
        if "score_key" in known:
            known = {"use_scores": True, **known}
        return gather_limits(known)

    @model_validator(mode="after")
    def _load_selector(self) -> "DGNDocumentCompressor":
        own = cast("Selector | None", self.selector)
        self._has_own_selector = own is not None
        self.selector = selector_for(self.model, own)
        return self

    @field_serializer("model")
    def _saved_model(self, model: str | None) -> str | None:
        return saved_model(model, has_own_selector=self._has_own_selector)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        """Select documents; `acompress_documents` does the same in another thread."""
        del callbacks
        texts = [document.page_content for document in documents]
        metadata = [document.metadata for document in documents]
        model: Any = self.embeddings if texts else None
        scores = [one.get(self.score_key) for one in metadata] if self.use_scores else None
        if scores and not any(score is not None for score in scores):
            message = f"No document has {self.score_key!r} in its metadata; set score_key."
            raise InvalidInput("score_key", message=message)
        chosen = choose(
            self.selector,
            query,
            texts,
            self.limits,
            metadata,
            title_key=self.title_key,
            group_key=self.group_key,
            pinned_key=self.pinned_key,
            scores=None if scores is None else filled_scores(scores),
            given=self.given,
            query_embedding=None if model is None else model.embed_query(query),
            embeddings=None if model is None else model.embed_documents(texts),
        )
        return [
            documents[index].model_copy(
                update={"metadata": {**documents[index].metadata, **metadata}}
            )
            for index, metadata in chosen
        ]
