"""What MiniLM reads: texts by themselves, each for the vectors of its words and for one vector.

A text that is too long for MiniLM is read in windows that overlap; nothing of it is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.transformer import Transformer
from dgn.minilm.package import END, HEADS, START, TextTokens
from dgn.text.facets.matching import QueryMatches, QueryWords, TextVectors, match_query
from dgn.text.vectors import unit_rows
from dgn.text.vocabulary import WordTable
from dgn.text.words import word_spans

_TEXT_WINDOW, _TEXT_OVERLAP = 254, 64
_LAYERS, _WIDTH, _WIDE = 6, 384, 1536
_LINEAR_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


@final
class TextReader:
    """A vector for every word of a text, and one for the whole.

    Args:
        weights: MiniLM's weights.
    """

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        self._transformer = Transformer(weights, HEADS)

    def __call__(
        self, texts: Sequence[str], tokens: Sequence[TextTokens]
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
        """The vectors of some texts.

        Args:
            texts: Normalized texts.
            tokens: The tokens of each of them.

        Returns:
            For each text the vectors of its words, [words, width], of length 1; and the vectors of
            the texts as wholes, [texts, width], of length 1, or 0 for a text without a word.
        """
        parts = [windows(len(one.ids), _TEXT_WINDOW, _TEXT_OVERLAP) for one in tokens]
        read = [
            [START, *one.ids[first:last], END]
            for one, some in zip(tokens, parts, strict=True)
            for first, last in some
        ]
        vectors = self._transformer(read)
        # One search for all texts: each text's characters begin where those of the last one end.
        room = np.array([0, *itertools.accumulate(len(text) + 1 for text in texts)], np.int64)
        spans = [word_spans(text) for text in texts]
        counts = np.array([len(own) for own in spans], np.int64)
        edges = np.array([*itertools.chain.from_iterable(spans)], np.int64).reshape(-1, 2)
        edges += np.repeat(room[:-1], counts)[:, None]
        begins = np.array([*itertools.chain.from_iterable(one.begins for one in tokens)], np.int64)
        begins += np.repeat(room[:-1], [len(one.ids) for one in tokens])
        rows = np.fromiter(_rows_of(tokens, parts), np.int64, len(begins))
        word = np.searchsorted(edges[:, 1], begins, side="right")
        inside = word < len(edges)
        inside[inside] &= begins[inside] >= edges[word[inside], 0]
        words = np.zeros((len(edges), vectors.shape[1]), np.float32)
        word, rows = word[inside], rows[inside]
        if len(word):
            first = np.flatnonzero(np.diff(word, prepend=-1))
            words[word[first]] = np.add.reduceat(vectors[rows], first, axis=0)
        sizes = [sum(last - first + 2 for first, last in some) for some in parts]
        starts = np.cumsum(sizes, dtype=np.int64) - np.array(sizes, np.int64)
        wholes = np.add.reduceat(vectors, starts, axis=0) * (counts > 0)[:, None]
        by_text = np.split(unit_rows(words).astype(np.float32), np.cumsum(counts)[:-1])
        return by_text, unit_rows(wholes).astype(np.float32)


ContextualMatches = tuple[QueryMatches, WordTable]
"""A query against its passages, and a table with a row for each of its words, in order."""


def contextual(words: QueryWords, table: WordTable, vectors: TextVectors) -> ContextualMatches:
    """One query against its passages, compared by the vectors of their words in context.

    Args:
        words: The words of the query, of its passages and of its titles.
        table: What is known about them.
        vectors: The vectors of these texts.
    """
    matches = match_query(words, table, vectors)
    rows = matches["query"]
    own = WordTable(vectors.words[: len(rows)], table.facts[rows], table.stem[rows])
    return {**matches, "query": np.arange(len(rows), dtype=np.int64)}, own


def windows(count: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Where windows over so many tokens begin and end; the last one ends with the text.

    Examples:
        >>> windows(25, 10, 4)
        [(0, 10), (6, 16), (12, 22), (15, 25)]
    """
    if count <= size:
        return [(0, count)]
    starts = [*range(0, count - size, size - overlap), count - size]
    return [(start, start + size) for start in starts]


def _rows_of(
    tokens: Sequence[TextTokens], parts: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[int]:
    """The row of every token among those of all windows; in an overlap, each window has a half."""
    row = 0
    for one, some in zip(tokens, parts, strict=True):
        cuts = [(after[0] + before[1]) // 2 for before, after in itertools.pairwise(some)]
        edges = [0, *cuts, len(one.ids)]
        for (first, last), own in zip(some, itertools.pairwise(edges), strict=True):
            yield from range(row + 1 + own[0] - first, row + 1 + own[1] - first)
            row += last - first + 2


def map_names() -> Iterator[str]:
    """The names of all linear maps of the transformer."""
    for layer in range(_LAYERS):
        for name in _LINEAR_MAPS:
            yield f"encoder.layer.{layer}.{name}"


def update_shapes(rank: int) -> dict[str, tuple[int, ...]]:
    """The arrays of updates of this rank of all linear maps; none for rank 0."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in map_names() if rank else ():
        is_wide = "attention" not in name
        inputs = _WIDE if is_wide and name.endswith(".output.dense") else _WIDTH
        outputs = _WIDE if name.endswith("intermediate.dense") else _WIDTH
        shapes |= {f"{name}.down": (rank, inputs), f"{name}.up": (outputs, rank)}
    return shapes
