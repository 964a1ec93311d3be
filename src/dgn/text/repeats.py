"""When does a passage repeat another one? When both have the same words and the same signs.

A passage that repeats another one is never selected, so that two texts must not count as the same
because of what sets them apart: "p > 0.05" and "p < 0.05", $5 and €5, C++ and C#, −5 and 5.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dgn.text.spelling import normalized
from dgn.text.words import word_pattern

_LONGEST_REMEMBERED = 64
_MARKS = re.compile(r"[^\w\s]+")
_ORDINARY = frozenset(".,;:!?'\"()[]{}…«»“”„‚‹›•‣◦·▪*_`¿¡。、，；：！？「」『』（）【】《》‐‑‒–—―-")
"""Punctuation that does not change what a text says."""

_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
_AROUND = "'\"()[]{}.,;:?…«»“”"


def same_text_key(text: str) -> tuple[str, ...]:
    """Equal for texts that differ in case, ordinary punctuation, spaces or spelling alone.

    A text without words and signs is equal to itself alone.

    Examples:
        >>> same_text_key("The ship sank!") == same_text_key("the SHIP sank")
        True
        >>> same_text_key("p > 0.05") == same_text_key("p < 0.05")
        False
    """
    pieces = normalized(text).split()
    return tuple(token for piece in pieces for token in _tokens_of(piece)) or (text,)


def letters_of(text: str) -> tuple[int, ...]:
    """How often some letters are in a text: equal for texts with an equal `same_text_key`."""
    text = normalized(text).casefold()
    return text.count("i"), text.count("o"), text.count("s"), text.count("a"), text.count("1")


def _tokens_of(piece: str) -> tuple[str, ...]:
    """The words and signs of a text without spaces; most pieces were met before."""
    return _remembered(piece) if len(piece) <= _LONGEST_REMEMBERED else _tokens(piece)


def _tokens(piece: str) -> tuple[str, ...]:
    tokens: list[str] = []
    end = 0
    for match in word_pattern(piece).finditer(piece):
        tokens += _signs(piece, end, match.start())
        tokens.append(match.group().casefold())
        end = match.end()
    return (*tokens, *_signs(piece, end, len(piece)))


_remembered = lru_cache(maxsize=2**17)(_tokens)


def _signs(piece: str, start: int, end: int) -> list[str]:
    """The signs between two words; between digits, every mark is a sign."""
    if start == end:
        return []
    is_inside = piece[start - 1 : start].isdigit() and piece[end : end + 1].isdigit()
    found: list[str] = []
    for run in _MARKS.findall(piece[start:end]):
        if is_inside or not _ORDINARY.issuperset(run):
            sign = run.translate(_DASHES)
            found.append(sign.strip(_AROUND) or sign)
    return found
