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
from dgn.kernels.facets import KnownWords, QueryWords, query_words
from dgn.query import Passage, Query
from dgn.text import WordReader, WordTokens, title_text, unit_rows, written_words

SAME_STEM = 0.9
"""The similarity of two forms of a word."""

SOME_NUMBER = 0.32
"""The similarity of two different years, or of two other numbers: some number is better than none,
and it covers hardly anything of the one that was asked for."""

TITLE_FROM = 0.5
"""From this similarity on, a title begins to cover a word of the query; at 1 it covers it."""

IDF_MIDDLE, IDF_SPREAD = 6.0, 2.0
"""(IDF − middle) / spread is about 0 and has the size of the other facts about a word."""

FUNCTION_WORD_SHARE = 0.2
"""How much a function word counts when two texts are compared as a whole."""

BY_PAIR = ("similarity", "exact", "pair", "title")
BY_ITEM = (
    "likeness",
    "precision",
    "numbers",
    "length",
    "position",
    "is_ordered",
    "follows",
    "relevance",
)


@dataclass(frozen=True, eq=False)
class QueryMatches:
    """One query of T words against A passages. Everything is 0 for a passage without a word.

    Attributes:
        query: [T], the words of the query, as rows of some table of words.
        about: [dimension], the vector of the query as a whole.
        similarity: [A, T], how near the nearest word of the passage is, from 0 to 1: 1 for the
            word itself, SAME_STEM for another form of it, a cosine otherwise. A number is near to
            itself; another number of its kind counts SOME_NUMBER.
        exact: [A, T], whether the passage contains the word or a form of it.
        pair: [A, T], whether it contains it directly after the word before it in the query.
        title: [A, T], from 0 to 1, how far the title of the passage covers the word.
        passages: [A, dimension], the vector of each passage as a whole.
        likeness: [A], the cosine of the passage and the query as a whole.
        precision: [A], how near the words of the passage are to any word of the query, rare words
            counting more.
        numbers: [A], the share of its words that are numbers.
        length: [A], the number of words.
        position: [A], the position in its document; 0 if it is not known.
        is_ordered: [A], whether the position is known.
        follows: [A], whether the passage directly follows the one before it here.
        relevance: [A], logits of a model that reads the query and the passage together; 0 if there
            is none.
    """

    query: NDArray[Any]
    about: NDArray[Any]
    similarity: NDArray[Any]
    exact: NDArray[np.bool_]
    pair: NDArray[np.bool_]
    title: NDArray[Any]
    passages: NDArray[Any]
    likeness: NDArray[Any]
    precision: NDArray[Any]
    numbers: NDArray[Any]
    length: NDArray[Any]
    position: NDArray[Any]
    is_ordered: NDArray[np.bool_]
    follows: NDArray[np.bool_]
    relevance: NDArray[Any]


@dataclass(frozen=True, eq=False)
class WordTable:
    """The words of queries.

    Attributes:
        vectors: [words, dimension].
        facts: [words, 5], the IDF (about 0) and the kinds of WordTokens.
    """

    vectors: Float[Array, "words dimension"]
    facts: Float[Array, "words facts"]

    @classmethod
    def of(cls, words: WordTokens) -> WordTable:
        """The table of the words that a reader has read."""
        idf = (words.idf[:, None] - IDF_MIDDLE) / IDF_SPREAD
        return cls(words.vectors, np.concatenate([idf, words.kinds], axis=1))


@dataclass(frozen=True, eq=False)
class Matches:
    """A batch of queries and their passages, padded; the names are those of QueryMatches.

    Attributes:
        words: The words of the batch; what is learned about a word is computed once.
        real: [batch, words], False where a query is padded.
        mask: [batch, items], False where there is no passage.
    """

    words: WordTable
    query: Int[Array, "batch tokens"]
    real: Bool[Array, "batch tokens"]
    mask: Bool[Array, "batch items"]
    about: Float[Array, "batch dimension"]
    similarity: Float[Array, "batch items tokens"]
    exact: Float[Array, "batch items tokens"]
    pair: Float[Array, "batch items tokens"]
    title: Float[Array, "batch items tokens"]
    passages: Float[Array, "batch items dimension"]
    likeness: Float[Array, "batch items"]
    precision: Float[Array, "batch items"]
    numbers: Float[Array, "batch items"]
    length: Float[Array, "batch items"]
    position: Float[Array, "batch items"]
    is_ordered: Float[Array, "batch items"]
    follows: Float[Array, "batch items"]
    relevance: Float[Array, "batch items"]

    @classmethod
    def of(cls, queries: Sequence[QueryMatches], words: WordTable) -> Matches:
        """Several queries, padded to the most words and to the most passages."""
        tokens = max(len(one.query) for one in queries)
        items = max(len(one.length) for one in queries)
        batch, dimension = len(queries), queries[0].passages.shape[1]
        padded: dict[str, NDArray[Any]] = {
            "query": np.zeros((batch, tokens), np.int64),
            "real": np.zeros((batch, tokens), np.bool_),
            "mask": np.zeros((batch, items), np.bool_),
            "passages": np.zeros((batch, items, dimension), np.float32),
        }
        padded |= {name: np.zeros((batch, items, tokens), np.float32) for name in BY_PAIR}
        padded |= {name: np.zeros((batch, items), np.float32) for name in BY_ITEM}
        for row, one in enumerate(queries):
            size, length = len(one.length), len(one.query)
            padded["query"][row, :length] = one.query
            padded["real"][row, :length] = True
            padded["mask"][row, :size] = True
            padded["passages"][row, :size] = one.passages
            for name in BY_PAIR:
                padded[name][row, :size, :length] = getattr(one, name)
            for name in BY_ITEM:
                padded[name][row, :size] = getattr(one, name)
        about = np.stack([one.about for one in queries]).astype(np.float32)
        return cls(words, about=about, **padded)

    def placed(self, place: Callable[[Array], Array]) -> Matches:
        """The same with every array moved: into another library, onto a device."""
        arrays = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "words"}
        words = WordTable(place(self.words.vectors), place(self.words.facts))
        return Matches(words, **{name: place(array) for name, array in arrays.items()})


@dataclass(frozen=True, eq=False)
class TextVectors:
    """The vectors of some texts, in the space in which they are compared.

    Attributes:
        words: [all words of all texts, dimension], of length 1, in order.
        wholes: [texts, dimension], of length 1; zeros for a text without a word.
    """

    words: NDArray[np.float32]
    wholes: NDArray[np.float32]


@final
class Matcher:
    """Matches queries with passages, in the space of the vectors of a reader.

    Args:
        reader: Reads the words of texts.
        embed: Other vectors for the words and the texts; by default, those of the reader.
    """

    def __init__(
        self,
        reader: WordReader,
        embed: Callable[[Sequence[str]], TextVectors] | None = None,
    ) -> None:
        self.reader, self._embed = reader, embed

    def match(
        self, queries: Sequence[Query], *, titles: bool = True
    ) -> tuple[list[QueryMatches], WordTokens]:
        """The matches of each query, and the words that they refer to.

        Args:
            queries: The queries with their passages.
            titles: Whether the titles of the passages are used.
        """
        named = [_titles(query, used=titles) for query in queries]
        texts: list[str] = []
        for query, (different, _) in zip(queries, named, strict=True):
            texts += [query.text, *query.texts, *map(title_text, different)]
        words = self.reader.read(texts)
        vectors = _static(words) if self._embed is None else self._embed(texts)
        ends = np.cumsum([len(text) for text in words.texts])
        matches: list[QueryMatches] = []
        place = 0
        for query, (different, which) in zip(queries, named, strict=True):
            _check_query(query, len(words.texts[place]))
            after = place + 1 + len(query.passages) + len(different)
            start = int(ends[place - 1]) if place else 0
            own = TextVectors(vectors.words[start : ends[after - 1]], vectors.wholes[place:after])
            # Passages and titles together: the arrays are small, and calls are expensive.
            found = _compare(words, words.texts[place:after], own)
            matches.append(_matches_of(query, which, words.texts[place], own.wholes, found))
            place = after
        return matches, words

    def words_of(self, queries: Sequence[Query]) -> tuple[list[QueryWords], KnownWords]:
        """The words of each query and of its passages and titles, for the compiled kernel."""
        named = [_titles(query, used=True) for query in queries]
        texts: list[str] = []
        for query, (different, _) in zip(queries, named, strict=True):
            texts += [query.text, *query.texts, *map(title_text, different)]
        rows, known = self.reader.read_rows(texts)
        found: list[QueryWords] = []
        place = 0
        for query, (different, which) in zip(queries, named, strict=True):
            after = place + 1 + len(query.passages) + len(different)
            _check_query(query, len(rows[place]))
            found.append(query_words(rows[place:after], which, places_of(query.passages)))
            place = after
        return found, known

    def words(self, query: str) -> list[str]:
        """The words of a query as written, in the order of `QueryMatches.query`."""
        return written_words(query)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """[texts, words of the query], and [texts] for the rest; named as in QueryMatches."""

    similarity: NDArray[np.float32]
    exact: NDArray[np.bool_]
    pair: NDArray[np.bool_]
    precision: NDArray[np.float32]
    numbers: NDArray[np.float32]
    lengths: NDArray[np.int64]


def _static(words: WordTokens) -> TextVectors:
    """The vectors of the reader; a text is the mean of its words, rare words counting more."""
    flat = np.concatenate(words.texts)
    vectors = words.vectors[flat]
    lengths = np.fromiter(map(len, words.texts), np.int64, len(words.texts))
    wholes = np.zeros((len(lengths), vectors.shape[1]), np.float32)
    filled = lengths > 0
    if len(flat):
        starts = (np.cumsum(lengths) - lengths)[filled]
        wholes[filled] = np.add.reduceat(vectors * words.idf[flat][:, None], starts, axis=0)
    return TextVectors(vectors, unit_rows(wholes).astype(np.float32))


def _check_query(query: Query, words: int) -> None:
    """Raise InvalidInput unless a query has words and passages."""
    if not query.passages:
        raise InvalidInput("passages", found="none", allowed="at least one passage")
    if not words:
        raise InvalidInput("query", found=repr(query.text), allowed="a text with a word in it")


def _titles(query: Query, *, used: bool) -> tuple[list[str], list[int]]:
    """The different titles of a query, and which of them each passage has."""
    names = [passage.title if used else "" for passage in query.passages]
    numbers = {title: number for number, title in enumerate(dict.fromkeys(names))}
    return list(numbers), [numbers[name] for name in names]


def _matches_of(
    query: Query,
    which: list[int],
    tokens: NDArray[np.int64],
    wholes: NDArray[np.float32],
    found: _Comparison,
) -> QueryMatches:
    size = len(query.passages)
    near = (found.similarity[size:] - TITLE_FROM) / (1 - TITLE_FROM)
    # A number in a title covers that number alone.
    covered = np.where(found.exact[size:], 1.0, near.clip(0, 1))
    passages = wholes[1 : size + 1]
    position, is_ordered, follows = places_of(query.passages)
    return QueryMatches(
        query=tokens,
        about=wholes[0],
        similarity=found.similarity[:size],
        exact=found.exact[:size],
        pair=found.pair[:size],
        title=covered[which].astype(np.float32),
        passages=passages,
        likeness=(passages @ wholes[0]).clip(0),
        precision=found.precision[:size],
        numbers=found.numbers[:size],
        length=found.lengths[:size].astype(np.float32),
        position=position,
        is_ordered=is_ordered,
        follows=follows,
        relevance=np.zeros(size, np.float32),
    )


def places_of(
    passages: Sequence[Passage],
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
    """The position of each passage, whether it is known, and whether it follows the last.

    Loose passages have no position, so that their order cannot matter. A document of a single
    passage has no order either.
    """
    if all(passage.position is None for passage in passages):
        count = len(passages)
        return np.zeros(count, np.float32), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    sizes = Counter(passage.document for passage in passages)
    is_ordered = np.array([p.position is not None and sizes[p.document] > 1 for p in passages])
    position = np.array([p.position or 0 for p in passages], np.float32)
    follows = np.zeros(len(passages), np.bool_)
    follows[1:] = [
        one.position is not None
        and before.position is not None
        and one.document == before.document
        and one.position == before.position + 1
        for before, one in itertools.pairwise(passages)
    ]
    return position * is_ordered, is_ordered, follows


def _compare(
    words: WordTokens, texts: Sequence[NDArray[np.int64]], vectors: TextVectors
) -> _Comparison:
    """The words of the first text, the query, against those of each of the others."""
    query, others = texts[0], texts[1:]
    lengths = np.fromiter(map(len, others), np.int64, len(others))
    shape = (len(others), len(query))
    similarity, exact, pair = (np.zeros(shape, kind) for kind in (np.float32, bool, bool))
    precision, numbers = np.zeros(len(others), np.float32), np.zeros(len(others), np.float32)
    flat = np.concatenate(others) if len(others) else np.zeros(0, np.int64)
    if not len(flat):
        return _Comparison(similarity, exact, pair, precision, numbers, lengths)
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]
    asked, is_number = words.kinds[query], words.kinds[flat, 0] > 0
    cosines = (vectors.words[len(query) :] @ vectors.words[: len(query)].T).clip(0, 1)
    # Numbers are compared as wholes: their vectors only know their digits.
    cosines[is_number] = 0
    cosines[:, asked[:, 0] > 0] = 0
    same = words.stem[flat][:, None] == words.stem[query]
    near = np.maximum(cosines, SAME_STEM * same)
    near[flat[:, None] == query] = 1
    if asked[:, 0].any():
        wants_year, is_year = asked[:, 1] > 0, words.kinds[flat, 1][:, None] > 0
        is_asked = (wants_year & is_year) | (~wants_year & is_number[:, None])
        alike = (asked[:, 0] > 0) & is_asked
        near = np.where(alike & ~same, SOME_NUMBER, near)
        near[same & (asked[:, 0] > 0)] = 1
    consecutive = np.zeros_like(same)
    consecutive[1:, 1:] = same[1:, 1:] & same[:-1, :-1]
    consecutive[starts] = False
    similarity[filled] = np.maximum.reduceat(near, starts, axis=0)
    exact[filled] = np.logical_or.reduceat(same, starts, axis=0)
    pair[filled] = np.logical_or.reduceat(consecutive, starts, axis=0)
    # How much of each text is about the query; function words of either side say little.
    content = asked[:, 2] == 0
    nearest = (near[:, content] if content.any() else near).max(axis=1)
    weight = words.idf[flat] * np.where(words.kinds[flat, 2] > 0, FUNCTION_WORD_SHARE, 1)
    total = np.maximum(np.add.reduceat(weight, starts), 1e-6)
    precision[filled] = np.add.reduceat(weight * nearest, starts) / total
    numbers[filled] = np.add.reduceat(weight * is_number, starts) / total
    return _Comparison(similarity, exact, pair, precision, numbers, lengths)
