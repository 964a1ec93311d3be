"""What may be selected: passages and documents, from what callers have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from dgn.errors import InvalidInput
from dgn.text.languages import ENGLISH, found_language
from dgn.text.sentences import split_sentences

_PASSAGE_KEYS = frozenset({"text", "title", "id", "score", "metadata"})


@dataclass(frozen=True)
class Document:
    """A document to select sentences from.

    Args:
        text: The whole text, which is split into sentences.
        title: The title. Words of the title count as covered by each sentence of the document.
        sentences: The sentences in order, in place of the text.
        id: An identifier of your own.
        metadata: Anything else; every passage of the document carries it.
    """

    text: str = ""
    title: str = ""
    sentences: Sequence[str] | None = None
    id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Passage:
    """A text that may be selected, and what is known about it.

    Attributes:
        text: The text itself.
        title: The title of its document; empty if there is none.
        document: The number of its document among those given, from 0; None for loose passages.
        position: Its position in the document, from 0; None if it is not known.
        start: Where it begins in the text of the document; None if sentences were given.
        end: Where it ends there.
        id: The identifier of the passage or of its document.
        score: A relevance score from elsewhere; any finite number.
        metadata: The metadata of its document.
    """

    text: str
    title: str = ""
    document: int | None = None
    position: int | None = None
    start: int | None = None
    end: int | None = None
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)


def passages_of(
    passages: Iterable[str | Passage | Mapping[str, Any]] | None,
    documents: Iterable[Document | Mapping[str, Any] | str] | None,
    *,
    titles: str | Iterable[str] | None = None,
    scores: Iterable[float] | None = None,
) -> tuple[Passage, ...]:
    """The passages of a query, checked; the arguments are those of `Query.of`."""
    if (passages is None) == (documents is None):
        reason = "missing" if passages is None else "given"
        raise InvalidInput(
            "passages", message=f"passages and documents are both {reason}; pass one of them."
        )
    if documents is not None:
        if titles is not None:
            raise InvalidInput(
                "titles",
                message="titles cannot be combined with documents; each document has its own "
                "title.",
            )
        checked = _of_documents(documents)
    else:
        checked = _of_passages(cast("Iterable[Any]", passages), titles)
    if not checked:
        name = "passages" if documents is None else "documents"
        raise InvalidInput(name, message=f"{name} contains no passage; pass at least one.")
    return _with_scores(checked, scores)


def given_passages(given: Iterable[Any]) -> list[Passage]:
    """Texts that are given with a query, checked; they have the forms of passages."""
    return _of_passages(given, None, "given")


def _of_passages(
    passages: Iterable[Any], titles: str | Iterable[str] | None, argument: str = "passages"
) -> list[Passage]:
    if isinstance(passages, str):
        message = f"{argument} is a single string; pass a list of strings"
        if argument == "passages":
            message += ", or documents=[text] to split a text into sentences"
        raise InvalidInput(argument, message=f"{message}.")
    given = entries_of(argument, passages)
    names = None
    if titles is not None:
        names = [str(titles)] * len(given) if isinstance(titles, str) else _texts("titles", titles)
        if len(names) != len(given):
            raise InvalidInput(
                "titles",
                message=f"titles has {len(names)} entries for {len(given)} passages; pass one "
                "title for each passage, or one string for all.",
            )
    if all(isinstance(one, str) for one in given):
        texts = _texts(argument, given)
        return [*map(Passage, texts)] if names is None else [*map(Passage, texts, names)]
    checked = [_passage_of(one, number, argument) for number, one in enumerate(given)]
    if names is None:
        return checked
    return [replace(one, title=title) for one, title in zip(checked, names, strict=True)]


def _passage_of(given: Any, number: int, argument: str) -> Passage:
    """A passage in any of its forms, checked."""
    name = f"{argument}[{number}]"
    if isinstance(given, str):
        return Passage(checked_text(argument, given, number))
    if isinstance(given, Mapping):
        values = {k: v for k, v in cast("Mapping[str, Any]", given).items() if v is not None}
        unknown = values.keys() - _PASSAGE_KEYS
        if unknown or "text" not in values:
            reason = f"has the unknown key {min(map(str, unknown))!r}" if unknown else "has no text"
            allowed = ", ".join(sorted(_PASSAGE_KEYS))
            raise InvalidInput(name, message=f"{name} {reason}; the keys are {allowed}.")
        values["metadata"] = _metadata(name, values.get("metadata"))
        passage = Passage(**values)
    elif isinstance(given, Passage):
        passage = given
    else:
        raise InvalidInput(
            name, found=f"{given!r:.80}", allowed="a string, a Passage or a dictionary"
        )
    for key, text in (("text", passage.text), ("title", passage.title)):
        checked_text(f"{name}.{key}", text)
    score, identifier = passage.score, _identifier(name, passage.id)
    if score is not None:
        score = _number(f"{name}.score", score)
    if score is passage.score and identifier is passage.id:
        return passage
    return replace(passage, score=score, id=identifier)


def _of_documents(documents: Iterable[Document | Mapping[str, Any] | str]) -> list[Passage]:
    given: Any = documents
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping | Document):
        raise InvalidInput(
            "documents", found=f"a single {given.__class__.__name__}", allowed="a list of documents"
        )
    passages: list[Passage] = []
    for number, one in enumerate(cast("Iterable[Any]", given)):
        document = _document_of(one, number)
        shared: dict[str, Any] = {
            "title": document.title,
            "document": number,
            "id": document.id,
            "metadata": dict(document.metadata),
        }
        if document.sentences is not None:
            passages += [
                Passage(text, position=position, **shared)
                for position, text in enumerate(
                    _texts(f"documents[{number}].sentences", document.sentences)
                )
            ]
        else:
            language = found_language(document.text) or ENGLISH
            passages += [
                Passage(span.text, position=position, start=span.start, end=span.end, **shared)
                for position, span in enumerate(split_sentences(document.text, language))
            ]
    return passages


def _document_of(given: Any, number: int) -> Document:
    """A document in any of its forms, checked."""
    name = f"documents[{number}]"
    if isinstance(given, Document):
        document = given
    elif isinstance(given, str):
        document = Document(given)
    elif isinstance(given, Mapping):
        keys = dict(cast("Mapping[str, Any]", given))
        known = {key: keys.pop(key) for key in ("text", "title", "sentences", "id") if key in keys}
        inner = _metadata(name, keys.pop("metadata", None))
        metadata = {**keys, **inner}
        known = {key: value for key, value in known.items() if value is not None}
        if not known.keys() & {"text", "sentences"}:
            raise InvalidInput(name, message=f"{name} has neither text nor sentences.")
        document = Document(**known, metadata=metadata)
    else:
        raise InvalidInput(
            name, found=f"{given!r:.80}", allowed="a Document, a dictionary or a string"
        )
    loose: Any = document
    if isinstance(loose.sentences, str | Mapping):
        raise InvalidInput(f"{name}.sentences", found="one value", allowed="a list of strings")
    for key in ("text", "title"):
        checked_text(f"{name}.{key}", getattr(document, key))
    if document.text and document.sentences is not None:
        raise InvalidInput(name, message=f"{name} has both text and sentences; pass one of them.")
    _metadata(name, loose.metadata)
    return replace(document, id=_identifier(name, loose.id))


def _metadata(name: str, given: Any) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput(f"{name}.metadata", found=f"{given!r:.40}", allowed="a dictionary")
    return dict(cast("Mapping[str, Any]", given or {}))


def _identifier(name: str, given: Any) -> str | None:
    """An identifier as a string; numbers are fine."""
    if given is None or isinstance(given, str):
        return given
    if not hasattr(given, "__index__"):
        raise InvalidInput(f"{name}.id", found=f"{given!r:.40}", allowed="a string")
    return str(given)


def entries_of(argument: str, values: Any, allowed: str = "an iterable of strings") -> list[Any]:
    """The entries of an iterable that is not a table or a single value."""
    # A data frame would iterate over the names of its columns.
    is_odd = hasattr(values, "columns") or getattr(values, "ndim", 1) == 0
    if isinstance(values, Mapping) or is_odd or not isinstance(values, Iterable):
        kind = type(cast("object", values)).__name__
        raise InvalidInput(argument, found=kind, allowed=allowed)
    return list(cast("Iterable[Any]", values))


def _texts(argument: str, values: Any) -> list[str]:
    """The values as a list of strings; NumPy's strings become plain ones."""
    return [
        checked_text(argument, value, number)
        for number, value in enumerate(entries_of(argument, values))
    ]


def checked_text(argument: str, value: Any, number: int = 0) -> str:
    """A value as a plain string, after it was checked to be one."""
    if not isinstance(value, str):
        found = f"{value!r:.40} at position {number}"
        raise InvalidInput(argument, found=found, allowed="strings")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                argument,
                message=f"{argument} contains half of a Unicode character in text {number}; decode "
                "the text correctly first.",
            ) from None
    return str(value)


def _with_scores(passages: list[Passage], scores: Any) -> tuple[Passage, ...]:
    if scores is None:
        return tuple(passages)
    is_odd = getattr(scores, "ndim", 1) == 0
    if is_odd or isinstance(scores, str | Mapping) or not isinstance(scores, Iterable):
        raise InvalidInput("scores", found=f"{scores!r:.40}", allowed="a list of numbers")
    numbers = [
        _number("scores", score, f" at position {index}")
        for index, score in enumerate(cast("Iterable[Any]", scores))
    ]
    if len(numbers) != len(passages):
        raise InvalidInput(
            "scores",
            message=f"scores has {len(numbers)} entries for {len(passages)} passages; pass one "
            "score for each passage.",
        )
    return tuple(
        replace(passage, score=number) for passage, number in zip(passages, numbers, strict=True)
    )


def _number(argument: str, value: Any, where: str = "") -> float:
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(argument, found=f"{value!r:.40}{where}", allowed="finite numbers")
    return number
