"""Spellings that make no difference: one form for every text.

Curly and straight apostrophes, invisible characters, HTML entities, brackets of the Penn Treebank
and the forms of Unicode are spellings of the same text. Exponents and fractions are not: 10² never
becomes 102, and 5½ never becomes 51.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache

_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}
_SPELLED_OUT = re.compile("|".join(_BRACKETS))
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_APOSTROPHES = "\u2018\u2019\u02bc\uff07"
_SPECIAL = str.maketrans(dict.fromkeys(_INVISIBLE) | dict.fromkeys(_APOSTROPHES, "'"))
_HAS_SPECIAL = re.compile(f"[{_INVISIBLE}{_APOSTROPHES}]")
_MINUS = re.compile(r"(?<![\w)])[−–‐‑‒―](?=\.?\d)")
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-", strict=True))
_EXPONENT = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_FRACTION = re.compile(r"(\d?)([¼½¾⅐-⅞])")
_MOST_MARKS = 30
"""Combining marks in a row, as UAX #15 limits them: normalization sorts each run of marks, which
takes quadratic time."""

_MAY_BE_MARKS = re.compile(
    "[\u0300-\u1dff\u20d0-\u20ff\u2ce0-\u30ff\ua600-\uabff\ufb10-\ufe2f\U00010100-\U0001eaff]"
    f"{{{_MOST_MARKS + 1}}}"
)
_LONGEST_UNIT = 3
"""A raised number after a longer word, as in "the treaty²", is the mark of a footnote."""


def clean_brackets(text: str) -> str:
    """The text with real brackets in place of `-LRB-` and the like."""
    if "B-" not in text:  # most sentences have none, and this test is far cheaper
        return text
    return _SPELLED_OUT.sub(lambda match: _BRACKETS[match.group()], text)


def title_text(title: str) -> str:
    """A page title as text: FEVER writes `Ripon_College_-LRB-Wisconsin-RRB-`."""
    return clean_brackets(title.replace("_", " "))


def normalized(text: str) -> str:
    """The text in one spelling.

    Examples:
        >>> normalized("It&rsquo;s 10² km, or 5½ miles")
        "It's 10^2 km, or 5.5 miles"
    """
    text = clean_brackets(text)
    if "&" in text and ";" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match.group()), text)
    if text.isascii():
        return text
    if _HAS_SPECIAL.search(text):
        text = text.translate(_SPECIAL)
    text = _MINUS.sub("-", text)
    text = _EXPONENT.sub(_exponent, text)
    text = _FRACTION.sub(_fraction, text)
    if _MAY_BE_MARKS.search(text):
        text = _stream_safe(text)
    return unicodedata.normalize("NFKC", text)


def _stream_safe(text: str) -> str:
    """The text in UAX #15's stream-safe form: a joiner that is no mark after each 30 marks."""
    return _run_of_marks().sub(lambda match: f"{match.group()}\u034f", text)


@cache
def _run_of_marks() -> re.Pattern[str]:
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x1F000))))
    return re.compile(f"[{marks}]{{{_MOST_MARKS}}}")


def _exponent(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - _LONGEST_UNIT - 1) : match.start()]
    if len(before) > _LONGEST_UNIT and before.isalpha():
        return ""
    raised = "".join(_SUPERSCRIPTS[digit] for digit in match.group())
    return f"^{raised}" if match.start() else raised


def _fraction(match: re.Match[str]) -> str:
    before, fraction = match.groups()
    value = unicodedata.numeric(fraction)
    if value * 8 == int(value * 8):  # it has a short decimal form
        return before + f"{value:g}"[1:] if before else f"{value:g}"
    return f"{before} {fraction}" if before else fraction
