"""A query and the passages to select from: one type for readers, encoders and the selector.

`Query.of` accepts what callers have: strings, dictionaries, `Passage`s and `Document`s.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput
from dgn.text.languages import ENGLISH, checked_language, query_languages
from dgn.text.passages import (
    Document,
    Passage,
    checked_text,
    entries_of,
    given_passages,
    passages_of,
)
from dgn.text.repeats import letters_of, same_text_key
from dgn.text.words import has_words, pieces_of


@dataclass(frozen=True)
class Query:
    """A claim or a question, with the passages to select from.

    Passages that belong to documents have a position; loose passages are a set, and their order
    does not matter.

    Attributes:
        text: The claim or the question.
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
    def languages(self) -> tuple[str, ...]:
        """The language of the query, and of each passage, as `dgn.text.languages` finds it."""
        texts = [self.text, *self.texts]
        if self.language is not None:
            return (self.language,) * len(texts)
        found = query_languages(texts, [*map(pieces_of, texts)])
        return found or (ENGLISH,) * len(texts)

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
        query: str,
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
            query: The claim or the question; it must contain a word.
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
                found for each of them.

        Raises:
            InvalidInput: An argument is not what is described here.
        """
        text = checked_query(query)
        checked = passages_of(passages, documents, titles=titles, scores=scores)
        return cls(
            text,
            checked,
            id,
            () if given is None else tuple(given_passages(given)),
            () if pinned is None else checked_pinned(pinned, len(checked)),
            None if groups is None else checked_groups(groups, len(checked)),
            checked_embeddings(query_embedding, embeddings, len(checked)),
            None if language is None else checked_language(language),
        )


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


def checked_embeddings(query: Any, passages: Any, count: int) -> NDArray[np.float32] | None:
    """The vectors of a query and of so many passages, of length 1, in one array; None for none."""
    if query is None and passages is None:
        return None
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
