"""Words of texts: what is one word, when two words are the same, and what is known about each.

Words are compared without case and in one Unicode form, and a number is one word, so that 1901
never resembles 1907. What is known about a word is computed once and remembered.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.kernels.facets import KnownWords
from dgn.text.tokens import ARTICLES, FUNCTION_WORDS, QUESTION_WORDS, clean_brackets
from dgn.text.vectors import SubwordVectors

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|\w")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_POSSESSIVE = ("'s", "’s")
_LONGEST_WORD = 64
_LONGEST_REMEMBERED = 64
_MOST_WORDS = 2**17
"""The largest number of different words to remember; then all of them are forgotten."""

_FREE_ROWS = 4096
"""Rows after the stored words, for those of queries."""

KINDS = 4
"""number, year, function word, question word"""


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The words of some texts; each different word is described once.

    Attributes:
        texts: For every text, its words in order, as rows of the arrays below. Two words of the
            same spelling have the same row.
        vectors: [different, dimension], of length 1.
        idf: [different].
        stem: [different], equal for the forms of a word, like "ship" and "ships".
        kinds: [different, KINDS], 0 or 1: whether the word is a number, a year, a function word, a
            question word.
    """

    texts: list[NDArray[np.int64]]
    vectors: NDArray[np.float32]
    idf: NDArray[np.float32]
    stem: NDArray[np.int64]
    kinds: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StoredWords:
    """Words that a reader knows from the start; their rows never change.

    Attributes:
        words: Each different word, in the order of its row.
        stems: Each different stem, in the order of its number.
        vectors: [words and more, dimension]; the rows after the words are free for others.
        facts: [words and more, 1 + KINDS], the IDF and the kinds.
        stem_of: [words and more], the number of each word's stem.
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    vectors: NDArray[np.float32]
    facts: NDArray[np.float32]
    stem_of: NDArray[np.int64]

    def copies(self) -> tuple[NDArray[Any], ...]:
        """The arrays, to write into; a file that is mapped into memory stays as it is."""
        return tuple(map(_private, (self.vectors, self.facts, self.stem_of)))


def _private(array: NDArray[Any]) -> NDArray[Any]:
    if isinstance(array, np.memmap):
        mapped: Any = array
        return np.memmap(mapped.filename, mapped.dtype, "c", mapped.offset, mapped.shape)
    return array.copy()


@final
class WordReader:
    """Reads the words of texts and knows their vectors; threads may share it.

    Args:
        vectors: The vectors and their tokenizer. The vector of a word with several tokens is their
            mean, rare tokens counting more.
        idf: [tokens], the IDF of every token; that of a word is the largest of its tokens.
        stored: Words that are known from the start.
    """

    def __init__(
        self,
        vectors: SubwordVectors,
        idf: NDArray[np.float32],
        stored: StoredWords | None = None,
    ) -> None:
        self.vectors, self.idf, self.stored = vectors, idf, stored
        self._memory = _Memory(self)

    def __getstate__(self) -> dict[str, Any]:
        """Without the words that were met: another process meets its own."""
        return {"vectors": self.vectors, "idf": self.idf, "stored": self.stored}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["vectors"], state["idf"], state["stored"])

    def store(self) -> StoredWords:
        """All words that were met so far."""
        return self._memory.store()

    def read(self, texts: Sequence[str]) -> WordTokens:
        """The words of these texts."""
        memory = self._memory
        rows = [memory.rows(text) for text in texts]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.fromiter((row for text in rows for row in text), np.int64, int(lengths.sum()))
        different, place = np.unique(flat, return_inverse=True)
        described = WordTokens(
            np.split(place, np.cumsum(lengths)[:-1]), *memory.described(different)
        )
        if memory.is_full:
            self._memory = _Memory(self)  # other threads keep the one that they have
        return described

    def read_rows(
        self, texts: Sequence[str], *, forgets: bool = True
    ) -> tuple[list[list[int]], KnownWords]:
        """The words of these texts as rows of all words that were met, for the kernels.

        Args:
            texts: The texts.
            forgets: Whether words are forgotten when there are too many; rows then mean nothing.
        """
        memory = self._memory
        rows = [memory.rows(text) for text in texts]
        if forgets and memory.is_full:
            self._memory = _Memory(self)  # other threads keep the one that they have
        return rows, memory.known()

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
        self._facts: NDArray[Any] = np.zeros((256, 1 + KINDS), np.float32)
        self._stem_of: NDArray[Any] = np.zeros(256, np.int64)
        if reader.stored is not None:
            self._words |= {word: row for row, word in enumerate(reader.stored.words)}
            self._stems |= {stem: number for number, stem in enumerate(reader.stored.stems)}
            self._vectors, self._facts, self._stem_of = reader.stored.copies()
        self._stored = len(self._words)

    @property
    def is_full(self) -> bool:
        """Whether there is so much in it that it should be forgotten."""
        learned = len(self._words) - self._stored
        most = _FREE_ROWS // 2 if self._stored else _MOST_WORDS
        return learned > most or len(self._pieces) > 2 * (self._stored + _MOST_WORDS)

    def store(self) -> StoredWords:
        """All words that were met so far."""
        with self._lock:
            count = len(self._words)

            def kept(array: NDArray[Any]) -> NDArray[Any]:
                free = np.zeros((_FREE_ROWS, *array.shape[1:]), array.dtype)
                return np.concatenate([array[:count], free])

            return StoredWords(
                tuple(self._words),
                tuple(self._stems),
                *(kept(array) for array in (self._vectors, self._facts, self._stem_of)),
            )

    def rows(self, text: str) -> list[int]:
        """The words of a text; no word spans a space, and most pieces are known already."""
        pieces = normalized(text).split()
        known = self._pieces
        try:
            return [row for piece in pieces for row in known[piece]]
        except KeyError:
            found = [known.get(piece) for piece in pieces]
            learned = [
                self._learn(piece) if rows is None else rows
                for piece, rows in zip(pieces, found, strict=True)
            ]
            return [row for rows in learned for row in rows]

    def known(self) -> KnownWords:
        """All words that were met so far."""
        with self._lock:
            return KnownWords(self._vectors, self._facts, self._stem_of)

    def described(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Vectors, IDF, stems and kinds of these words."""
        with self._lock:  # the arrays may be exchanged for larger ones
            vectors, facts, stems = self._vectors, self._facts, self._stem_of
        return vectors[rows], facts[rows, 0], stems[rows], facts[rows, 1:]

    def _learn(self, piece: str) -> tuple[int, ...]:
        with self._lock:
            rows = tuple(self._row(word.lower()) for word in _split(piece))
            if len(piece) <= _LONGEST_REMEMBERED:
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


def normalized(text: str) -> str:
    """The text with real brackets and in one Unicode form."""
    text = clean_brackets(text)
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def written_words(text: str) -> list[str]:
    """The words of a text as they are written, in the order in which `WordReader` reads them."""
    return [word for piece in normalized(text).split() for word in _words_of(piece)]


def word_spans(normal: str) -> list[tuple[int, int]]:
    """Where the words of a normalized text begin and end."""
    return [match.span() for match in _WORD.finditer(normal)]


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """The stem of a word: "ships" and "shipping" have that of "ship"; numbers stay as they are."""
    word = word.lower()
    if word[0].isdigit():
        return word.replace(",", "")
    for ending in _POSSESSIVE:
        word = word.removesuffix(ending)
    return _stemmer().stemWord(word)


def stems_of(text: str) -> frozenset[str]:
    """The stems of all words of a text."""
    return frozenset(map(stem, written_words(text)))


def same_text_key(text: str) -> tuple[str, ...]:
    """Equal for texts that differ in case, punctuation, spaces, Unicode form or articles alone.

    A text without words is equal to itself alone.
    """
    pieces = normalized(text).split()
    return tuple(itertools.chain.from_iterable(map(_key_of, pieces))) or (text,)


def letters_of(text: str) -> tuple[int, ...]:
    """How often some letters are in a text: equal for texts with an equal `same_text_key`.

    None of these letters is in an article. Of words that are longer than any word, `same_text_key`
    knows the beginning only; texts that differ after it are told apart here.
    """
    text = normalized(text).lower()
    return text.count("i"), text.count("o"), text.count("s"), text.count("d"), text.count("1")


def _words_of(piece: str) -> tuple[str, ...]:
    """The words of a text without spaces; most pieces were met before."""
    return _remembered_split(piece) if len(piece) <= _LONGEST_REMEMBERED else _split(piece)


def _key_of(piece: str) -> tuple[str, ...]:
    """The same in lower case, without articles."""
    return _remembered_key(piece) if len(piece) <= _LONGEST_REMEMBERED else _key(piece)


def _split(piece: str) -> tuple[str, ...]:
    return tuple(match.group()[:_LONGEST_WORD] for match in _WORD.finditer(piece))


def _key(piece: str) -> tuple[str, ...]:
    words = (word.lower() for word in _split(piece))
    return tuple(word for word in words if word not in ARTICLES)


_remembered_split = lru_cache(maxsize=2**17)(_split)
_remembered_key = lru_cache(maxsize=2**17)(_key)


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")
