"""What is known about words: their vectors, how rare they are, their stems.

Each different word is described once and remembered; texts become rows of this table.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.native.facets import WordTable
from dgn.text.vectors import SubwordVectors
from dgn.text.words import FUNCTION_WORDS, QUESTION_WORDS, normalized, split_piece, stem

_YEAR = re.compile(r"1\d{3}|20\d{2}")
_LONGEST_PIECE = 64
_MOST_WORDS = 2**17
"""The largest number of different words to remember; then all of them are forgotten."""

_FREE_ROWS = 4096
"""Rows after the stored words, for those of queries."""

FACTS = 5
"""IDF; whether it is a number, a year, a function word, a question word."""


@final
class WordReader:
    """Reads the words of texts and knows their vectors; threads may share it.

    Args:
        vectors: The vectors and their tokenizer. The vector of a word with several tokens is their
            mean, rare tokens counting more.
        idf: [tokens], the IDF of every token; that of a word is the largest of its tokens.
        words: Words that are known from the start, in the order of their rows.
        stems: Their different stems, in the order of their numbers.
        table: What is known about these words; further rows are free for others.
    """

    def __init__(
        self,
        vectors: SubwordVectors,
        idf: NDArray[np.float32],
        words: tuple[str, ...] = (),
        stems: tuple[str, ...] = (),
        table: WordTable | None = None,
    ) -> None:
        self.vectors, self.idf = vectors, idf
        self.words, self.stems, self.table = words, stems, table
        self._memory = _Memory(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the words that were met: another process meets its own."""
        return WordReader, (self.vectors, self.idf, self.words, self.stems, self.table)

    def with_words_met(self) -> WordReader:
        """A reader that knows from the start all words that this one has met."""
        return WordReader(self.vectors, self.idf, *self._memory.content())

    def read(
        self, texts: Sequence[str], *, forgets: bool = True
    ) -> tuple[list[list[int]], WordTable]:
        """The words of these texts as rows of a table, and the table.

        Args:
            texts: The texts.
            forgets: Whether words are forgotten when there are too many; rows then mean nothing.
        """
        memory = self._memory
        rows = [memory.rows(text) for text in texts]
        if forgets and memory.is_full:
            self._memory = _Memory(self)  # other threads keep the one that they have
        return rows, memory.table()

    def describe(self, word: str) -> tuple[NDArray[np.float32], float]:
        """The vector and the IDF of a word."""
        rows = [row for row, start, end in self.vectors.token_spans(word) if end > start]
        tokens = self.vectors.table[rows].astype(np.float32)
        lengths = np.linalg.norm(tokens, axis=1, keepdims=True)
        idf = self.idf[rows]
        total = (idf[:, None] * tokens / np.maximum(lengths, 1e-6)).sum(axis=0)
        return total / max(float(np.linalg.norm(total)), 1e-6), float(idf.max(initial=0.0))


@final
class _Memory:
    """All words met so far, with what is known about them; words are only ever added."""

    def __init__(self, reader: WordReader) -> None:
        self._reader, self._lock = reader, threading.Lock()
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._vectors: NDArray[Any] = np.zeros((256, reader.vectors.dimension), np.float32)
        self._facts: NDArray[Any] = np.zeros((256, FACTS), np.float32)
        self._stem_of: NDArray[Any] = np.zeros(256, np.int64)
        if reader.table is not None:
            self._words |= {word: row for row, word in enumerate(reader.words)}
            self._stems |= {stem: number for number, stem in enumerate(reader.stems)}
            table = reader.table
            arrays = (table.vectors, table.facts, table.stem)
            self._vectors, self._facts, self._stem_of = map(_writable, arrays)
        self._stored = len(self._words)

    @property
    def is_full(self) -> bool:
        """Whether there is so much in it that it should be forgotten."""
        learned = len(self._words) - self._stored
        most = _FREE_ROWS // 2 if self._stored else _MOST_WORDS
        return learned > most or len(self._pieces) > 2 * (self._stored + _MOST_WORDS)

    def content(self) -> tuple[tuple[str, ...], tuple[str, ...], WordTable]:
        """All words that were met so far, their stems, and what is known about them."""
        with self._lock:
            count = len(self._words)

            def kept(array: NDArray[Any]) -> NDArray[Any]:
                free = np.zeros((_FREE_ROWS, *array.shape[1:]), array.dtype)
                return np.concatenate([array[:count], free])

            arrays = (kept(array) for array in (self._vectors, self._facts, self._stem_of))
            return tuple(self._words), tuple(self._stems), WordTable(*arrays)

    def rows(self, text: str) -> list[int]:
        """The words of a text; no word spans a space, and most pieces are known already."""
        pieces = normalized(text).split()
        remembered = self._pieces
        try:
            return [row for piece in pieces for row in remembered[piece]]
        except KeyError:
            rows = [remembered.get(piece) for piece in pieces]
            complete = [
                self._learn(piece) if some is None else some
                for piece, some in zip(pieces, rows, strict=True)
            ]
            return [row for some in complete for row in some]

    def table(self) -> WordTable:
        """What is known about all words that were met so far."""
        with self._lock:  # the arrays may be exchanged for larger ones
            return WordTable(self._vectors, self._facts, self._stem_of)

    def _learn(self, piece: str) -> tuple[int, ...]:
        with self._lock:
            rows = tuple(self._row(word.lower()) for word in split_piece(piece))
            if len(piece) <= _LONGEST_PIECE:
                self._pieces[piece] = rows
        return rows

    def _row(self, word: str) -> int:
        row = self._words.get(word)
        if row is None:
            row = len(self._words)
            if row == len(self._stem_of):
                self._vectors, self._facts, self._stem_of = (
                    np.concatenate([array, np.zeros_like(array)])
                    for array in (self._vectors, self._facts, self._stem_of)
                )
            self._vectors[row], idf = self._reader.describe(word)
            is_number = word[0].isdigit()
            kinds = (
                is_number,
                _YEAR.fullmatch(word) is not None,
                word in FUNCTION_WORDS,
                word in QUESTION_WORDS,
            )
            self._facts[row] = (idf, *kinds)
            self._stem_of[row] = self._stems.setdefault(stem(word), len(self._stems))
            self._words[word] = row
        return row


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """A copy to write into; a file that is mapped into memory stays as it is."""
    if isinstance(array, np.memmap):
        mapped: Any = array
        return np.memmap(mapped.filename, mapped.dtype, "c", mapped.offset, mapped.shape)
    return array.copy()
