"""What may be sent to the service, and what it answers, as OpenAPI describes them.

A body is parsed, checked against the limits that come as pydantic's context, and becomes queries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Self,
    TypedDict,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typing_extensions
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json

from dgn.apps.service.limits import Refused, ServiceLimits
from dgn.selector import Limits
from dgn.selector.result import SelectionDict
from dgn.text.query import Document, Passage, Query
from dgn.text.words import has_words

MOST_NUMBERS = 4_000_000
"""Of all embeddings of a request."""

LONGEST_QUERY = 20_000
"""In characters; how many words it may have is a limit of the service."""

_MOST_ERRORS = 20
_MOST_KEYS = 32
"""Of an object whose keys are known; more of them are refused before each one is looked at."""

QUERY_EXAMPLE = "The bridge was designed by Clara Voss, and trains have crossed it since 1911."
PASSAGES_EXAMPLE = [
    "The Corran Bridge stands on four piers of grey granite.",
    "The bridge was designed by the engineer Clara Voss.",
    "In 1911 the first train crossed the river.",
]


# --- checks ---------------------------------------------------------------------------------------


def _limit_of(name: str, info: ValidationInfo) -> int:
    return getattr(info.context or ServiceLimits(), name)


def _at_most(name: str) -> BeforeValidator:
    """A list has at most as many entries as a limit of the service says."""

    def check(value: Any, info: ValidationInfo) -> Any:
        most = _limit_of(name, info)
        if isinstance(value, list) and len(cast("list[Any]", value)) > most:
            raise PydanticCustomError(
                "too_long", "it must have at most {most} entries", {"most": most}
            )
        return cast("Any", value)

    return BeforeValidator(check)


def _up_to_k(value: int | None, info: ValidationInfo) -> int | None:
    most = _limit_of("k", info)
    if value is not None and value > most:
        raise PydanticCustomError("less_than_equal", "it must be at most {le}", {"le": most})
    return value


def _whole(value: Any) -> Any:
    """JSON does not distinguish 5.0 from 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_word(text: str) -> str:
    if not has_words(text):
        raise PydanticCustomError("no_word", "it must contain a letter or a digit")
    return text


def _finite(metadata: Any) -> Any:
    try:
        json.dumps(metadata, allow_nan=False)
    except ValueError:
        raise PydanticCustomError("number", "it contains a number that is too large") from None
    return metadata


def _kind(value: Any) -> str:
    return "?text" if isinstance(value, str) else "?object"


def _number(value: Any) -> str:
    is_many = "queries" in value if isinstance(value, dict) else hasattr(value, "queries")
    return "?many" if is_many else "?one"


_Query = Annotated[
    str,
    Field(
        description="A claim or a question; it must contain a letter or a digit.",
        examples=[QUERY_EXAMPLE],
        min_length=1,
        max_length=LONGEST_QUERY,
    ),
    AfterValidator(_with_word),
]
_Metadata = Annotated[dict[str, JsonValue] | None, AfterValidator(_finite)]
_Count = Annotated[int | None, BeforeValidator(_whole), AfterValidator(_up_to_k), Field(ge=1)]


# --- requests -------------------------------------------------------------------------------------


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class GivenPassage(_Request):
    """A passage with what is known about it."""

    text: str
    title: str = Field(
        default="", description="Words of the title count as covered by the passage."
    )
    id: str | None = None
    score: float | None = Field(
        default=None,
        ge=-1e30,
        le=1e30,
        description="A relevance score of your own. If some passages have one, those without one "
        "count as the worst.",
    )
    metadata: _Metadata = Field(default=None, description="Returned with the passage.")


class GivenDocument(_Request):
    """A document: a text, which is split into sentences, or sentences or chunks."""

    text: str | None = Field(default=None, pattern=r"\S")
    sentences: list[str] | None = Field(default=None, min_length=1)
    title: str = Field(
        default="", description="Words of the title count as covered by each sentence."
    )
    id: str | None = None
    metadata: _Metadata = Field(default=None, description="Returned with each sentence.")

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if (self.text is None) == (self.sentences is None):
            raise PydanticCustomError("content", "it must have text or sentences, and not both")
        return self


_Text = Annotated[
    Annotated[str, Tag("?text")] | Annotated[GivenPassage, Tag("?object")], Discriminator(_kind)
]


class Question(_Request):
    """A query over loose passages, or over the sentences of documents."""

    query: _Query | None = Field(
        description="A claim or a question; or null, to select what represents all passages."
    )
    passages: Annotated[list[_Text] | None, _at_most("passages")] = Field(
        default=None,
        min_length=1,
        description="Loose passages; their order does not matter.",
        examples=[PASSAGES_EXAMPLE],
    )
    documents: Annotated[list[GivenDocument] | None, _at_most("passages")] = Field(
        default=None,
        min_length=1,
        description="In place of passages: documents to take sentences from.",
    )
    id: str | None = Field(default=None, description="Returned with the answer.")
    query_embedding: list[float] | None = Field(
        default=None, description="Your own vector of the query; it comes together with embeddings."
    )
    embeddings: Annotated[list[list[float]] | None, _at_most("passages")] = Field(
        default=None, description="Your own vectors of the passages, in order."
    )
    given: Annotated[list[_Text], _at_most("passages")] = Field(
        default=[],
        description="Texts that are already there: they cover, and are not selected again.",
    )
    pinned: Annotated[list[int], _at_most("k")] = Field(
        default=[], description="Passages that must be selected, by their numbers."
    )
    groups: Annotated[list[str | int | None] | None, _at_most("passages")] = Field(
        default=None, description="The group of each, for max_per_group."
    )
    language: str | None = Field(
        default=None,
        max_length=16,
        description="The language of all texts, such as de; by default it is found.",
    )

    def characters(self) -> int:
        """The length of all texts."""
        numbers = sum(map(len, self.embeddings or ())) + len(self.query_embedding or ())
        if numbers > MOST_NUMBERS:
            raise Refused(422, f"The embeddings have more than {MOST_NUMBERS:,} numbers.")
        texts = sum(
            len(one) if isinstance(one, str) else len(one.text) + len(one.title)
            for one in (*(self.passages or ()), *self.given)
        )
        return (
            len(self.query or "")
            + texts
            + sum(
                len(one.title) + len(one.text or "") + sum(map(len, one.sentences or ()))
                for one in self.documents or ()
            )
        )

    def query_of(self) -> Query:
        """The query; `InvalidInput` names what is wrong with it."""
        return Query.of(
            self.query,
            None if self.passages is None else map(_passage_of, self.passages),
            documents=None if self.documents is None else map(_document_of, self.documents),
            query_embedding=self.query_embedding,
            embeddings=self.embeddings,
            given=map(_passage_of, self.given),
            pinned=self.pinned,
            groups=self.groups,
            id=self.id or "",
            language=self.language,
        )


def _passage_of(given: str | GivenPassage) -> str | Passage:
    if isinstance(given, str):
        return given
    return Passage(
        given.text, given.title, id=given.id, score=given.score, metadata=given.metadata or {}
    )


def _document_of(given: GivenDocument) -> Document:
    text, metadata = given.text or "", given.metadata or {}
    return Document(text, given.title, given.sentences, id=given.id, metadata=metadata)


class _Options(_Request):
    k: _Count = Field(
        default=None,
        description="Select this many; 5 if neither k, max_tokens nor stop_at is given.",
    )
    max_tokens: float | None = Field(
        default=None,
        gt=0,
        le=1e9,
        description="Select passages with at most this many tokens together.",
    )
    stop_at: float | None = Field(
        default=None, gt=0, le=1, description="Stop once this fraction of the coverage is reached."
    )
    score_weight: float | None = Field(
        default=None,
        ge=0,
        le=1e6,
        description="What your best score, or nearest embedding, is worth, as a multiple of the "
        "largest gain without it; null finds it out for each query.",
    )
    max_per_document: _Count = Field(
        default=None, description="Select at most this many of one document."
    )
    max_per_group: _Count = Field(
        default=None, description="Select at most this many of each group."
    )
    min_relevance: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Leave out passages that cover less of the query alone.",
    )
    reasons: bool = Field(
        default=False,
        description="Whether every passage is returned with what happened to it, and why.",
    )
    breadth: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How much it counts that the selected passages represent all passages, from 0, "
        "where the words of the query alone count, to 1; null for the default.",
    )
    context: bool = Field(
        default=False,
        description="Whether the text for a prompt is returned, with numbers for citing.",
    )

    def limits(self) -> Limits:
        """The limits; `InvalidInput` says which of them cannot be combined."""
        names = {one.name for one in fields(Limits)} - {"count_tokens"}
        return Limits(**{name: getattr(self, name) for name in names})


class Select(Question, _Options):
    """One query with its limits."""


class SelectMany(_Options):
    """Many queries with the same limits."""

    queries: Annotated[list[Question], _at_most("queries")] = Field(min_length=1)


SelectBody = Annotated[
    Annotated[SelectMany, Tag("?many")] | Annotated[Select, Tag("?one")], Discriminator(_number)
]


class RerankDocument(BaseModel):
    """A document as a dictionary; other fields than its text are not used."""

    text: str


class Rerank(BaseModel):
    """The request of Cohere's and Jina's clients; fields that dgn does not know are ignored."""

    query: _Query
    documents: Annotated[
        list[
            Annotated[
                Annotated[str, Tag("?text")] | Annotated[RerankDocument, Tag("?object")],
                Discriminator(_kind),
            ]
        ],
        _at_most("passages"),
    ] = Field(min_length=1, examples=[PASSAGES_EXAMPLE])
    top_n: Annotated[int | None, BeforeValidator(_whole)] = Field(
        default=None, ge=1, description="How many to return; all if it is missing."
    )
    return_documents: bool | None = Field(
        default=None, description="Whether the texts of the documents are returned; by default not."
    )
    model: str | None = Field(default=None, description="Not used: the server has one model.")

    def texts(self) -> list[str]:
        """The texts of the documents."""
        return [one if isinstance(one, str) else one.text for one in self.documents]


# --- answers --------------------------------------------------------------------------------------


class Selected(SelectionDict):
    """What was selected for one query, as `PassageSelection.to_dict` returns it."""

    id: NotRequired[str]
    context: NotRequired[str]


class SelectedMany(TypedDict):
    """What was selected for many queries, in their order."""

    selections: list[Selected]


class ReadPassage(TypedDict):
    """A passage, or a sentence and its place in its document."""

    text: str
    title: str
    document: int | None
    position: int | None
    start: int | None
    end: int | None


class Explained(TypedDict):
    """A selection with its reasons, the passages that they number, and the reasons for people."""

    selection: Selected
    passages: list[ReadPassage]
    text: str


class ComparedMethod(TypedDict):
    """What a method selects; the coverage is by dgn's own function."""

    method: str
    description: str
    indices: list[int]
    coverage: float | None


class Compared(TypedDict):
    """Methods next to each other; each selects as many passages as dgn."""

    methods: list[ComparedMethod]


class RankedDocument(TypedDict):
    """A document; its score is from 0 to 1 and never increases."""

    index: int
    relevance_score: float
    document: NotRequired[dict[str, str]]


class Reranked(TypedDict):
    """What the clients of Cohere and Jina read."""

    id: str
    object: Literal["list"]
    model: str
    results: list[RankedDocument]
    usage: dict[str, int]
    meta: dict[str, Any]


class Problem(TypedDict):
    """An error: RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: NotRequired[list[dict[str, Any]]]


class Status(TypedDict):
    """Whether the service works."""

    status: str
    version: str


def described(answer: Any) -> Any:
    """A type of answers as pydantic takes it before Python 3.12: of typing_extensions."""
    if is_typeddict(answer):
        hints = get_type_hints(answer, include_extras=True)
        loose: Any = typing_extensions.TypedDict
        return loose(answer.__name__, {name: described(hint) for name, hint in hints.items()})
    kind, inner = get_origin(answer), tuple(map(described, get_args(answer)))
    if kind in (list, NotRequired):
        generic: Any = kind
        return generic[inner[0]]
    return Union[inner] if kind is UnionType else answer  # noqa: UP007


# --- from bytes to a request ----------------------------------------------------------------------


def parsed(adapter: TypeAdapter[Any], content: bytes, limits: ServiceLimits) -> Any:
    """The request in a body.

    Raises:
        Refused: The body is not JSON, or not what the schema describes.
    """
    try:
        value = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(400, f"The body is not JSON: {error}.") from None
    _check_keys(value)
    try:
        return adapter.validate_python(value, context=limits)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)[:_MOST_ERRORS]
        errors = [
            {"at": _pointer(one["loc"]), "message": _message(cast("Any", one))} for one in details
        ]
    detail = f"{errors[0]['at'] or 'The body'}: {errors[0]['message']}."
    raise Refused(422, detail, errors=errors)


def _check_keys(value: Any, depth: int = 0) -> None:
    """Refuse objects with very many keys; to name each unknown one would take seconds."""
    if not isinstance(value, dict):
        return
    body = cast("dict[str, Any]", value)
    if len(body) > _MOST_KEYS:
        raise Refused(422, f"An object has {len(body):,} fields; most of them are not known.")
    for inner in body.values():
        if type(inner) is list and depth < 2:
            for one in cast("list[Any]", inner):
                if type(one) is dict:
                    _check_keys(one, depth + 1)


_MESSAGES = {
    "missing": "it is missing",
    "string_pattern_mismatch": "it must contain a visible character",
    "string_too_long": "it must have at most {max_length} characters",
    "extra_forbidden": "this field is not known",
    "dict_type": "it must be an object",
    "model_attributes_type": "it must be a string, or an object with text",
    "model_type": "it must be an object",
    "string_type": "it must be a string",
    "list_type": "it must be a list",
    "too_short": "it must have at least {min_length} entry",
    "int_type": "it must be an integer",
    "float_type": "it must be a number",
    "greater_than_equal": "it must be at least {ge}",
    "less_than_equal": "it must be at most {le}",
    "greater_than": "it must be greater than {gt}",
}


def _message(error: Mapping[str, Any]) -> str:
    text = _MESSAGES.get(error["type"])
    return error["msg"] if text is None else text.format(**error.get("ctx", {}))


def _pointer(location: Sequence[str | int]) -> str:
    """A JSON pointer; the names of variants are not part of the body, and long names are cut."""
    return "".join(f"/{one!s:.40}" for one in location if not str(one).startswith("?"))
