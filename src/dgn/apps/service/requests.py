"""The bodies of requests, as OpenAPI describes them, and the queries that they become.

They are made for given limits, so that the schema names the limits.
"""

# No `from __future__ import annotations`: pydantic could not see the limits inside a function.
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    field_validator,
)

from dgn.apps.service.refusals import Refused, ServiceLimits
from dgn.selector import Limits
from dgn.text.languages import checked_language
from dgn.text.query import (
    Document,
    Passage,
    Query,
    checked_embeddings,
    checked_groups,
    checked_pinned,
)
from dgn.text.words import has_words

QUERY_EXAMPLE = "The bridge was designed by Clara Voss, and trains have crossed it since 1911."
PASSAGES_EXAMPLE = [
    "The Corran Bridge stands on four piers of grey granite.",
    "The bridge was designed by the engineer Clara Voss.",
    "In 1911 the first train crossed the river.",
]


MOST_NUMBERS = 4_000_000
"""Of all embeddings of a request."""

LONGEST_QUERY = 20_000
"""In characters; how many words it may have is a limit of the service."""


def _whole(value: Any) -> Any:
    """JSON does not distinguish 5.0 from 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_word(text: str) -> str:
    if not has_words(text):
        raise ValueError("it must contain a letter or a digit")
    return text


_QueryText = Annotated[
    str,
    Field(
        description="A claim or a question; it must contain a letter or a digit.",
        examples=[QUERY_EXAMPLE],
        min_length=1,
        max_length=LONGEST_QUERY,
    ),
    AfterValidator(_with_word),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class GivenPassage(_Request):
    """A passage with what is known about it."""

    text: str
    title: str = Field("", description="Words of the title count as covered by the passage.")
    id: str | None = None
    score: float | None = Field(
        None,
        ge=-1e30,
        le=1e30,
        description="A relevance score of your own. If some passages have one, those without one "
        "count as the worst.",
    )
    metadata: dict[str, JsonValue] | None = Field(None, description="Returned with the passage.")

    def passage_of(self) -> Passage:
        return Passage(
            self.text, self.title, id=self.id, score=self.score, metadata=self.metadata or {}
        )

    def characters(self) -> int:
        return len(self.text) + len(self.title)


def _passage_of(given: Any) -> Passage:
    return Passage(given) if isinstance(given, str) else given.passage_of()


class _GivenDocument(_Request):
    title: str = Field("", description="Words of the title count as covered by each sentence.")
    id: str | None = None
    metadata: dict[str, JsonValue] | None = Field(None, description="Returned with each sentence.")


class TextDocument(_GivenDocument):
    """A document whose text is split into sentences."""

    text: str = Field(pattern=r"\S", description="It must not be empty.")

    def document_of(self) -> Document:
        return Document(self.text, self.title, id=self.id, metadata=self.metadata or {})

    def characters(self) -> int:
        return len(self.text) + len(self.title)


class SentencesDocument(_GivenDocument):
    """A document that has been split into sentences or chunks already."""

    sentences: list[str] = Field(min_length=1)

    def document_of(self) -> Document:
        return Document("", self.title, self.sentences, id=self.id, metadata=self.metadata or {})

    def characters(self) -> int:
        return sum(map(len, self.sentences)) + len(self.title)


def _has(key: str) -> Any:
    """Chooses a variant of a union by the key that is present, for clear messages."""

    def tag(value: Any) -> str:
        present = key in value if isinstance(value, dict) else hasattr(value, key)
        return "?with" if present else "?none"

    return Discriminator(tag)


def _kind(value: Any) -> str:
    return "?text" if isinstance(value, str) else "?object"


GivenText = Annotated[
    Annotated[str, Tag("?text")] | Annotated[GivenPassage, Tag("?object")], Discriminator(_kind)
]
GivenDocument = Annotated[
    Annotated[SentencesDocument, Tag("?with")] | Annotated[TextDocument, Tag("?none")],
    _has("sentences"),
]


class RerankDocument(BaseModel):
    """A document as a dictionary; other fields than its text are not used."""

    model_config = ConfigDict(strict=True)

    text: str

    def characters(self) -> int:
        return len(self.text)


RerankText = Annotated[
    Annotated[str, Tag("?text")] | Annotated[RerankDocument, Tag("?object")], Discriminator(_kind)
]


@dataclass(frozen=True)
class RequestModels:
    """The bodies of requests for given limits.

    Attributes:
        one: One query.
        select: One query or many.
        rerank: The body that the clients of Cohere and Jina send.
    """

    one: Any
    select: Any
    rerank: Any


def _characters(texts: list[Any]) -> int:
    """The length of texts, passages and documents, with their titles."""
    return sum(len(one) if isinstance(one, str) else one.characters() for one in texts)


def request_models(most: ServiceLimits) -> RequestModels:
    """Make the bodies of requests for these limits of the service."""

    class _Query(_Request):
        query: _QueryText
        id: str | None = Field(None, description="Returned with the answer.")
        query_embedding: list[float] | None = Field(
            None,
            max_length=MOST_NUMBERS,
            description="Your own vector of the query; it comes together with embeddings.",
        )
        embeddings: list[list[float]] | None = Field(
            None,
            max_length=most.passages,
            description="Your own vectors of the passages, in order.",
        )
        given: list[GivenText] = Field(
            [],
            max_length=most.passages,
            description="Texts that are already there: they cover, and are not selected again.",
        )
        pinned: list[int] = Field(
            [], max_length=most.k, description="Passages that must be selected, by their numbers."
        )
        groups: list[str | int | None] | None = Field(
            None, max_length=most.passages, description="The group of each, for max_per_group."
        )

        language: str | None = Field(
            None,
            max_length=16,
            description="The language of all texts, such as de; by default it is found.",
        )

        def completed(self, query: Query) -> Query:
            """The query with everything but its passages, which were checked."""
            count = len(query.passages)
            vectors = checked_embeddings(self.query_embedding, self.embeddings, count)
            return replace(
                query,
                id=self.id or "",
                given=tuple(map(_passage_of, self.given)),
                pinned=checked_pinned(self.pinned, count),
                groups=None if self.groups is None else checked_groups(self.groups, count),
                embeddings=vectors,
                language=None if self.language is None else checked_language(self.language),
            )

        def characters(self) -> int:
            numbers = sum(map(len, self.embeddings or ())) + len(self.query_embedding or ())
            if numbers > MOST_NUMBERS:
                raise Refused(422, f"The embeddings have more than {MOST_NUMBERS:,} numbers.")
            return len(self.query) + _characters(self.given)

    class _Limits(_Request):
        k: int | None = Field(
            None,
            ge=1,
            le=most.k,
            description="Select this many; 5 if neither k, max_tokens nor stop_at is given.",
        )
        max_tokens: float | None = Field(
            None,
            gt=0,
            le=1e9,
            description="Select passages with at most this many tokens together.",
        )
        stop_at: float | None = Field(
            None, gt=0, le=1, description="Stop once this fraction of the coverage is reached."
        )
        score_weight: float | None = Field(
            None,
            ge=0,
            le=1e6,
            description="What your best score, or nearest embedding, is worth, as a multiple of "
            "the largest gain without it; null finds it out for each query.",
        )
        max_per_document: int | None = Field(
            None, ge=1, le=most.k, description="Select at most this many of one document."
        )
        max_per_group: int | None = Field(
            None, ge=1, le=most.k, description="Select at most this many of each group."
        )
        min_relevance: float = Field(
            0.0, ge=0, le=1, description="Leave out passages that cover less of the query alone."
        )

        _whole_k = field_validator("k", mode="before")(_whole)

        def limits(self) -> Limits:
            names = [one.name for one in fields(Limits) if one.name != "count_tokens"]
            return Limits(**{name: getattr(self, name) for name in names})

    class _Answer(_Limits):
        receipt: bool = Field(
            False, description="Whether a receipt is returned: what happened to every passage."
        )
        context: bool = Field(
            False, description="Whether the text for a prompt is returned, with numbers for citing."
        )

    class _WithPassages(_Query):
        passages: list[GivenText] = Field(
            min_length=1,
            max_length=most.passages,
            description="Loose passages; their order does not matter.",
            examples=[PASSAGES_EXAMPLE],
        )

        def query_of(self) -> Query:
            return self.completed(Query(self.query, tuple(map(_passage_of, self.passages))))

        def characters(self) -> int:
            return super().characters() + _characters(self.passages)

    class _WithDocuments(_Query):
        documents: list[GivenDocument] = Field(
            min_length=1,
            max_length=most.passages,
            description="Documents to take sentences from.",
        )

        def query_of(self) -> Query:
            given = [one.document_of() for one in self.documents]
            return self.completed(Query.of(self.query, documents=given))

        def characters(self) -> int:
            return super().characters() + _characters(self.documents)

    class QueryWithPassages(_WithPassages):
        """One of many queries."""

    class QueryWithDocuments(_WithDocuments):
        """One of many queries, over documents."""

    class SelectFromPassages(_WithPassages, _Answer):
        """A query over loose passages."""

    class SelectFromDocuments(_WithDocuments, _Answer):
        """A query over documents, which are split into sentences."""

    class SelectMany(_Answer):
        """Many queries with the same limits."""

        queries: list[
            Annotated[
                Annotated[QueryWithDocuments, Tag("?with")]
                | Annotated[QueryWithPassages, Tag("?none")],
                _has("documents"),
            ]
        ] = Field(min_length=1, max_length=most.queries)

    class Rerank(BaseModel):
        """The request of Cohere's and Jina's clients; fields that dgn does not know are ignored."""

        model_config = ConfigDict(strict=True)

        query: _QueryText
        documents: list[RerankText] = Field(
            min_length=1, max_length=most.passages, examples=[PASSAGES_EXAMPLE]
        )
        top_n: int | None = Field(
            None, ge=1, le=most.passages, description="How many to return; all if it is missing."
        )
        return_documents: bool | None = Field(
            None, description="Whether the texts of the documents are returned; by default not."
        )
        model: str | None = Field(None, description="Not used: the server has one model.")

        _whole_top_n = field_validator("top_n", mode="before")(_whole)

        def query_of(self) -> Query:
            texts = (one if isinstance(one, str) else one.text for one in self.documents)
            return Query(self.query, tuple(map(Passage, texts)))

        def characters(self) -> int:
            return len(self.query) + _characters(self.documents)

        def limits(self) -> Limits:
            return Limits(k=min(self.top_n or len(self.documents), len(self.documents)))

    one = Annotated[
        Annotated[SelectFromDocuments, Tag("?with")] | Annotated[SelectFromPassages, Tag("?none")],
        _has("documents"),
    ]
    select = Annotated[
        Annotated[SelectMany, Tag("?with")] | Annotated[one, Tag("?none")], _has("queries")
    ]
    return RequestModels(one, select, Rerank)
