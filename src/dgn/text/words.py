"""What is one word, and when are two words the same? In English; `languages` has the others.

Words are compared without case. A number is one word, so that 1901 never resembles 1907, and it is
the same as another one if both have the same value.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from dgn.text.spelling import clean_brackets, normalized

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

_SPELLED_WORD = re.compile(r"\w+(?:['’.\-]\w+)*")
_WORD_OR_MARK = re.compile(rf"{_SPELLED_WORD.pattern}|[^\w\s]")

_NUMBER = r"(?:(?<![\w)])-)?(?:(?<![\w.])\.)?\d+(?:[.,]\d+)*(?:\^[+-]?\d+)?"
LONGEST_WORD = 64
_BLOCKS_WITH_MARKS = (
    (0x300, 0x1E00),
    (0x20D0, 0x2100),
    (0x2CE0, 0x2E00),
    (0x3020, 0x30A0),
    (0xA660, 0xAC00),
    (0xFB10, 0xFE30),
    (0x10100, 0x12000),
    (0x16A00, 0x17000),
    (0x1BC00, 0x1BD00),
    (0x1CF00, 0x1D300),
    (0x1DA00, 0x1EA00),
)
"""Where Unicode has combining marks; to look at every character would take 0.1 s."""

_MAY_HAVE_MARKS = re.compile(
    f"[{''.join(f'{chr(first)}-{chr(end - 1)}' for first, end in _BLOCKS_WITH_MARKS)}]"
)

_YEAR = re.compile(r"1\d{3}|20\d{2}")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GROUPED_BY_DOTS = re.compile(r"-?\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?")
_DECIMAL = re.compile(r"-?\d*\.?\d+")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_POWER = re.compile(r"(\d{1,4})\^\+?(\d{1,2})")
MARKS_AROUND = "'\"()[]{}.,;:!?"


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


def pieces_of(text: str) -> list[str]:
    """The parts of a text that spaces separate, in one spelling; no word spans a space."""
    return normalized(text).split()


def written_words(text: str) -> list[str]:
    """The words of a text as they are written, in order."""
    return [word for piece in pieces_of(text) for word in split_piece(piece)]


def read_words(text: str) -> list[str]:
    """The words of a text as they are compared, in the order of `written_words`.

    Examples:
        >>> read_words("The WHO sent 1500 doctors.")
        ['the', 'who', 'sent', '1500', 'doctors']
    """
    return [word.casefold() for word in written_words(text)]


def word_spans(normal: str) -> list[tuple[int, int]]:
    """Where the words of a normalized text begin and end."""
    return [match.span() for match in word_pattern(normal).finditer(normal)]


def split_piece(piece: str) -> tuple[str, ...]:
    """The words of a text without spaces, as they are written."""
    inner = piece.strip(MARKS_AROUND)
    if inner.isalpha():  # most of them, in a tenth of the time
        return (inner[:LONGEST_WORD],)
    found = word_pattern(piece).finditer(piece)
    return tuple(match.group()[:LONGEST_WORD] for match in found)


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """The stem of a word that `read_words` returned.

    "ships" and "shipping" have that of "ship". That of a number is its value.
    """
    if word[-1].isdigit():
        return value_of(word)
    return snowball("english").stem(word.removesuffix("'s"))


def stems_of(text: str) -> frozenset[str]:
    """The stems of all words of a text."""
    return frozenset(map(stem, read_words(text)))


def is_number(word: str) -> bool:
    """Whether a word is a number."""
    return word[0].isdigit() or (word[0] in "-." and word[-1].isdigit())


def is_year(word: str) -> bool:
    """Whether a word that `read_words` returned is a year."""
    return len(word) == 4 and _YEAR.fullmatch(word) is not None


def word_pattern(text: str) -> re.Pattern[str]:
    """The pattern of the words of this text."""
    is_plain = text.isascii() or not _MAY_HAVE_MARKS.search(text)
    return _PLAIN_WORD if is_plain else _word_with_marks()


def _compiled(marks: str) -> re.Pattern[str]:
    letters = rf"(?:[^\W\d_]{marks})+"
    return re.compile(rf"{_NUMBER}|{letters}(?:'{letters})*(?:\^[+-]?\d+)?|\w")


_PLAIN_WORD = _compiled("")


@cache
def _word_with_marks() -> re.Pattern[str]:
    """The same with combining marks: vowels of Hindi and Bengali, points of Arabic."""
    codes = [code for block in _BLOCKS_WITH_MARKS for code in range(*block)]
    kinds = map(unicodedata.category, map(chr, codes))
    marks = [code for code, kind in zip(codes, kinds, strict=True) if kind in ("Mn", "Mc")]
    # As ranges, which compile in a fraction of the time of single characters.
    runs = itertools.groupby(enumerate(marks), lambda one: one[1] - one[0])
    spans = [[code for _, code in run] for _, run in runs]
    return _compiled(f"[{''.join(f'{chr(span[0])}-{chr(span[-1])}' for span in spans)}]*")


def value_of(number: str) -> str:
    """The value of a number, in one spelling; a list such as 1,2,3 is what it is."""
    if not number.isascii():
        number = "".join(str(unicodedata.digit(c, c)) for c in number)
    text = number
    if power := _POWER.fullmatch(text):
        text = str(int(power[1]) ** int(power[2]))
    elif _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    elif _GROUPED_BY_DOTS.fullmatch(text):
        text = text.replace(".", "").replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    elif not _DECIMAL.fullmatch(text):
        return text
    whole, _, fraction = text.lstrip("-").partition(".")
    value = whole.lstrip("0") or "0"
    if fraction := fraction.rstrip("0"):
        value += f".{fraction}"
    if text.startswith("-") and value != "0":
        value = f"-{value}"
    # Only four digits as they stand may be a year.
    return f"{int(value):,}" if _YEAR.fullmatch(value) and value != number else value


class _Stemmer(threading.local):
    """A stemmer of Snowball; one for each thread, because it must not be shared."""

    def __init__(self, algorithm: str) -> None:
        import Stemmer

        module: Any = Stemmer
        # Its own cache takes three times as long as the stems.
        self.stem: Callable[[str], str] = module.Stemmer(algorithm, 0).stemWord


@cache
def snowball(algorithm: str) -> _Stemmer:
    """The stemmer of Snowball with this name, which is the name of a language in English."""
    return _Stemmer(algorithm)
