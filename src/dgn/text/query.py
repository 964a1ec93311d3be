"""What is asked, and what may be selected: queries, passages and documents, from what callers have.

Query.of("Who runs?", ["Bo runs.", "Ada swims."])              # loose passages, a set
Query.of("Who runs?", documents=["Bo runs. Ada swims."])      # texts, split into sentences
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput
from dgn.text.detection import found_language, query_language
from dgn.text.languages import ENGLISH, checked_language
from dgn.text.repeats import letters_of, same_text_key
from dgn.text.sentences import split_sentences
from dgn.text.words import has_words

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


@dataclass(frozen=True)
class Query:
    """A claim or a question, with the passages to select from.

    Passages that belong to documents have a position; loose passages are a set, and their order
    does not matter.

    Attributes:
        text: The claim or the question; empty if there is none.
        passages: The passages.
        id: An identifier, for results that are written to a file.
        given: Texts that are already there, as in a prompt: they cover, and are not selected.
        pinned: Passages that must be selected, as positions.
        groups: The group of each passage, for a quota; None for a passage in no group.
        embeddings: [1 + passages, width], the caller's vectors of the query and of its passages,
            of length 1 or 0.
        language: The language of all texts, such as "de"; None if it is to be found.
    """

    text: str
    passages: tuple[Passage, ...]
    id: str = ""
    given: tuple[Passage, ...] = ()
    pinned: tuple[int, ...] = ()
    groups: tuple[Hashable, ...] | None = None
    embeddings: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    language: str | None = None

    @property
    def texts(self) -> list[str]:
        """The texts of the passages."""
        return [passage.text for passage in self.passages]

    @cached_property
    def read_language(self) -> str:
        """The language in which the query and its passages are read: one for all texts.

        It is found from all of them together, unless the caller named it.
        """
        if self.language is not None:
            return self.language
        return query_language([self.text, *self.texts])

    @cached_property
    def twins(self) -> tuple[int, ...]:
        """For each passage, the one that stands for all with the same text and title.

        Nearly always it is the passage itself. Case, ordinary punctuation, spaces and spelling make
        no difference; see `dgn.text.repeats`.
        """
        prints = [(passage.title, letters_of(passage.text)) for passage in self.passages]
        if len(set(prints)) == len(prints):
            return tuple(range(len(prints)))  # nearly always, and found out in a tenth of the time
        first: dict[Any, int] = {}
        keys = [(passage.title, same_text_key(passage.text)) for passage in self.passages]
        return self.twins_of([first.setdefault(key, n) for n, key in enumerate(keys)])

    @cached_property
    def blank(self) -> tuple[int, ...]:
        """The passages without a visible character, which are never selected."""
        return tuple(
            number
            for number, text in enumerate(self.texts)
            if not any(letter.isprintable() and letter != " " for letter in text)
        )

    @cached_property
    def repeats_given(self) -> frozenset[int]:
        """The passages whose text is one of those that are given, or a part of one."""
        if not self.given:
            return frozenset()
        given = [f" {' '.join(same_text_key(passage.text))} " for passage in self.given]
        found: list[int] = []
        for number, text in enumerate(self.texts):
            own = f" {' '.join(same_text_key(text))} "
            if any(own in one for one in given):
                found.append(number)
        return frozenset(found)

    def twins_of(self, groups: Sequence[int]) -> tuple[int, ...]:
        """The passage that stands for each one, given passages that are equal.

        It is one that is pinned; then the one with the best score; then, of loose passages, whose
        order must not matter, the shortest one; then the first one.

        Args:
            groups: A number for each passage, the same for passages that are equal.
        """
        scores = self.scores or [0.0] * len(groups)
        best: dict[int, tuple[Any, ...]] = {}
        for index, (group, passage) in enumerate(zip(groups, self.passages, strict=True)):
            is_loose = passage.position is None
            size = (0, False, "")
            if is_loose:
                size = (len(passage.text), passage.text.isupper(), passage.text)
            rank = (index not in self.pinned, -scores[index], *size, index)
            best[group] = min(best.get(group, rank), rank)
        return tuple(best[group][-1] for group in groups)

    @property
    def scores(self) -> list[float] | None:
        """The caller's scores of the passages; None if no passage has one.

        If some passages have a score, those without one count as the worst.
        """
        known = [passage.score for passage in self.passages if passage.score is not None]
        if not known:
            return None
        worst = min(known)
        return [worst if one.score is None else one.score for one in self.passages]

    @classmethod
    def of(
        cls,
        query: str | None,
        passages: Iterable[str | Passage | Mapping[str, Any]] | None = None,
        *,
        documents: Iterable[Document | Mapping[str, Any] | str] | None = None,
        titles: str | Iterable[str] | None = None,
        scores: Iterable[float] | None = None,
        query_embedding: Any = None,
        embeddings: Any = None,
        given: Iterable[str | Passage | Mapping[str, Any]] | None = None,
        pinned: Iterable[int] | None = None,
        groups: Iterable[Hashable] | None = None,
        id: str = "",  # noqa: A002
        language: str | None = None,
    ) -> Query:
        """Build a query from what callers have, and check it.

        Args:
            query: The claim or the question; it must contain a word. None for no query.
            passages: Loose passages: any iterable of strings, of Passages, or of dictionaries with
                `text` and optionally `title`, `id`, `score` and `metadata`.
            documents: In place of passages: Documents, texts, or dictionaries with `text` or
                `sentences`, and optionally `title` and `id`; further keys become metadata.
            titles: For passages: one title for all, or one for each.
            scores: One relevance score for each passage; any finite numbers.
            query_embedding: [width], your own vector of the query; a NumPy array, a torch tensor or
                a list.
            embeddings: [passages, width], your own vectors of the passages.
            given: Texts that are already there, in the forms of `passages`.
            pinned: Passages that must be selected, as positions.
            groups: The group of each passage, for `max_per_group`; None for a passage in no group.
            id: An identifier.
            language: The language of the query and of the passages, such as "de"; by default, it is
                found from all of them together.

        Raises:
            InvalidInput: An argument is not what is described here.
        """
        text = "" if query is None else checked_query(query)
        checked = passages_of(passages, documents, titles=titles, scores=scores)
        return cls(
            text,
            checked,
            id,
            () if given is None else tuple(given_passages(given)),
            () if pinned is None else checked_pinned(pinned, len(checked)),
            None if groups is None else checked_groups(groups, len(checked)),
            checked_embeddings(
                query_embedding, embeddings, len(checked), is_without_query=query is None
            ),
            None if language is None else checked_language(language),
        )


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


def checked_query(query: Any) -> str:
    """The text of a query, after it was checked to be a string with a word in it."""
    if not isinstance(query, str):
        raise InvalidInput("query", found=f"{query!r:.40}", allowed="a string")
    text = checked_text("query", query)
    if not has_words(text):
        raise InvalidInput("query", found=f"{text!r:.80}", allowed="a text with a word in it")
    return text


def checked_pinned(pinned: Any, count: int) -> tuple[int, ...]:
    """Positions of passages, after they were checked to be different ones of so many."""
    found: list[int] = []
    for given in entries_of("pinned", pinned, "an iterable of positions"):
        is_bool = type(given).__name__ in ("bool", "bool_")
        index = int(given) if hasattr(given, "__index__") and not is_bool else -1
        if not 0 <= index < count:
            raise InvalidInput(
                "pinned", found=f"{given!r:.40}", allowed=f"positions from 0 to {count - 1}"
            )
        if index in found:
            raise InvalidInput("pinned", message=f"pinned names passage {index} twice.")
        found.append(index)
    return tuple(found)


def checked_groups(groups: Any, count: int) -> tuple[Hashable, ...]:
    """The groups of so many passages, after they were checked."""
    if hasattr(groups, "tolist"):  # the entries of a tensor are different objects each time
        groups = groups.tolist()
    given = entries_of("groups", groups, "an iterable with one group for each passage")
    # What a data frame calls missing is not a number, which equals nothing.
    found = [None if isinstance(one, float) and one != one else one for one in given]
    if len(found) != count:
        raise InvalidInput(
            "groups",
            message=f"groups has {len(found)} entries for {count} passages; pass one group for "
            "each passage, and None for a passage in no group.",
        )
    for number, one in enumerate(found):
        if not isinstance(one, Hashable):
            kind = f"{one!r:.40} at position {number}"
            raise InvalidInput("groups", found=kind, allowed="strings, numbers or None")
    return tuple(found)


def checked_embeddings(
    query: Any, passages: Any, count: int, *, is_without_query: bool = False
) -> NDArray[np.float32] | None:
    """The vectors of a query and of so many passages, of length 1, in one array; None for none."""
    if query is None and passages is None:
        return None
    if is_without_query and query is None:
        vectors = checked_vectors("embeddings", passages, count)
        return np.concatenate([np.zeros_like(vectors[:1]), vectors])
    if query is None or passages is None:
        missing = "query_embedding" if query is None else "embeddings"
        raise InvalidInput(missing, message=f"{missing} is missing; pass both or neither.")
    of_query = checked_vectors("query_embedding", query, 1)
    of_passages = checked_vectors("embeddings", passages, count)
    if of_passages.shape[1] != of_query.shape[1]:
        raise InvalidInput(
            "embeddings",
            message=f"The vectors of the passages have {of_passages.shape[1]} numbers and that of "
            f"the query has {of_query.shape[1]}; take both from the same model.",
        )
    return np.concatenate([of_query, of_passages])


def checked_vectors(argument: str, values: Any, count: int) -> NDArray[np.float32]:
    """[count, width], vectors of length 1, or 0, after they were checked to be so many."""
    if hasattr(values, "detach"):  # a tensor of torch, which may be on a GPU
        values = values.detach().cpu().double().numpy()
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        found = np.full(1, np.nan)
    if not found.size or not np.isfinite(found).all():
        raise InvalidInput(argument, found=f"{values!r:.40}", allowed="an array of finite numbers")
    if found.ndim == 1 and argument == "query_embedding":
        found = found[None]
    if found.ndim != 2 or len(found) != count:
        raise InvalidInput(
            argument,
            found=f"an array of shape {found.shape}",
            allowed="one vector" if count == 1 else f"{count} vectors, one for each passage",
        )
    largest = np.abs(found).max(axis=-1, keepdims=True)
    found = found / np.where(largest > 0, largest, 1)  # squares of huge numbers would overflow
    length = np.sqrt(np.square(found).sum(axis=-1, keepdims=True))
    return (found / np.where(length > 0, length, 1)).astype(np.float32)
