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
_DASH = " - "
"""Stands for a dash by itself; no word or sign contains a space."""

_EXPONENT = re.compile(r"\d[eE]$")
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
    tokens = [token for piece in pieces for token in _tokens_of(piece)]
    if _DASH in tokens:
        # A dash by itself is an ordinary mark, unless it is a minus between two numbers.
        tokens = [
            token
            for place, token in enumerate(tokens)
            if token != _DASH or _is_between_numbers(tokens, place)
        ]
    return tuple(tokens) or (text,)


def letters_of(text: str) -> tuple[int, ...]:
    """How often some letters are in a text: equal for texts with an equal `same_text_key`."""
    text = normalized(text).casefold()
    return text.count("i"), text.count("o"), text.count("s"), text.count("a"), text.count("1")


def _tokens_of(piece: str) -> tuple[str, ...]:
    """The words and signs of a text without spaces; most pieces were met before."""
    return _remembered(piece) if len(piece) <= _LONGEST_REMEMBERED else _tokens(piece)


def _is_between_numbers(tokens: list[str], place: int) -> bool:
    around = (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2])
    return len(around) == 2 and around[0][-1].isdigit() and around[1][:1].isdigit()


def _tokens(piece: str) -> tuple[str, ...]:
    if piece.translate(_DASHES) == "-":
        return (_DASH,)
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
    # The sign of an exponent, 5e-8, and the marks of feet and inches, 5' and 5".
    is_inside = is_inside or _EXPONENT.search(piece, 0, start) is not None
    if piece[start - 1 : start].isdigit() and piece[start] in "'\"" and piece[0] != piece[start]:
        return [piece[start:end]]
    found: list[str] = []
    for run in _MARKS.findall(piece[start:end]):
        if is_inside or not _ORDINARY.issuperset(run):
            sign = run.translate(_DASHES)
            found.append(sign.strip(_AROUND) or sign)
    return found
