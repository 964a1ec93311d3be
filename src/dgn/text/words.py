"""What is one word, and when are two words the same?

Words are compared without case and in one Unicode form, and a number is one word, so that 1901
never resembles 1907.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}
_SPELLED_OUT = re.compile("|".join(_BRACKETS))
FUNCTION_WORDS = frozenset(
    """
    a about above after again against all also although am an and another any are as at be because
    been before being below between both but by can could did do does doing during each either few
    for from further had has have having he her here hers herself him himself his how i if in into
    is it its itself just many may me might more most much must my myself neither no nor not of off
    on once only or other our ours ourselves out over own same shall she should since so some such
    than that the their theirs them themselves then there these they this those though through to
    too under until up upon us very was we were what when where whether which while who whom whose
    why will with within without would yet you your yours yourself yourselves
    """.split()  # noqa: SIM905
)
"""English words without content of their own; they weigh little."""

QUESTION_WORDS = frozenset({"who", "whom", "whose", "what", "which", "when", "where", "why", "how"})
"""They say what is asked for; a passage that contains them does not answer it."""

ARTICLES = frozenset({"a", "an", "the"})

_SPELLED_WORD = re.compile(r"\w+(?:['’.\-]\w+)*")
_WORD_OR_MARK = re.compile(rf"{_SPELLED_WORD.pattern}|[^\w\s]")

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|\w")
_POSSESSIVE = ("'s", "’s")
_LONGEST_WORD = 64
_LONGEST_REMEMBERED = 64


def clean_brackets(text: str) -> str:
    """The text with real brackets in place of `-LRB-` and the like."""
    if "B-" not in text:  # most sentences have none, and this test is far cheaper
        return text
    return _SPELLED_OUT.sub(lambda match: _BRACKETS[match.group()], text)


def split_words(text: str) -> list[str]:
    """The words of a text, in order; "it's", "U.S" and "twenty-one" stay whole.

    Punctuation is left out: its vectors are the same in every sentence, and including them in a
    mean costs five points of recall at 1 on FEVER (.508 instead of .558, cosine of pooled 300-d
    vectors, dev).

    Examples:
        >>> split_words("Sikkim -LRB- India -RRB- isn't in the U.S., is it?")
        ['Sikkim', 'India', "isn't", 'in', 'the', 'U.S', 'is', 'it']
    """
    return _SPELLED_WORD.findall(clean_brackets(text))


def split_tokens(text: str) -> list[str]:
    """The words and the punctuation marks of a text, in order.

    Examples:
        >>> split_tokens("It isn't -LRB- yet -RRB- .")
        ['It', "isn't", '(', 'yet', ')', '.']
    """
    return _WORD_OR_MARK.findall(clean_brackets(text))


def has_words(text: str) -> bool:
    """Whether a text contains anything but punctuation."""
    return any(map(str.isalnum, text))


def title_text(title: str) -> str:
    """A page title as text: FEVER writes `Ripon_College_-LRB-Wisconsin-RRB-`."""
    return clean_brackets(title.replace("_", " "))


def normalized(text: str) -> str:
    """The text with real brackets and in one Unicode form."""
    text = clean_brackets(text)
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def written_words(text: str) -> list[str]:
    """The words of a text as they are written, in the order in which `WordReader` reads them."""
    return [word for piece in normalized(text).split() for word in _words_of(piece)]


def word_spans(normal: str) -> list[tuple[int, int]]:
    """Where the words of a normalized text begin and end."""
    return [match.span() for match in _WORD.finditer(normal)]


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """The stem of a word: "ships" and "shipping" have that of "ship"; numbers stay as they are."""
    word = word.lower()
    if word[0].isdigit():
        return word.replace(",", "")
    for ending in _POSSESSIVE:
        word = word.removesuffix(ending)
    return _stemmer().stem(word)


def stems_of(text: str) -> frozenset[str]:
    """The stems of all words of a text."""
    return frozenset(map(stem, written_words(text)))


def same_text_key(text: str) -> tuple[str, ...]:
    """Equal for texts that differ in case, punctuation, spaces, Unicode form or articles alone.

    A text without words is equal to itself alone.
    """
    pieces = normalized(text).split()
    return tuple(itertools.chain.from_iterable(map(_key_of, pieces))) or (text,)


def letters_of(text: str) -> tuple[int, ...]:
    """How often some letters are in a text: equal for texts with an equal `same_text_key`.

    None of these letters is in an article. Of words that are longer than any word, `same_text_key`
    knows the beginning only; texts that differ after it are told apart here.
    """
    text = normalized(text).lower()
    return text.count("i"), text.count("o"), text.count("s"), text.count("d"), text.count("1")


def _words_of(piece: str) -> tuple[str, ...]:
    """The words of a text without spaces; most pieces were met before."""
    return _remembered_words(piece) if len(piece) <= _LONGEST_REMEMBERED else split_piece(piece)


def _key_of(piece: str) -> tuple[str, ...]:
    """The same in lower case, without articles."""
    return _remembered_key(piece) if len(piece) <= _LONGEST_REMEMBERED else _key(piece)


def split_piece(piece: str) -> tuple[str, ...]:
    """The words of a text without spaces."""
    return tuple(match.group()[:_LONGEST_WORD] for match in _WORD.finditer(piece))


def _key(piece: str) -> tuple[str, ...]:
    words = (word.lower() for word in split_piece(piece))
    return tuple(word for word in words if word not in ARTICLES)


_remembered_words = lru_cache(maxsize=2**17)(split_piece)
_remembered_key = lru_cache(maxsize=2**17)(_key)


class _Stemmer(threading.local):
    """Snowball's English stemmer; one for each thread, because it must not be shared."""

    def __init__(self) -> None:
        import Stemmer

        module: Any = Stemmer
        self.stem: Callable[[str], str] = module.Stemmer("english").stemWord


@cache
def _stemmer() -> _Stemmer:
    return _Stemmer()
