"""The sentences of a text, with their positions in it.

Prose is split into sentences. Markdown, and what people paste from elsewhere, is cut where a reader
would cut it: a row of a table, an item of a list and a block of code stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

LONGEST_SENTENCE = 2_000
"""A longer sentence, or block of code, is cut: no reader and no model can use it as a whole."""

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

_SENTENCE_CUTS = (
    re.compile(r".*[.!?。！？][\"”’')\]]*(?:\s|(?<=[。！？]))", re.DOTALL),
    re.compile(r".*\n", re.DOTALL),
    re.compile(r".*(?:[;:]\s|[；：])", re.DOTALL),
    re.compile(r".*(?:,\s|[，、])", re.DOTALL),
    re.compile(r".*\s", re.DOTALL),
)
_CODE_CUTS = (re.compile(r".*\n[ \t]*\n", re.DOTALL), re.compile(r".*\n", re.DOTALL))
"""Where something too long is cut, the best first; never within a word, if it has spaces."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_BULLET = re.compile(r"[ \t]*[-*+•‣◦–][ \t]{1,8}(?=\S)")
_NUMBER = re.compile(r"[ \t]*(?:\d{1,3}[.)]|[a-z]\))[ \t]{1,8}(?=\S)")
_FENCE = re.compile(r"[ \t]{0,3}(```+|~~~+)(.*)")
_DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_RULE = re.compile(r"[-=*_~+|: \t]*[-=*_~]{3}[-=*_~+|: \t]*")
_MAY_HAVE_BLOCKS = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]|[-*+•‣◦–][ \t]|\d{1,3}[.)][ \t]|[a-z]\)[ \t]|```|~~~|\||[-=*_~]{3})"
    r"|\S\t+\S|^[ \t]*:?-+:?[ \t]*\|",
    re.MULTILINE,
)
"""What a text has that is more than prose; most have nothing of it, and this is far cheaper."""

_SHORTEST_PIECE = LONGEST_SENTENCE // 4
_SPACE = re.compile(r"\s")
_INNER_TAB = re.compile(r"(?<=\S)\t+(?=\S)")

_Kind: TypeAlias = Literal["prose", "blank", "heading", "item", "row", "code", "rule"]


class SentenceSpan(NamedTuple):
    """A sentence and its position: text[start:end]."""

    text: str
    start: int
    end: int


class _Block(NamedTuple):
    """A part of a text that is cut in its own way: text[start:end].

    Attributes:
        kind: What it is.
        start: Where it begins.
        content: Where its content begins, after the sign of an item.
        end: Where it ends.
    """

    kind: _Kind
    start: int
    content: int
    end: int


def split_sentences(text: str, language: str = "en") -> list[SentenceSpan]:
    """Split a text into sentences, without the white space around them; blank ones are dropped.

    The work is done by sentencex of the Wikimedia Foundation, which knows the abbreviations of
    some 300 languages and the full stops of Chinese and Japanese. An empty line also ends a
    sentence. The time is linear in the length of the text, whatever it contains.

    In Markdown and the like, a row of a table and a fenced block of code are one sentence each, and
    an item of a list begins a new one. A heading belongs to the sentence after it. What is longer
    than 2,000 characters is cut: code at empty lines and lines, sentences at punctuation and
    spaces.

    Examples:
        >>> [span.text for span in split_sentences("Dr. Moreau paints. Really?")]
        ['Dr. Moreau paints.', 'Really?']
    """
    # Replaced one for one, so that positions stay: sentencex fails on some rare kinds of space.
    plain = _RARE_SPACES.sub(" ", text)
    if not _MAY_HAVE_BLOCKS.search(plain):
        return _sentences(text, plain, 0, len(plain), language)
    spans: list[SentenceSpan] = []
    heading: int | None = None
    for block in _blocks(plain):
        if block.kind == "heading":
            heading = block.start if heading is None else heading
            continue
        own = _spans_of(block, text, plain, language)
        if own and heading is not None:
            own = _with_heading(text, heading, own)
            heading = None
        spans += own
    if heading is not None:
        spans += _pieces(text, heading, len(text), _SENTENCE_CUTS)
    # A text of nothing but signs is not lost.
    return spans or _sentences(text, plain, 0, len(plain), language)


def _with_heading(text: str, start: int, spans: list[SentenceSpan]) -> list[SentenceSpan]:
    """The first sentence with the heading before it, unless both together are too long."""
    first = spans[0]
    if first.end - start > LONGEST_SENTENCE:
        return [*_pieces(text, start, first.start, _SENTENCE_CUTS), *spans]
    return [SentenceSpan(text[start : first.end], start, first.end), *spans[1:]]


def _spans_of(block: _Block, text: str, plain: str, language: str) -> list[SentenceSpan]:
    """The sentences of a block."""
    if block.kind == "rule":
        return []
    if block.kind in ("row", "code"):
        cuts = _CODE_CUTS if block.kind == "code" else ()
        return _pieces(text, block.start, block.end, (*cuts, *_SENTENCE_CUTS))
    if plain[block.content : block.end].isspace():
        return []
    spans = _sentences(text, plain, block.content, block.end, language)
    if spans and block.kind == "item":  # its sign belongs to its first sentence
        start, end = _inner(text, block.start, spans[0].end)
        spans[0] = SentenceSpan(text[start:end], start, end)
    return spans


def _sentences(text: str, plain: str, start: int, end: int, language: str) -> list[SentenceSpan]:
    """The sentences of text[start:end]; `plain` is the text without rare kinds of space."""
    import sentencex

    spans: list[SentenceSpan] = []
    index = start
    for part in _parts(plain[start:end]):
        segments: list[str] = list(cast("Any", sentencex).segment(language, part))
        for segment in segments:
            sentence = segment.strip()
            # Found rather than counted: nothing that the splitter drops can shift what follows.
            begin = plain.index(sentence, index)
            index = begin + len(sentence)
            spans += _paragraphs(text, begin, index)
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
        spans += _pieces(text, start, start + len(part), _SENTENCE_CUTS)
        start += len(part) + 2
    return spans


def _pieces(text: str, start: int, end: int, cuts: Sequence[re.Pattern[str]]) -> list[SentenceSpan]:
    """text[start:end] without the white space around it, cut into parts that are not too long."""
    start, end = _inner(text, start, end)
    spans: list[SentenceSpan] = []
    while end - start > LONGEST_SENTENCE:
        cut = _cut(text, start, end, cuts)
        spans += (
            _pieces(text, start, cut, cuts)
            if cut - start <= LONGEST_SENTENCE
            else [SentenceSpan(text[start:cut], start, cut)]
        )
        start, end = _inner(text, cut, end)
    return [*spans, SentenceSpan(text[start:end], start, end)] if end > start else spans


def _cut(text: str, start: int, end: int, cuts: Sequence[re.Pattern[str]]) -> int:
    """Where to cut text[start:end], which is too long."""
    window = text[start : start + LONGEST_SENTENCE]
    for pattern in cuts:
        found = pattern.match(window)
        if found is not None and found.end() > _SHORTEST_PIECE:
            return start + found.end()
    # A word without an end, such as encoded data, stays whole; a language without spaces is cut.
    space = _SPACE.search(text, start, end) if window.isascii() else None
    return start + len(window) if not window.isascii() else space.start() if space else end


def _inner(text: str, start: int, end: int) -> tuple[int, int]:
    """The positions of text[start:end] without the white space around it."""
    part = text[start:end]
    start += len(part) - len(part.lstrip())
    return start, max(start, start + len(part.strip()))


def _blocks(text: str) -> list[_Block]:
    """The blocks of a text, in order."""
    lines = [match.span() for match in _LINE.finditer(text)]
    closing = _closing_fences(text, lines)
    blocks: list[_Block] = []
    before: _Kind = "blank"
    is_table = False
    number = 0
    while number < len(lines):
        start, end = lines[number]
        line = text[start:end]
        content = start
        following = text[slice(*lines[number + 1])] if number + 1 < len(lines) else ""
        is_table = "|" in line and (is_table or _is_delimiter(following))
        kind: _Kind = "prose"
        if not line.strip():
            kind = "blank"
        elif number in closing:
            kind, number = "code", closing[number]
            end = lines[number][1]
        elif _RULE.fullmatch(line.rstrip()) or _is_delimiter(line):
            kind = "rule"
        elif _HEADING.match(line):
            kind = "heading"
        elif is_table or _is_row(line, following, before):
            kind = "row"
        elif (sign := _BULLET.match(line)) or (
            (sign := _NUMBER.match(line)) and _may_begin_list(before, text, start)
        ):
            kind, content = "item", start + sign.end()
        if blocks and _continues(kind, before, blocks[-1].kind):
            blocks[-1] = blocks[-1]._replace(end=end)
        else:
            blocks.append(_Block("prose" if kind == "blank" else kind, start, content, end))
        before = kind
        number += 1
    return blocks


def _continues(kind: _Kind, before: _Kind, block: _Kind) -> bool:
    """Whether a line belongs to the block of the line before it."""
    if block == "prose":
        return kind in ("prose", "blank")
    return block == "item" and kind == "prose" and before != "blank"


def _closing_fences(text: str, lines: Sequence[tuple[int, int]]) -> dict[int, int]:
    """For each line that opens a block of code, the line that closes it."""
    fences = [
        (n, found)
        for n, (start, end) in enumerate(lines)
        if (found := _FENCE.match(text, start, end))
    ]
    closing: dict[int, int] = {}
    last: dict[str, int] = {}
    for number, found in reversed(fences):
        sign = found.group(1)[0]
        if sign in last:
            closing[number] = last[sign]
        if not found.group(2).strip():
            last[sign] = number
    return closing


def _is_delimiter(line: str) -> bool:
    """Whether a line divides the head of a table from its rows: |---|:--:|"""
    return "|" in line and _DELIMITER.fullmatch(line.strip()) is not None


def _is_row(line: str, following: str, before: _Kind) -> bool:
    """Whether a line is a row: between bars, or with as many tabs as a line next to it."""
    stripped = line.strip()
    if stripped.startswith("|") and stripped.count("|") > 1:
        return True
    tabs = len(_INNER_TAB.findall(line))
    return tabs > 0 and (before == "row" or len(_INNER_TAB.findall(following)) == tabs)


def _may_begin_list(before: _Kind, text: str, start: int) -> bool:
    """Whether a number may begin an item here; within prose, it may end a sentence."""
    return before != "prose" or text[max(0, start - 80) : start].rstrip().endswith(":")
