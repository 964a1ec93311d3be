"""What is known about words: their vectors, how rare they are, their stems.

Each different word is described once and remembered; texts become rows of this table. The new words
of all texts of a call are described together.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import weakref
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.array_files import MappedArray
from dgn.core import native
from dgn.core.native.facets import describe_words
from dgn.text.languages import (
    ENGLISH,
    ENGLISH_NEGATIONS,
    Language,
    english_numbers,
    english_opposites,
    find_language,
    spelling_vectors,
)
from dgn.text.vectors import SubwordVectors, unit_rows
from dgn.text.words import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    is_number,
    is_year,
    pieces_of,
    split_piece,
    stem,
    value_of,
)

_LONGEST_PIECE = 64
_MOST_WORDS = 2**17
"""The largest number of different words to remember; then all of them are forgotten."""

_FIRST_ROWS = 2**15
"""Room at the start; the operating system gives memory to rows when they are written."""

_FREE_ROWS = 4096
"""Rows after the stored words, for those of queries."""

_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
"""An English word with one of these denies the word without it: unsafe, impossible, disagree."""

_SHORTEST_DENIED = 4
"""Shorter words are too often something else with such a beginning: into, imam, until."""

_PREFIX = re.compile(f"^(?:{'|'.join(_PREFIXES)})")


def _english_signs() -> dict[str, tuple[str, int, int, int]]:
    """For English words: a number, pairs of opposites on both sides, and whether they negate."""
    words = {*english_numbers(), *english_opposites(), *ENGLISH_NEGATIONS}
    found: dict[str, tuple[str, int, int, int]] = {}
    for word in words:
        sides = [0, 0]
        for pair, side in english_opposites().get(word, ()):
            sides[side] |= 1 << pair
        negates = int(word in ENGLISH_NEGATIONS)
        found[word] = (english_numbers().get(word, ""), sides[0], sides[1], negates)
    return found


_ENGLISH_SIGNS = _english_signs()

FACTS = 5
"""IDF; whether it is a number, a year, a function word, a question word."""


NUMBER, FIRST, SECOND, NEGATES, DENIED = range(5)
"""What a word may contradict another text with, the columns of `WordTable.signs`; 0 for none.

The number of the number that it is; the pairs of opposites of which it is the first, or the second,
as bits; whether it is a word of negation; and one more than the row of the word that it denies, as
"unsafe" denies "safe".
"""


@dataclass(frozen=True, eq=False)
class WordTable:
    """What is known about words; a word is a row.

    Attributes:
        vectors: [words, dimension], float32, of length 1.
        facts: [words, 5], float32: IDF; number, year, function word, question word.
        stem: [words], equal for the forms of a word.
        signs: [words, 5], what a word may contradict another text with; most words have none.
    """

    vectors: NDArray[np.float32]
    facts: NDArray[np.float32]
    stem: NDArray[np.int64]
    signs: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 5), np.int64))

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the kernels read."""
        return self.vectors, self.facts, self.stem


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
        self.forget()
        _READERS.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the words that were met: another process meets its own."""
        return WordReader, (self.vectors, self.idf, self.words, self.stems, self.table)

    def with_words_met(self) -> WordReader:
        """A reader that knows from the start all words that this one has met."""
        return WordReader(self.vectors, self.idf, *self._memory.content())

    def read(
        self,
        texts: Sequence[str],
        languages: Sequence[str] | None = None,
        *,
        forgets: bool = True,
    ) -> tuple[list[list[int]], WordTable]:
        """The words of these texts as rows of a table, and the table.

        Args:
            texts: The texts.
            languages: The language of each text; by default, all are English.
            forgets: Whether words are forgotten when there are too many; rows then mean nothing.
        """
        return self.read_pieces([*map(pieces_of, texts)], languages, forgets=forgets)

    def read_pieces(
        self,
        texts: Sequence[list[str]],
        languages: Sequence[str] | None = None,
        *,
        forgets: bool = True,
    ) -> tuple[list[list[int]], WordTable]:
        """The same for texts that `pieces_of` has split."""
        memory = self._memory
        rows = memory.rows(texts) if languages is None else memory.rows_in(texts, languages)
        if forgets and memory.is_full:
            self.forget()
        return rows, memory.table()

    def keep(self, queries: Sequence[object], words: Sequence[Any], table: WordTable) -> None:
        """Keep the words of the queries that this thread has read last, for `kept`."""
        self._memory.last.read = (queries, words, table)

    def kept(self, query: object) -> tuple[Any, WordTable] | None:
        """The words of a query that this thread has read last; None if it is another one."""
        read = getattr(self._memory.last, "read", None)
        if read is None:
            return None
        queries, words, table = read
        for place, one in enumerate(queries):
            if one is query:
                return words[place], table
        return None

    def forget(self) -> None:
        """Forget the words that were met; threads that are reading keep the memory they have."""
        self._memory = _Memory(self)

    def describe(self, words: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The vectors [words, dimension] and the IDF [words] of some words."""
        tokens, counts = self.vectors.word_rows(words)
        if native.is_available() and self.vectors.table.dtype == np.float32:
            return describe_words(self.vectors.table, self.idf, tokens, counts)
        vectors = np.zeros((len(words), self.vectors.dimension), np.float32)
        idf = np.zeros(len(words), np.float32)
        filled = counts > 0
        if not len(tokens):
            return vectors, idf
        starts = (np.cumsum(counts) - counts)[filled]
        weights = self.idf[tokens]
        units = unit_rows(np.asarray(self.vectors.table[tokens], np.float32))
        vectors[filled] = unit_rows(np.add.reduceat(units * weights[:, None], starts, axis=0))
        idf[filled] = np.maximum.reduceat(weights, starts)
        return vectors, idf


_READERS: weakref.WeakSet[WordReader] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Another thread of the parent may have been changing a memory, and holds its lock for ever."""
    for reader in list(_READERS):
        reader.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


@final
class _Memory:
    """All words met so far, with what is known about them; words are only ever added."""

    def __init__(self, reader: WordReader) -> None:
        self._reader, self._lock = reader, threading.Lock()
        self.last = threading.local()
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._pieces_in: defaultdict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
        self._vectors: NDArray[Any] = np.zeros((_FIRST_ROWS, reader.vectors.dimension), np.float32)
        self._facts: NDArray[Any] = np.zeros((_FIRST_ROWS, FACTS), np.float32)
        self._stem_of: NDArray[Any] = np.zeros(_FIRST_ROWS, np.int64)
        if reader.table is not None:
            self._words |= {word: row for row, word in enumerate(reader.words)}
            self._stems |= {stem: number for number, stem in enumerate(reader.stems)}
            table = reader.table
            arrays = (table.vectors, table.facts, table.stem)
            self._vectors, self._facts, self._stem_of = map(_writable, arrays)
        self._stored = len(self._words)
        self._signs: NDArray[Any] = np.zeros((len(self._stem_of), DENIED + 1), np.int64)
        self._numbers: dict[str, int] = {}
        self._denying: defaultdict[str, list[int]] = defaultdict(list)

    @property
    def is_full(self) -> bool:
        """Whether there is so much in it that it should be forgotten."""
        learned = len(self._words) - self._stored
        most = _FREE_ROWS // 2 if self._stored else _MOST_WORDS
        pieces = len(self._pieces) + sum(map(len, self._pieces_in.values()))
        return learned > most or pieces > 2 * (self._stored + _MOST_WORDS)

    def content(self) -> tuple[tuple[str, ...], tuple[str, ...], WordTable]:
        """All words that were met so far, their stems, and what is known about them."""
        with self._lock:
            count = len(self._words)

            def kept(array: NDArray[Any]) -> NDArray[Any]:
                free = np.zeros((_FREE_ROWS, *array.shape[1:]), array.dtype)
                return np.concatenate([array[:count], free])

            table = WordTable(kept(self._vectors), kept(self._facts), kept(self._stem_of))
            return tuple(self._words), tuple(self._stems), table

    def rows_in(self, texts: Sequence[list[str]], languages: Sequence[str]) -> list[list[int]]:
        """The words of each text in its language.

        The same piece is another word in another language, and is remembered for each of them.
        """
        rows: list[list[int]] = [[] for _ in texts]
        for code in dict.fromkeys(languages):
            numbers = [number for number, own in enumerate(languages) if own == code]
            some = [texts[number] for number in numbers]
            found = self.rows(some) if code == ENGLISH else self._foreign_rows(some, code)
            for number, own in zip(numbers, found, strict=True):
                rows[number] = own
        return rows

    def _foreign_rows(self, texts: Sequence[list[str]], code: str) -> list[list[int]]:
        language, remembered = find_language(code), self._pieces_in[code]
        split = [language.pieces(pieces) for pieces in texts]
        flat = itertools.chain.from_iterable
        new = set(flat(split)).difference(remembered)
        words = {piece: [*map(language.read, language.written(piece))] for piece in new}
        with self._lock:
            self._add_words((f"{code}:{word}" for word in flat(words.values())), language)
            found = {
                piece: tuple(self._words[f"{code}:{word}"] for word in own)
                for piece, own in words.items()
            }
            remembered |= {p: own for p, own in found.items() if len(p) <= _LONGEST_PIECE}
        known = ChainMap(found, remembered)
        return [list(flat(known[piece] for piece in pieces)) for pieces in split]

    def rows(self, split: Sequence[list[str]]) -> list[list[int]]:
        """The words of each English text; most pieces are known already."""
        remembered: Mapping[str, tuple[int, ...]] = self._pieces
        flat = itertools.chain.from_iterable
        try:
            rows = [list(flat(map(remembered.__getitem__, pieces))) for pieces in split]
        except KeyError:  # to look for new ones first would take as long as the rows
            if long := self._learn(set(flat(split)).difference(remembered)):
                remembered = ChainMap(long, remembered)
            rows = [list(flat(map(remembered.__getitem__, pieces))) for pieces in split]
        return rows

    def table(self) -> WordTable:
        """What is known about all words that were met so far."""
        with self._lock:  # the arrays may be exchanged for larger ones
            return WordTable(self._vectors, self._facts, self._stem_of, self._signs)

    def _learn(self, pieces: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Remember pieces; those that are too long to be remembered are returned."""
        with self._lock:
            words: dict[str, list[str]] = {}
            for piece in pieces:
                words[piece] = [*map(str.casefold, split_piece(piece))]
            self._add_words(itertools.chain.from_iterable(words.values()))
            row_of = self._words.__getitem__
            rows = {piece: tuple(map(row_of, own)) for piece, own in words.items()}
            long = {piece: rows.pop(piece) for piece in words if len(piece) > _LONGEST_PIECE}
            self._pieces |= rows
        return long

    def _add_words(self, words: Iterable[str], language: Language | None = None) -> None:
        """Describe the words that are new; under the lock.

        Args:
            words: The words; those of a language begin with its code and a colon, which no word
                contains.
            language: Their language, if it is not English.
        """
        new = [word for word in dict.fromkeys(words) if word not in self._words]
        if not new:
            return
        first = len(self._words)
        end = first + len(new)
        if end > len(self._stem_of):
            # Other threads read the old arrays; a word never changes.
            self._vectors, self._facts, self._stem_of, self._signs = (
                np.concatenate([array, np.zeros((end, *array.shape[1:]), array.dtype)])
                for array in (self._vectors, self._facts, self._stem_of, self._signs)
            )
        own = slice(first, end)
        if language is None:
            stems = self._describe_english(new, own)
        else:
            stems = self._describe(new, own, language)
        numbers = self._stems
        self._stem_of[own] = [numbers.setdefault(one, len(numbers)) for one in stems]
        self._words |= dict(zip(new, range(first, end), strict=True))
        self._add_signs(new, first, language)

    def _add_signs(self, new: Sequence[str], first: int, language: Language | None) -> None:
        """Remember what new words may contradict another text with."""
        signs, denying = self._signs, self._denying
        for row, word in enumerate(new, first):
            if language is not None:
                word = word.partition(":")[2]
                signs[row, NEGATES] = word in language.negations
            else:
                if word in _ENGLISH_SIGNS:
                    number, *others = _ENGLISH_SIGNS[word]
                    signs[row, FIRST:DENIED] = others
                    if number:
                        signs[row, NUMBER] = self._number(number)
                elif word.endswith("n't"):
                    signs[row, NEGATES] = 1
                if word in denying:
                    signs[denying[word], DENIED] = row + 1
                if word.startswith(_PREFIXES) and len(word) > _SHORTEST_DENIED:
                    denied = _PREFIX.sub("", word, count=1)
                    denying[denied].append(row)
                    signs[row, DENIED] = self._words.get(denied, -1) + 1
            if word[-1].isdigit() and is_number(word):
                signs[row, NUMBER] = self._number(value_of(word).replace(",", ""))

    def _number(self, value: str) -> int:
        return self._numbers.setdefault(value, len(self._numbers) + 1)

    def _describe_english(self, new: Sequence[str], own: slice) -> Iterable[str]:
        """Fill in the vectors and the facts of new words; their stems are returned."""
        self._vectors[own], idf = self._reader.describe(new)
        self._facts[own, 0] = idf
        for row, word in enumerate(new, own.start):
            if word in FUNCTION_WORDS:
                self._facts[row, 3:] = 1, word in QUESTION_WORDS
            elif is_number(word):
                self._facts[row, 1:3] = 1, is_year(word)
        return map(stem, new)

    def _describe(self, new: Sequence[str], own: slice, language: Language) -> Iterable[str]:
        words = [word.partition(":")[2] for word in new]
        self._vectors[own] = spelling_vectors(words, self._vectors.shape[1])
        self._facts[own] = [astuple(language.facts(word)) for word in words]
        return map(language.stem, words)


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """A copy to write into; a file that is mapped into memory stays as it is."""
    return array.private() if isinstance(array, MappedArray) else array.copy()
