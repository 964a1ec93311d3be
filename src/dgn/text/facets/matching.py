"""From texts to matches: every word of a query is compared with every word of a passage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Bool, Float, Int
from dgn.text.vectors import unit_rows
from dgn.text.vocabulary import WordTable

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


class QueryWords(NamedTuple):
    """A query with its passages, as words.

    Attributes:
        rows: The words of the query, of each passage, and of each different title, as rows.
        start: Where each of these texts begins in `rows`, and where the last one ends.
        title: [passages], which of the titles each passage has.
        position: [passages], the position in its document; 0 if it is not known.
        is_ordered: [passages], whether it is known.
        follows: [passages], whether the passage directly follows the one before it.
    """

    rows: NDArray[np.int64]
    start: NDArray[np.int64]
    title: NDArray[np.int64]
    position: NDArray[np.float32]
    is_ordered: NDArray[np.bool_]
    follows: NDArray[np.bool_]


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
        known_cosines: [words of the other texts, words of the first text], if they are known;
            `words` are then not used.
    """

    words: NDArray[np.float32]
    wholes: NDArray[np.float32]
    known_cosines: NDArray[np.float32] | None = None

    def cosines(self, asked: int) -> NDArray[np.float32]:
        """The cosines of all other words, as rows, with the first `asked` words."""
        if self.known_cosines is not None:
            return self.known_cosines
        return self.words[asked:] @ self.words[:asked].T


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
    cosines = vectors.cosines(len(query)).clip(0, 1)
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
