"""From texts to matches: every word of a query is compared with every word of a passage."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Bool, Float, Int
from dgn.core.native.facets import QueryWords, WordTable, query_words
from dgn.errors import InvalidInput
from dgn.text.languages import ENGLISH, query_languages
from dgn.text.passages import Passage
from dgn.text.query import Query
from dgn.text.spelling import title_text
from dgn.text.vectors import unit_rows
from dgn.text.vocabulary import WordReader
from dgn.text.words import pieces_of

SAME_STEM = 0.9
"""The similarity of two forms of a word."""

SOME_NUMBER = 0.32
"""The similarity of two different years, or of two other numbers: some number is better than none,
and it covers hardly anything of the one that was asked for."""

TITLE_FROM = 0.5
"""From this similarity on, a title begins to cover a word of the query; at 1 it covers it."""

IDF_MIDDLE, IDF_SPREAD = 6.0, 2.0
"""(IDF − middle) / spread is about 0 and has the size of the other facts about a word."""

RARITY = 1.5
"""How much the number of passages with a word counts in languages without an IDF."""

FUNCTION_WORD_SHARE = 0.2
"""How much a function word counts when two texts are compared as a whole."""

_PAIRS, _ITEMS = ("items", "tokens"), ("items",)

AXES: dict[str, tuple[str, ...]] = {
    "query": ("tokens",),
    "about": ("dimension",),
    "similarity": _PAIRS,
    "exact": _PAIRS,
    "pair": _PAIRS,
    "title": _PAIRS,
    "passages": ("items", "dimension"),
    "likeness": _ITEMS,
    "precision": _ITEMS,
    "numbers": _ITEMS,
    "length": _ITEMS,
    "position": _ITEMS,
    "is_ordered": _ITEMS,
    "follows": _ITEMS,
    "relevance": _ITEMS,
}
"""The axes of each array of the matches of one query.

Padding, the features on disk and the batches of training follow from this table. A new statistic
needs an entry here, an attribute of Matches, and a line in `match_query`.
"""

QueryMatches = dict[str, NDArray[Any]]
"""The matches of one query, without padding: the arrays of AXES. `query` numbers its words."""


@dataclass(frozen=True, eq=False)
class Matches:
    """A batch of queries and their passages, padded. Everything is 0 for a passage without a word.

    Attributes:
        vectors: [words, inputs], the words of the batch; what is learned about a word is computed
            once.
        facts: [words, 5], what else is known about them: see WordTable.
        real: [batch, tokens], False where a query is padded.
        mask: [batch, items], False where there is no passage.
        query: [batch, tokens], the words of each query, as rows of `vectors`.
        about: [batch, dimension], the vector of each query as a whole.
        similarity: [batch, items, tokens], how near the nearest word of the passage is, from 0 to
            1: 1 for the word itself, SAME_STEM for another form of it, a cosine otherwise. A number
            is near to itself; another number of its kind counts SOME_NUMBER.
        exact: [batch, items, tokens], whether the passage contains the word or a form of it.
        pair: [batch, items, tokens], whether it contains it directly after the word before it in
            the query.
        title: [batch, items, tokens], from 0 to 1, how far the title of the passage covers it.
        passages: [batch, items, dimension], the vector of each passage as a whole.
        likeness: [batch, items], the cosine of the passage and the query as a whole.
        precision: [batch, items], how near the words of the passage are to any word of the query,
            rare words counting more.
        numbers: [batch, items], the share of its words that are numbers.
        length: [batch, items], the number of words.
        position: [batch, items], the position in its document; 0 if it is not known.
        is_ordered: [batch, items], whether the position is known.
        follows: [batch, items], whether the passage directly follows the one before it here.
        relevance: [batch, items], logits of a model that reads the query and the passage together;
            0 if there is none.
    """

    vectors: Float[Array, "words inputs"]
    facts: Float[Array, "words facts"]
    real: Bool[Array, "batch tokens"]
    mask: Bool[Array, "batch items"]
    query: Int[Array, "batch tokens"]
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
        """Several queries, padded to the most words and to the most passages.

        Args:
            queries: The matches of each query.
            words: The table of words that they refer to.
        """
        used, inverse = np.unique(
            np.concatenate([q["query"] for q in queries]), return_inverse=True
        )
        ends = np.cumsum([len(q["query"]) for q in queries])
        by_query = np.split(inverse, ends[:-1])
        numbered = [{**q, "query": own} for q, own in zip(queries, by_query, strict=True)]
        sizes = {
            "tokens": max(len(q["query"]) for q in queries),
            "items": max(len(q["length"]) for q in queries),
            "dimension": queries[0]["about"].shape[0],
        }
        arrays: dict[str, NDArray[Any]] = {}
        for name, axes in AXES.items():
            kind = np.int64 if name == "query" else np.float32
            arrays[name] = np.zeros((len(queries), *(sizes[axis] for axis in axes)), kind)
            for row, one in enumerate(numbered):
                arrays[name][row][tuple(map(slice, one[name].shape))] = one[name]
        tokens = np.array([len(q["query"]) for q in queries])
        items = np.array([len(q["length"]) for q in queries])
        return cls(
            vectors=words.vectors[used],
            facts=words.facts[used],
            real=np.arange(sizes["tokens"]) < tokens[:, None],
            mask=np.arange(sizes["items"]) < items[:, None],
            **arrays,
        )

    def moved(self, move: Callable[[Array], Array]) -> Matches:
        """The same with every array moved: into another library, onto a device."""
        return Matches(**{one.name: move(getattr(self, one.name)) for one in fields(self)})


@dataclass(frozen=True, eq=False)
class TextVectors:
    """The vectors of some texts, in the space in which they are compared.

    Attributes:
        words: [all words of all texts, dimension], of length 1, in order.
        wholes: [texts, dimension], of length 1; zeros for a text without a word.
    """

    words: NDArray[np.float32]
    wholes: NDArray[np.float32]


def texts_of(query: Query, *, titles: bool = True) -> tuple[list[str], list[int]]:
    """The texts of a query, and which of its titles each passage has.

    Args:
        query: The query.
        titles: Whether the titles of the passages are used.

    Returns:
        The query itself, its passages, and its different titles; then, for each passage, the
        number of its title.
    """
    if not query.passages:
        raise InvalidInput("passages", found="none", allowed="at least one passage")
    names = [passage.title if titles else "" for passage in query.passages]
    numbers = {title: number for number, title in enumerate(dict.fromkeys(names))}
    texts = [query.text, *query.texts, *map(title_text, numbers)]
    return texts, [numbers[name] for name in names]


def read_queries(
    reader: WordReader, queries: Sequence[Query], *, titles: bool = True
) -> tuple[list[QueryWords], WordTable]:
    """The words of each query, of its passages and of its titles, all of them read as English.

    Returns:
        The words, and the table of all words.
    """
    named = [texts_of(query, titles=titles) for query in queries]
    rows, table = reader.read([text for texts, _ in named for text in texts])
    words: list[QueryWords] = []
    start = 0
    for query, (texts, title) in zip(queries, named, strict=True):
        own = rows[start : start + len(texts)]
        words.append(_words_of(query, own, title))
        start += len(texts)
    return words, table


def read_in_languages(
    reader: WordReader, queries: Sequence[Query], *, titles: bool = True
) -> tuple[list[QueryWords], WordTable, list[str]]:
    """The words of each query, of its passages and of its titles, each text in its language.

    Returns:
        The words, the table of all words, and the language of each query, which is also that of the
        titles: they are too short to tell.
    """
    named = [texts_of(query, titles=titles) for query in queries]
    pieces = [[*map(pieces_of, texts)] for texts, _ in named]
    codes = [
        _languages_of(query, texts, own)
        for query, (texts, _), own in zip(queries, named, pieces, strict=True)
    ]
    flat = itertools.chain.from_iterable
    languages = None
    if any(codes):
        each = zip(codes, pieces, strict=True)
        languages = [*flat(own or (ENGLISH,) * len(some) for own, some in each)]
    rows, table = reader.read_pieces([*flat(pieces)], languages)
    words: list[QueryWords] = []
    start = 0
    for query, (texts, title) in zip(queries, named, strict=True):
        words.append(_words_of(query, rows[start : start + len(texts)], title))
        start += len(texts)
    if languages is not None:
        words, table = own_tables(words, table, codes)
    return words, table, [own[0] if own else ENGLISH for own in codes]


def _words_of(query: Query, rows: Sequence[list[int]], title: Sequence[int]) -> QueryWords:
    if not rows[0]:
        raise InvalidInput("query", found=repr(query.text), allowed="a text with a word in it")
    return query_words(rows, title, order_of(query.passages))


def _languages_of(
    query: Query, texts: Sequence[str], pieces: Sequence[list[str]]
) -> tuple[str, ...] | None:
    """The language of each text of a query; None if all are English."""
    if query.language is not None:
        return None if query.language == ENGLISH else (query.language,) * len(texts)
    count = 1 + len(query.passages)
    found = query_languages(texts[:count], pieces[:count])
    return found and (*found, *found[:1] * (len(texts) - count))


def own_tables(
    queries: Sequence[QueryWords], table: WordTable, languages: Sequence[Sequence[str] | None]
) -> tuple[list[QueryWords], WordTable]:
    """The same words with a table in which every query has rows of its own.

    There is no IDF for languages other than English, so that the passages of the query tell how
    rare a word is. Words of different languages are not compared by their vectors, which have
    nothing to do with each other.

    Args:
        queries: The words of each query.
        table: What is known about them.
        languages: The language of each text of each query; None if all are English.
    """
    found: list[QueryWords] = []
    tables: list[WordTable] = []
    first = 0
    for query, codes in zip(queries, languages, strict=True):
        used, rows = np.unique(query.rows, return_inverse=True)
        vectors, facts = table.vectors[used], table.facts[used]
        stem = np.asarray(table.stem[used])
        if codes is not None:
            lengths = np.diff(query.start)
            is_own = np.zeros(len(used), np.bool_)
            is_own[rows[np.repeat([code == codes[0] for code in codes], lengths)]] = True
            vectors[~is_own] = 0
            if codes[0] != ENGLISH:
                rarity = _rarity(query, rows, stem)
                facts[:, 0] += np.where(is_own & (facts[:, 3] == 0), rarity, 0)
        tables.append(WordTable(vectors, facts, stem))
        found.append(replace(query, rows=rows.astype(np.int64) + first))
        first += len(used)
    parts = (
        np.concatenate([getattr(own, name) for own in tables])
        for name in ("vectors", "facts", "stem")
    )
    return found, WordTable(*parts)


def _rarity(
    query: QueryWords, rows: NDArray[np.int64], stem: NDArray[np.int64]
) -> NDArray[np.float32]:
    """[words], larger for a word of which few passages of the query have a form."""
    passages = len(query.title)
    lengths = np.diff(query.start)[1 : passages + 1]
    numbers, places = np.unique(stem, return_inverse=True)
    inside = places[rows[query.start[1] : query.start[passages + 1]]]
    pairs = np.unique(np.repeat(np.arange(passages), lengths) * len(numbers) + inside)
    having = np.bincount(pairs % len(numbers), minlength=len(numbers))
    rarity = RARITY * np.log((passages + 1) / (having + 0.5))
    return rarity[places].astype(np.float32)


def match_query(
    words: QueryWords, table: WordTable, vectors: TextVectors | None = None
) -> QueryMatches:
    """One query against its passages.

    Args:
        words: The words of the query, of its passages and of its titles.
        table: What is known about them.
        vectors: Other vectors of the same texts; by default, those of the table.
    """
    texts = np.split(words.rows, words.start[1:-1])
    vectors = static_vectors(texts, table) if vectors is None else vectors
    # Passages and titles together: the arrays are small, and calls are expensive.
    compared = _compare(table, texts, vectors)
    size = len(words.title)
    near = (compared["similarity"][size:] - TITLE_FROM) / (1 - TITLE_FROM)
    # A number in a title covers that number alone.
    by_title = np.where(compared["exact"][size:], 1.0, near.clip(0, 1))
    about, passages = vectors.wholes[0], vectors.wholes[1 : size + 1]
    return {
        **{name: array[:size] for name, array in compared.items()},
        "query": texts[0],
        "about": about,
        "title": by_title[words.title].astype(np.float32),
        "passages": passages,
        "likeness": (passages @ about).clip(0),
        "position": words.position,
        "is_ordered": words.is_ordered,
        "follows": words.follows,
        "relevance": np.zeros(size, np.float32),
    }


def static_vectors(texts: Sequence[NDArray[np.int64]], table: WordTable) -> TextVectors:
    """The vectors of the table; a text is the mean of its words, rare words counting more."""
    flat = np.concatenate(texts)
    vectors = table.vectors[flat]
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    wholes = np.zeros((len(lengths), vectors.shape[1]), np.float32)
    filled = lengths > 0
    if len(flat):
        starts = (np.cumsum(lengths) - lengths)[filled]
        idf = table.facts[flat, 0][:, None]
        wholes[filled] = np.add.reduceat(vectors * idf, starts, axis=0)
    return TextVectors(vectors, unit_rows(wholes).astype(np.float32))


def order_of(
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
    table: WordTable, texts: Sequence[NDArray[np.int64]], vectors: TextVectors
) -> QueryMatches:
    """The words of the first text, the query, against those of each of the others."""
    query, others = texts[0], texts[1:]
    lengths = np.fromiter(map(len, others), np.int64, len(others))
    pairs, each = (len(others), len(query)), len(others)
    compared: QueryMatches = {
        "similarity": np.zeros(pairs, np.float32),
        "exact": np.zeros(pairs, np.bool_),
        "pair": np.zeros(pairs, np.bool_),
        "precision": np.zeros(each, np.float32),
        "numbers": np.zeros(each, np.float32),
        "length": lengths.astype(np.float32),
    }
    flat = np.concatenate(others) if len(others) else np.zeros(0, np.int64)
    if not len(flat):
        return compared
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]
    idf = table.facts[flat, 0]
    is_number, is_year, is_function = (table.facts[flat, n] > 0 for n in (1, 2, 3))
    wants_number, wants_year, asks_function = (table.facts[query, n] > 0 for n in (1, 2, 3))
    cosines = (vectors.words[len(query) :] @ vectors.words[: len(query)].T).clip(0, 1)
    # Numbers are compared as wholes: their vectors only know their digits.
    cosines[is_number] = 0
    cosines[:, wants_number] = 0
    same = table.stem[flat][:, None] == table.stem[query]
    near = np.maximum(cosines, SAME_STEM * same)
    near[flat[:, None] == query] = 1
    if wants_number.any():
        is_asked = (wants_year & is_year[:, None]) | (~wants_year & is_number[:, None])
        near = np.where(wants_number & is_asked & ~same, SOME_NUMBER, near)
        near[same & wants_number] = 1
    consecutive = np.zeros_like(same)
    consecutive[1:, 1:] = same[1:, 1:] & same[:-1, :-1]
    consecutive[starts] = False
    compared["similarity"][filled] = np.maximum.reduceat(near, starts, axis=0)
    compared["exact"][filled] = np.logical_or.reduceat(same, starts, axis=0)
    compared["pair"][filled] = np.logical_or.reduceat(consecutive, starts, axis=0)
    # How much of each text is about the query; function words of either side say little.
    nearest = (near if asks_function.all() else near[:, ~asks_function]).max(axis=1)
    weight = idf * np.where(is_function, FUNCTION_WORD_SHARE, 1)
    total = np.maximum(np.add.reduceat(weight, starts), 1e-6)
    compared["precision"][filled] = np.add.reduceat(weight * nearest, starts) / total
    compared["numbers"][filled] = np.add.reduceat(weight * is_number, starts) / total
    return compared
