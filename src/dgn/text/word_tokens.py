"""The tokens of words: each with a vector of its own, and with the spelling of its whole word.

A tokenizer cuts "1901" into digits and a rare name into syllables. Their vectors match piece by
piece, which finds "Sikkim" in "Sikkimese"; but two words are the same only as a whole, or every
date would be in every other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.text.matching import unit_rows
from dgn.text.vectors import SubwordVectors
from dgn.text.vocabulary import Vocabulary

FACTS = ("in several tokens", "number", "capital")

_MIX = np.uint64(0xD6E8FEB86659FD93)
"""Any odd number would do: it keeps the tokens of a word apart."""


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The tokens of some texts, punctuation left out; each different one is described once.

    texts: for every text, its tokens in order, as places in the arrays below.
    vectors: [different, dimension], of length 1. rarity: [different], the token's IDF.
    spelling: [different], of the whole word; equal where two words differ in case alone.
    facts: [different, 3], of the word, 0 or 1; see FACTS.
    """

    texts: list[NDArray[np.int64]]
    vectors: NDArray[np.float32]
    spelling: NDArray[np.uint64]
    rarity: NDArray[np.float32]
    facts: NDArray[np.float32]


@final
class WordReader:
    """Reads words with the tokens of some vectors. rarity: [tokens], the IDF of each."""

    def __init__(self, vectors: SubwordVectors, rarity: NDArray[np.float32]) -> None:
        self.vectors, self.rarity = vectors, rarity
        self._vocabulary = Vocabulary.of(vectors.pieces)

    def read(self, texts: Sequence[str]) -> WordTokens:
        """The tokens of these texts."""
        rows_of = self.vectors.token_rows(texts)
        lengths = np.fromiter(map(len, rows_of), np.int64, len(rows_of))
        rows = np.fromiter(itertools.chain.from_iterable(rows_of), np.int64, int(lengths.sum()))
        text_starts = np.cumsum(lengths) - lengths
        word = self._word_numbers(rows, text_starts[lengths > 0])
        kept = ~self._vocabulary.punctuation[rows]
        # Where each text's tokens begin, once punctuation is left out.
        cuts = np.append(0, np.cumsum(kept))[text_starts]
        return self._described(rows[kept], word[kept], cuts)

    def words(self, text: str) -> list[tuple[str, list[int]]]:
        """The words of a text as they are written, each with the places of its tokens in `read`."""
        located = self.vectors.located(text)
        rows = np.array([row for row, _, _ in located], np.int64)
        numbers = self._word_numbers(rows, np.zeros(min(1, len(rows)), np.int64)).tolist()
        marks = self._vocabulary.punctuation[rows].tolist()
        spans: dict[int, tuple[int, int]] = {}
        tokens: dict[int, list[int]] = {}
        place = 0
        for (_, start, end), number, mark in zip(located, numbers, marks, strict=True):
            if mark:
                continue
            spans[number] = (spans.get(number, (start, end))[0], end)
            tokens.setdefault(number, []).append(place)
            place += 1
        return [(text[slice(*spans[n])].strip(), tokens[n]) for n in spans]

    def _word_numbers(
        self, rows: NDArray[np.int64], text_starts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """[tokens], which word each belongs to; a mark of punctuation is a word by itself."""
        mark = self._vocabulary.punctuation[rows]
        begins = self._vocabulary.starts[rows] | mark
        begins[1:] |= mark[:-1]
        begins[text_starts] = True
        return np.cumsum(begins, dtype=np.int64)

    def _described(
        self, rows: NDArray[np.int64], word: NDArray[np.int64], cuts: NDArray[np.int64]
    ) -> WordTokens:
        begins = np.flatnonzero(np.diff(word, prepend=-1))
        sizes = np.diff(np.append(begins, len(rows)))
        number = self._vocabulary.number[rows]
        spelled = np.zeros(0, np.uint64)
        if len(rows):
            spelled = np.repeat(self._vocabulary.spell(rows, begins), sizes)
            number = np.repeat(np.logical_or.reduceat(number, begins), sizes)
        capital = np.repeat(self._vocabulary.capital[rows[begins]], sizes)
        # A token is another one in another word, or as another piece of it.
        identity = spelled ^ ((rows.astype(np.uint64) + np.uint64(1)) * _MIX)
        _, first, tokens = np.unique(identity, return_index=True, return_inverse=True)
        facts = np.stack([np.repeat(sizes, sizes) > 1, number, capital], axis=1)
        return WordTokens(
            texts=np.split(tokens, cuts[1:]),
            vectors=unit_rows(self.vectors.table[rows[first]]),
            spelling=spelled[first],
            rarity=self.rarity[rows[first]],
            facts=facts[first].astype(np.float32),
        )
