"""What can be seen of a token from its spelling alone: case, digits, where a word begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WORD_START = "▁"
"""How sentencepiece writes the space before a word."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of a table, [tokens] each.

    folded: tokens that differ in case alone, or in standing at a word's start, share a number.
    starts: whether a word starts here. number: has a digit. capital: begins with one.
    punctuation: has neither letter nor digit.
    """

    folded: NDArray[np.int64]
    starts: NDArray[np.bool_]
    number: NDArray[np.bool_]
    capital: NDArray[np.bool_]
    punctuation: NDArray[np.bool_]

    @classmethod
    def of(cls, pieces: Sequence[str]) -> Vocabulary:
        """From the tokens as the tokenizer writes them."""
        bare = [piece.removeprefix(WORD_START) for piece in pieces]
        numbers: dict[str, int] = {}
        folded = [numbers.setdefault(text.lower(), len(numbers)) for text in bare]
        return cls(
            folded=np.array(folded, dtype=np.int64),
            starts=_flags(piece.startswith(WORD_START) for piece in pieces),
            number=_flags(any(map(str.isdigit, text)) for text in bare),
            capital=_flags(text[:1].isupper() for text in bare),
            punctuation=_flags(not any(map(str.isalnum, text)) for text in bare),
        )


def _flags(values: Iterable[bool]) -> NDArray[np.bool_]:
    return np.fromiter(values, dtype=np.bool_)
