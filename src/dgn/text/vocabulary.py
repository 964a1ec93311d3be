"""What can be seen of a token from its spelling alone: case, digits, where a word begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WORD_START = "▁"
"""How sentencepiece writes the space before a word."""

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_MARKS = {"<s>", "</s>", "<unk>"}
_BASE = 0x9E3779B97F4A7C15
_LONGEST_WORD = 4096


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of a table, [tokens] each.

    letters: a hash of the token's letters, whatever their case; length: how many there are. The
    hash of a word is put together from those of its tokens, wherever it is cut (`spell`).
    starts: whether a word starts here. number: has a digit. capital: begins with one.
    punctuation: has neither letter nor digit.
    """

    letters: NDArray[np.uint64]
    length: NDArray[np.int64]
    starts: NDArray[np.bool_]
    number: NDArray[np.bool_]
    capital: NDArray[np.bool_]
    punctuation: NDArray[np.bool_]

    @classmethod
    def of(cls, pieces: Sequence[str]) -> Vocabulary:
        """From the tokens as the tokenizer writes them."""
        bare = [_written(piece) for piece in pieces]
        folded = [text.lower() for text in bare]
        return cls(
            letters=_hashed(folded),
            length=np.fromiter(map(len, folded), np.int64, len(folded)),
            starts=_flags(piece.startswith(WORD_START) for piece in pieces),
            number=_flags(any(map(str.isdigit, text)) for text in bare),
            capital=_flags(text[:1].isupper() for text in bare),
            punctuation=_flags(not any(map(str.isalnum, text)) for text in bare),
        )

    def spell(self, rows: NDArray[np.int64], begins: NDArray[np.int64]) -> NDArray[np.uint64]:
        """[words], one number for the letters of each word; begins: where its tokens begin.

        "Opened" is cut into other tokens than "opened": the tokens differ, the letters do not.
        """
        lengths = self.length[rows]
        before = np.cumsum(lengths) - lengths
        sizes = np.diff(np.append(begins, len(rows)))
        inside = np.minimum(before - np.repeat(before[begins], sizes), _LONGEST_WORD)
        return np.add.reduceat(self.letters[rows] * _POWERS[inside], begins)


def _written(piece: str) -> str:
    """What a token stands for in a text, without the space before it."""
    if piece in _MARKS:
        return ""
    byte = _BYTE.fullmatch(piece)
    if byte is None:
        return piece.removeprefix(WORD_START)
    # A byte by itself: below 128 it is a character, a line break say; above, a part of a letter
    # or sign that the vocabulary lacks, for which some letter stands in.
    code = int(byte[1], 16)
    return chr(code) if code < 128 else chr(0x4E00 + code)


def _powers() -> NDArray[np.uint64]:
    bases = np.full(_LONGEST_WORD + 1, _BASE, np.uint64)
    bases[0] = 1
    return np.cumprod(bases, dtype=np.uint64)


_POWERS = _powers()


def _hashed(texts: Sequence[str]) -> NDArray[np.uint64]:
    """[texts], Σ letter · baseⁱ: of two texts in a row it is the one plus the other, shifted."""
    padded = np.array(texts)
    codes = padded.view(np.uint32).reshape(len(texts), -1).astype(np.uint64)
    mixed = (codes + np.uint64(0x51ED27)) * codes  # 0 for padding, far apart for the rest
    return (mixed * _POWERS[: codes.shape[1]]).sum(axis=1, dtype=np.uint64)


def _flags(values: Iterable[bool]) -> NDArray[np.bool_]:
    return np.fromiter(values, dtype=np.bool_)
