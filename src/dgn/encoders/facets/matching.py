"""From texts to matches: every word of a query is compared with every word of a passage."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, Bool, Float, Int
from dgn.errors import InvalidInput
from dgn.query import Query
from dgn.text import WordReader, WordTokens, clean_brackets, title_text

_TITLE_FROM = 0.5
"""From this cosine on, a title begins to cover a word of the query; at 1 it covers it."""

_IDF_MIDDLE, _IDF_SPREAD = 6.0, 2.0
"""(IDF − middle) / spread is about 0 and has the size of the other facts about a word."""

BY_PAIR = ("matched", "cosine", "exact", "pair", "title")
BY_ITEM = ("likeness", "length", "position", "document_size", "follows")


@dataclass(frozen=True, eq=False)
class QueryMatches:
    """One query of T words against A passages. Everything is 0 for a passage without a word.

    Attributes:
        query: [T], the words of the query, as rows of some table of words.
        matched: [A, T], the word of the passage that is nearest to each word of the query.
        cosine: [A, T], how near it is.
        exact: [A, T], whether the passage contains the word itself, apart from case.
        pair: [A, T], whether it contains it directly after the word before it in the query.
        title: [A, T], from 0 to 1, how far the title of the passage covers the word.
        likeness: [A], how near the words of the passage are to any word of the query, rare words
            counting more.
        length: [A], the number of words.
        position: [A], the position in its document.
        document_size: [A], the number of passages of its document.
        follows: [A], whether the passage directly follows the one before it here.
    """

    query: NDArray[Any]
    matched: NDArray[Any]
    cosine: NDArray[Any]
    exact: NDArray[np.bool_]
    pair: NDArray[np.bool_]
    title: NDArray[Any]
    likeness: NDArray[Any]
    length: NDArray[Any]
    position: NDArray[Any]
    document_size: NDArray[Any]
    follows: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WordTable:
    """The words that matches refer to.

    Attributes:
        vectors: [words, dimension].
        facts: [words, 4], the IDF (about 0) and the flags of WordTokens.
    """

    vectors: Float[Array, "words dimension"]
    facts: Float[Array, "words facts"]

    @classmethod
    def of(cls, words: WordTokens) -> WordTable:
        """The table of the words that a reader has read."""
        idf = (words.idf[:, None] - _IDF_MIDDLE) / _IDF_SPREAD
        return cls(words.vectors, np.concatenate([idf, words.flags], axis=1))


@dataclass(frozen=True, eq=False)
class Matches:
    """A batch of queries and their passages, padded; the names are those of QueryMatches.

    Attributes:
        words: The words of the batch; what is learned about a word is computed once.
        real: [batch, tokens], False where a query is padded.
        mask: [batch, items], False where there is no passage.
    """

    words: WordTable
    query: Int[Array, "batch tokens"]
    real: Bool[Array, "batch tokens"]
    mask: Bool[Array, "batch items"]
    matched: Int[Array, "batch items tokens"]
    cosine: Float[Array, "batch items tokens"]
    exact: Float[Array, "batch items tokens"]
    pair: Float[Array, "batch items tokens"]
    title: Float[Array, "batch items tokens"]
    likeness: Float[Array, "batch items"]
    length: Float[Array, "batch items"]
    position: Float[Array, "batch items"]
    document_size: Float[Array, "batch items"]
    follows: Float[Array, "batch items"]

    @classmethod
    def of(cls, queries: Sequence[QueryMatches], words: WordTable) -> Matches:
        """Several queries, padded to the most words and to the most passages."""
        tokens = max(len(one.query) for one in queries)
        items = max(len(one.length) for one in queries)
        batch = len(queries)
        padded: dict[str, NDArray[Any]] = {
            "query": np.zeros((batch, tokens), np.int64),
            "real": np.zeros((batch, tokens), np.bool_),
            "mask": np.zeros((batch, items), np.bool_),
            "matched": np.zeros((batch, items, tokens), np.int64),
        }
        padded |= {name: np.zeros((batch, items, tokens), np.float32) for name in BY_PAIR[1:]}
        padded |= {name: np.zeros((batch, items), np.float32) for name in BY_ITEM}
        for row, one in enumerate(queries):
            size, length = len(one.length), len(one.query)
            padded["query"][row, :length] = one.query
            padded["real"][row, :length] = True
            padded["mask"][row, :size] = True
            for name in BY_PAIR:
                padded[name][row, :size, :length] = getattr(one, name)
            for name in BY_ITEM:
                padded[name][row, :size] = getattr(one, name)
        return cls(words, **padded)

    def placed(self, place: Callable[[Array], Array]) -> Matches:
        """The same with every array moved: into another library, onto a device."""
        arrays = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "words"}
        words = WordTable(place(self.words.vectors), place(self.words.facts))
        return Matches(words, **{name: place(array) for name, array in arrays.items()})


@final
class Matcher:
    """Matches queries with passages, in the space of the vectors of a reader."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader

    def match(
        self, queries: Sequence[Query], *, titles: bool = True
    ) -> tuple[list[QueryMatches], WordTokens]:
        """The matches of each query, and the words that they refer to.

        Args:
            queries: The queries with their passages.
            titles: Whether the titles of the passages are used.
        """
        named = [_titles(query, titles) for query in queries]
        texts: list[str] = []
        for query, (different, _) in zip(queries, named, strict=True):
            texts += [query.text, *query.texts, *map(title_text, different)]
        words = self.reader.read(texts)
        matches: list[QueryMatches] = []
        place = 0
        for query, (different, which) in zip(queries, named, strict=True):
            if not query.passages:
                raise InvalidInput("passages", found="none", allowed="at least one passage")
            tokens = words.texts[place]
            if not len(tokens):
                raise InvalidInput(
                    "query", found=repr(query.text), allowed="a text with a word in it"
                )
            after = place + 1 + len(query.passages) + len(different)
            # Passages and titles together: the arrays are small, and calls are expensive.
            found = _compare(words, tokens, words.texts[place + 1 : after])
            matches.append(_matches_of(query, which, tokens, found))
            place = after
        return matches, words

    def words(self, query: str) -> list[tuple[str, list[int]]]:
        """The words of a query as written, each with its tokens in `match`."""
        return self.reader.words(clean_brackets(query))


@dataclass(frozen=True, eq=False)
class _Comparison:
    """[texts, words of the query], and [texts] for the last two; named as in QueryMatches."""

    matched: NDArray[np.int64]
    cosine: NDArray[np.float32]
    exact: NDArray[np.bool_]
    pair: NDArray[np.bool_]
    likeness: NDArray[np.float32]
    lengths: NDArray[np.int64]


def _titles(query: Query, titles: bool) -> tuple[list[str], list[int]]:
    """The different titles of a query, and which of them each passage has."""
    names = [passage.title if titles else "" for passage in query.passages]
    numbers = {title: number for number, title in enumerate(dict.fromkeys(names))}
    return list(numbers), [numbers[name] for name in names]


def _matches_of(
    query: Query, which: list[int], tokens: NDArray[np.int64], found: _Comparison
) -> QueryMatches:
    size = len(query.passages)
    # A word that the title contains counts as covered, whatever its neighbours in the space.
    near = (found.cosine[size:] - _TITLE_FROM) / (1 - _TITLE_FROM)
    covered = np.maximum(found.exact[size:], near).clip(0, 1)
    position, document_size, follows = _places(query)
    return QueryMatches(
        query=tokens,
        matched=found.matched[:size],
        cosine=found.cosine[:size],
        exact=found.exact[:size],
        pair=found.pair[:size],
        title=covered[which].astype(np.float32),
        likeness=found.likeness[:size],
        length=found.lengths[:size].astype(np.float32),
        position=position,
        document_size=document_size,
        follows=follows,
    )


def _places(
    query: Query,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """The position of each passage, the size of its document, and whether it follows the last.

    Loose passages have no position. All of them count as the middle of one document, so that
    their order cannot matter.
    """
    passages = query.passages
    sizes = Counter(passage.document for passage in passages)
    document_size = np.array([sizes[passage.document] for passage in passages], np.float32)
    position = np.array(
        [
            (size - 1) / 2 if passage.position is None else passage.position
            for passage, size in zip(passages, document_size.tolist(), strict=True)
        ],
        np.float32,
    )
    follows = np.zeros(len(passages), np.bool_)
    follows[1:] = [
        one.position is not None
        and before.position is not None
        and one.document == before.document
        and one.position == before.position + 1
        for before, one in itertools.pairwise(passages)
    ]
    return position, document_size, follows


def _compare(
    words: WordTokens, query: NDArray[np.int64], texts: Sequence[NDArray[np.int64]]
) -> _Comparison:
    """The words of the query against those of each text."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    longest = int(lengths.max())
    if not longest:
        none = np.zeros((len(texts), len(query)))
        flags, numbers = none.astype(np.bool_), none.astype(np.float32)
        return _Comparison(none.astype(int), numbers, flags, flags, numbers[:, 0], lengths)
    flat = np.concatenate(texts)
    cosines = words.vectors[flat] @ words.vectors[query].T
    same = words.spelling[flat][:, None] == words.spelling[query]
    # [texts, longest]: where the words of each text are in the flat list.
    inside = np.arange(longest) < lengths[:, None]
    starts = np.cumsum(lengths) - lengths
    index = np.where(inside, starts[:, None] + np.arange(longest), 0)
    spread = np.where(inside[..., None], cosines[index], -2.0)
    best = spread.argmax(axis=1)
    here = same[index] & inside[..., None]
    pair = np.zeros((len(texts), len(query)), np.bool_)
    pair[:, 1:] = (here[:, 1:, 1:] & here[:, :-1, :-1]).any(axis=1)
    filled = (lengths > 0)[:, None]
    idf = np.where(inside, words.idf[flat][index], 0)
    nearness = cosines.max(axis=1).clip(0)[index]
    return _Comparison(
        matched=np.where(filled, flat[np.take_along_axis(index, best, axis=1)], 0),
        cosine=np.where(filled, np.take_along_axis(spread, best[:, None], axis=1)[:, 0], 0),
        exact=here.any(axis=1),
        pair=pair,
        likeness=(nearness * idf).sum(axis=1) / np.maximum(idf.sum(axis=1), 1e-6),
        lengths=lengths,
    )
