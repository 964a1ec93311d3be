"""Sentences of a raw text, with their places in it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, cast

from dgn.errors import require_extra

_RARE_SPACES = re.compile(r"[^\S \n\r\t]")


class SentenceSpan(NamedTuple):
    """A sentence, and where it stands: text[start:end]."""

    text: str
    start: int
    end: int


def split_sentences(text: str, language: str = "en") -> list[SentenceSpan]:
    """The sentences of a text, without the white space around them; blank ones are left out.

    By sentencex, of the Wikimedia Foundation, which knows abbreviations of some 300 languages. A
    line break between paragraphs ends a sentence too.
    """
    require_extra("sentence splitting", package="sentencex", extra="text")
    import sentencex

    # One for one, so that the places stay: sentencex gives up on some of the rarer kinds of space.
    plain = _RARE_SPACES.sub(" ", text)
    segments: list[str] = list(cast("Any", sentencex).segment(language, plain))
    spans: list[SentenceSpan] = []
    place = 0
    for segment in segments:
        sentence = segment.strip()
        # Found rather than counted: nothing the splitter drops can shift what follows.
        start = plain.index(sentence, place)
        place = start + len(sentence)
        spans += _lines(text, start, place)
    return spans


def _lines(text: str, start: int, end: int) -> list[SentenceSpan]:
    """The parts of text[start:end] that an empty line separates."""
    spans: list[SentenceSpan] = []
    for part in text[start:end].split("\n\n"):
        inner = part.strip()
        if inner:
            begin = text.index(inner, start)
            spans.append(SentenceSpan(inner, begin, begin + len(inner)))
            start = begin + len(inner)
    return spans
