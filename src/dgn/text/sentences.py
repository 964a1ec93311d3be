"""The sentences of a text, with their positions in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

_RARE_SPACES = re.compile(r"[^\S \n\r\t]")
_LONGEST_PART = 4_000
"""The time of sentencex is quadratic in the quotation marks of a text, so that it gets parts."""

_PART_ENDS = (
    re.compile(r".*\n\s*\n", re.DOTALL),
    re.compile(r".*[\w)\]]{3}[.!?][\"”’')\]]*\s", re.DOTALL),
    re.compile(r".*[。！？]", re.DOTALL),
    re.compile(r".*\s", re.DOTALL),
)
"""Where a part may end, the best first: at an empty line, a sentence, a space."""


class SentenceSpan(NamedTuple):
    """A sentence and its position: text[start:end]."""

    text: str
    start: int
    end: int


def split_sentences(text: str, language: str = "en") -> list[SentenceSpan]:
    """Split a text into sentences, without the white space around them; blank ones are dropped.

    The work is done by sentencex of the Wikimedia Foundation, which knows the abbreviations of
    some 300 languages and the full stops of Chinese and Japanese. An empty line also ends a
    sentence. The time is linear in the length of the text, whatever it contains.
    """
    import sentencex

    # Replaced one for one, so that positions stay: sentencex fails on some rare kinds of space.
    plain = _RARE_SPACES.sub(" ", text)
    spans: list[SentenceSpan] = []
    index = 0
    for part in _parts(plain):
        segments: list[str] = list(cast("Any", sentencex).segment(language, part))
        for segment in segments:
            sentence = segment.strip()
            # Found rather than counted: nothing that the splitter drops can shift what follows.
            start = plain.index(sentence, index)
            index = start + len(sentence)
            spans += _paragraphs(text, start, index)
    return spans


def _parts(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _LONGEST_PART:
        window = text[start : start + _LONGEST_PART]
        ends = (pattern.match(window) for pattern in _PART_ENDS)
        end = next((found.end() for found in ends if found is not None), len(window))
        yield window[:end]
        start += end
    yield text[start:]


def _paragraphs(text: str, start: int, end: int) -> list[SentenceSpan]:
    """The parts of text[start:end] that an empty line separates."""
    spans: list[SentenceSpan] = []
    for part in text[start:end].split("\n\n"):
        inner = part.strip()
        if inner:
            begin = text.index(inner, start)
            spans.append(SentenceSpan(inner, begin, begin + len(inner)))
            start = begin + len(inner)
    return spans
