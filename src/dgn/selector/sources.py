"""What there is to pick from: sentences, or documents that are cut into sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dgn.encoders import Query
from dgn.errors import InvalidInput
from dgn.text import has_words, split_sentences

_LARGEST_SCORE = 1e30


@dataclass(frozen=True)
class Document:
    """A text with a title; or its sentences, if it is cut already."""

    text: str = ""
    title: str = ""
    sentences: Sequence[str] | None = None


@dataclass(frozen=True)
class Sentence:
    """A sentence that may be picked, and where it comes from.

    document: which one of those given, or None for plain sentences. place: its number there.
    start, end: document.text[start:end], or None where the sentences were given.
    """

    text: str
    title: str = ""
    document: int | None = None
    place: int = 0
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Question:
    """A claim, the sentences to pick from, and scores for them if the user has some."""

    claim: str
    sentences: tuple[Sentence, ...]
    scores: tuple[float, ...] | None = None

    def query(self) -> Query:
        """As an encoder takes it."""
        pages = [0 if one.document is None else one.document for one in self.sentences]
        return Query(
            self.claim,
            [one.text for one in self.sentences],
            [one.title for one in self.sentences],
            [one.place for one in self.sentences],
            pages,
        )


def question_of(
    claim: str,
    sentences: Iterable[str] | None = None,
    *,
    documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
    title: str | Sequence[str] = "",
    scores: Sequence[float] | None = None,
) -> Question:
    """A question in any of the ways in which one can be put; what is wrong with it is said."""
    if type(claim) is not str or not has_words(_texts("claim", [claim])[0]):
        raise InvalidInput("claim", found=f"{claim!r:.80}", allowed="a text with a word in it")
    if (sentences is None) == (documents is None):
        found = "neither" if sentences is None else "both"
        raise InvalidInput("sentences, documents", found=found, allowed="one of the two")
    if documents is not None:
        if title:
            raise InvalidInput(
                "title", found=repr(title), allowed="none: each document has its own"
            )
        candidates = _of_documents(documents)
    else:
        candidates = _of_sentences(cast("Iterable[str]", sentences), title)
    if not candidates:
        raise InvalidInput(
            "documents" if documents is not None else "sentences",
            found="none",
            allowed="at least one sentence",
        )
    return Question(claim, candidates, _checked_scores(scores, len(candidates)))


def _of_sentences(sentences: Iterable[str], title: str | Sequence[str]) -> tuple[Sentence, ...]:
    if isinstance(sentences, str):
        raise InvalidInput(
            "sentences", found="one string", allowed="a list of strings; or documents=[text]"
        )
    texts = _texts("sentences", sentences)
    titles = [title] * len(texts) if isinstance(title, str) else _texts("title", title)
    if len(titles) != len(texts):
        raise InvalidInput(
            "title", found=f"{len(titles)} titles", allowed=f"one, or {len(texts)} as sentences"
        )
    # Sentences with one title stand on one page, in this order.
    placed: dict[str, int] = {}
    numbers = {name: number for number, name in enumerate(dict.fromkeys(titles))}
    found: list[Sentence] = []
    for text, name in zip(texts, titles, strict=True):
        place = placed.get(name, 0)
        placed[name] = place + 1
        document = None if len(numbers) == 1 else numbers[name]
        found.append(Sentence(text, name, document, place))
    return tuple(found)


def _of_documents(
    documents: Iterable[Document | Mapping[str, Any] | str],
) -> tuple[Sentence, ...]:
    given: Any = documents
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise InvalidInput("documents", found="one document", allowed="a list of them")
    found: list[Sentence] = []
    for number, one in enumerate(documents):
        document = _checked(_document_of(one, number), number)
        if document.sentences is not None:
            found += [
                Sentence(text, document.title, number, place)
                for place, text in enumerate(_texts("documents", document.sentences))
            ]
        else:
            found += [
                Sentence(span.text, document.title, number, place, span.start, span.end)
                for place, span in enumerate(split_sentences(document.text))
            ]
    return tuple(found)


def _document_of(given: Document | Mapping[str, Any] | str, number: int) -> Document:
    if isinstance(given, Document):
        return given
    if isinstance(given, str):
        return Document(given)
    known = {"text", "title", "sentences"}
    fields: Any = given
    if not isinstance(fields, Mapping) or not cast("Mapping[str, Any]", fields).keys() <= known:
        raise InvalidInput(
            "documents",
            found=f"{given!r:.80} at {number}",
            allowed="a text, a Document, or a dict with text (or sentences) and title",
        )
    return Document(**given)


def _checked(document: Document, number: int) -> Document:
    """That a document is made of texts."""
    given: Any = document
    parts = {"text": given.text, "title": given.title}
    for name, value in parts.items():
        if type(value) is not str:
            raise InvalidInput(
                "documents", found=f"{name} {value!r:.40} at {number}", allowed="a string"
            )
    if isinstance(given.sentences, str | Mapping):
        raise InvalidInput(
            "documents", found=f"sentences as one value at {number}", allowed="a list of strings"
        )
    _texts("documents", [document.text, document.title])
    return document


def _texts(argument: str, values: Any) -> list[str]:
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        found = type(cast("object", values)).__name__
        raise InvalidInput(argument, found=f"a {found}", allowed="strings")
    texts: list[Any] = list(cast("Iterable[Any]", values))
    for number, value in enumerate(texts):
        if type(value) is not str:
            raise InvalidInput(
                argument, found=f"{type(value).__name__} at {number}", allowed="strings"
            )
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidInput(
                argument, found=f"half a character at {number}", allowed="text in Unicode"
            )
    return texts


def _checked_scores(scores: Sequence[float] | None, count: int) -> tuple[float, ...] | None:
    if scores is None:
        return None
    try:
        numbers = () if isinstance(scores, str) else tuple(float(score) for score in scores)
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if len(numbers) != count or not all(abs(number) < _LARGEST_SCORE for number in numbers):
        raise InvalidInput(
            "scores",
            found=f"{len(numbers)} numbers",
            allowed=f"{count} finite ones, one a sentence",
        )
    return numbers
