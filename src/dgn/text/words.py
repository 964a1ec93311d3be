"""Words as tokens: each token has its own vector and the spelling of its whole word.

A tokenizer divides "1901" into digits and a rare name into syllables. The vectors of the pieces
are compared one by one, which finds "Sikkim" in "Sikkimese". Two words are equal only as a whole;
otherwise every date would match every other date.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.text.vectors import SubwordVectors, unit_rows

_WORD_START = "▁"
"""How sentencepiece writes the space before a word."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPECIAL = {"<s>", "</s>", "<unk>"}
_BASE = 0x9E3779B97F4A7C15
_LONGEST_WORD = 4096
_MIX = np.uint64(0xD6E8FEB86659FD93)
"""Any odd number would do: it keeps the tokens of a word apart."""


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The tokens of some texts without punctuation; each different token is described once.

    Attributes:
        texts: For every text, its tokens in order, as rows of the arrays below.
        vectors: [different, dimension], of length 1.
        spelling: [different], a hash of the whole word; equal for words that differ only in case.
        idf: [different], the IDF of the token.
        flags: [different, 3], 0 or 1: whether the word has several tokens, contains a digit,
            begins with a capital letter.
    """

    texts: list[NDArray[np.int64]]
    vectors: NDArray[np.float32]
    spelling: NDArray[np.uint64]
    idf: NDArray[np.float32]
    flags: NDArray[np.float32]


@final
class WordReader:
    """Reads the words of texts with the tokens of some vectors.

    Args:
        vectors: The vectors and their tokenizer.
        idf: [tokens], the IDF of every token.
    """

    def __init__(self, vectors: SubwordVectors, idf: NDArray[np.float32]) -> None:
        self.vectors, self.idf = vectors, idf
        self._vocabulary = _Vocabulary.of(vectors.pieces)

    def read(self, texts: Sequence[str]) -> WordTokens:
        """The tokens of these texts."""
        rows_of = self.vectors.token_rows(texts)
        lengths = np.fromiter(map(len, rows_of), np.int64, len(rows_of))
        rows = np.fromiter(itertools.chain.from_iterable(rows_of), np.int64, int(lengths.sum()))
        text_starts = np.cumsum(lengths) - lengths
        word = self._word_numbers(rows, text_starts[lengths > 0])
        kept = ~self._vocabulary.punctuation[rows]
        # Where the tokens of each text begin after punctuation was removed.
        cuts = np.append(0, np.cumsum(kept))[text_starts]
        return self._described(rows[kept], word[kept], cuts)

    def words(self, text: str) -> list[tuple[str, list[int]]]:
        """The words of a text as written, each with the positions of its tokens in `read`."""
        located = self.vectors.token_spans(text)
        rows = np.array([row for row, _, _ in located], np.int64)
        numbers = self._word_numbers(rows, np.zeros(min(1, len(rows)), np.int64)).tolist()
        punctuation = self._vocabulary.punctuation[rows].tolist()
        spans: dict[int, tuple[int, int]] = {}
        tokens: dict[int, list[int]] = {}
        position = 0
        for (_, start, end), number, is_mark in zip(located, numbers, punctuation, strict=True):
            if is_mark:
                continue
            spans[number] = (spans.get(number, (start, end))[0], end)
            tokens.setdefault(number, []).append(position)
            position += 1
        return [(text[slice(*spans[n])].strip(), tokens[n]) for n in spans]

    def _word_numbers(
        self, rows: NDArray[np.int64], text_starts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """[tokens], the word that each token belongs to; a punctuation mark is a word by itself."""
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
        flags = np.stack([np.repeat(sizes, sizes) > 1, number, capital], axis=1)
        # A token in another word, at another place of it, or with another flag is another token:
        # what is said of it must not depend on which other texts are read along with it.
        packed = flags @ np.array([1, 2, 4])
        kind = (rows.astype(np.uint64) * np.uint64(8) + packed.astype(np.uint64)) + np.uint64(1)
        identity = spelled ^ (kind * _MIX)
        _, first, tokens = np.unique(identity, return_index=True, return_inverse=True)
        return WordTokens(
            texts=np.split(tokens, cuts[1:]),
            vectors=unit_rows(self.vectors.table[rows[first]]),
            spelling=spelled[first],
            idf=self.idf[rows[first]],
            flags=flags[first].astype(np.float32),
        )


@dataclass(frozen=True, eq=False)
class _Vocabulary:
    """What the spelling of each token shows, [tokens] each.

    Attributes:
        letters: A hash of the letters of the token, without case. The hash of a word is composed
            of those of its tokens, however it is divided (`spell`).
        length: The number of letters.
        starts: Whether a word starts with the token.
        number: Whether it contains a digit.
        capital: Whether it begins with a capital letter.
        punctuation: Whether it contains neither a letter nor a digit.
    """

    letters: NDArray[np.uint64]
    length: NDArray[np.int64]
    starts: NDArray[np.bool_]
    number: NDArray[np.bool_]
    capital: NDArray[np.bool_]
    punctuation: NDArray[np.bool_]

    @classmethod
    def of(cls, pieces: Sequence[str]) -> _Vocabulary:
        """From the tokens as the tokenizer writes them."""
        bare = [_text_of(piece) for piece in pieces]
        folded = [text.lower() for text in bare]
        return cls(
            letters=_hashed(folded),
            length=np.fromiter(map(len, folded), np.int64, len(folded)),
            starts=_flags(piece.startswith(_WORD_START) for piece in pieces),
            number=_flags(any(map(str.isdigit, text)) for text in bare),
            capital=_flags(text[:1].isupper() for text in bare),
            punctuation=_flags(not any(map(str.isalnum, text)) for text in bare),
        )

    def spell(self, rows: NDArray[np.int64], begins: NDArray[np.int64]) -> NDArray[np.uint64]:
        """[words], one number for the letters of each word.

        "Opened" is divided into other tokens than "opened": the tokens differ, the letters do not.

        Args:
            rows: The tokens of all words.
            begins: The position of the first token of each word.
        """
        lengths = self.length[rows]
        before = np.cumsum(lengths) - lengths
        sizes = np.diff(np.append(begins, len(rows)))
        inside = np.minimum(before - np.repeat(before[begins], sizes), _LONGEST_WORD)
        return np.add.reduceat(self.letters[rows] * _POWERS[inside], begins)


def _text_of(piece: str) -> str:
    """What a token stands for in a text, without the space before it."""
    if piece in _SPECIAL:
        return ""
    byte = _BYTE.fullmatch(piece)
    if byte is None:
        return piece.removeprefix(_WORD_START)
    # A single byte: below 128 it is a character, for example a line break; above, it is a part of
    # a character that the vocabulary lacks, and some letter stands in for it.
    code = int(byte[1], 16)
    return chr(code) if code < 128 else chr(0x4E00 + code)


def _powers() -> NDArray[np.uint64]:
    bases = np.full(_LONGEST_WORD + 1, _BASE, np.uint64)
    bases[0] = 1
    return np.cumprod(bases, dtype=np.uint64)


_POWERS = _powers()


def _hashed(texts: Sequence[str]) -> NDArray[np.uint64]:
    """[texts], Σ letter · baseⁱ: the hash of two joined texts is a sum, the second one shifted."""
    padded = np.array(texts)
    codes = padded.view(np.uint32).reshape(len(texts), -1).astype(np.uint64)
    mixed = (codes + np.uint64(0x51ED27)) * codes  # 0 for padding, far apart otherwise
    return (mixed * _POWERS[: codes.shape[1]]).sum(axis=1, dtype=np.uint64)


def _flags(values: Iterable[bool]) -> NDArray[np.bool_]:
    return np.fromiter(values, dtype=np.bool_)
