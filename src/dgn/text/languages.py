"""The words of other languages than English: what is one word, and when are two words the same?

`detection` finds the language of a text; English is read by `words`, and the functions here take
any language. The word lists are in languages.json. They are short on purpose: a function word says
nothing about what a text is about.

Words are compared without case and, where the spelling varies in practice, without accents. A
language without spaces between its words is read character by character: a pair of characters that
stand together in the query counts more where they stand together in the passage, too.
"""

from __future__ import annotations

import importlib.resources
import itertools
import json
import re
import unicodedata
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput
from dgn.text import words as english
from dgn.text.vectors import unit_rows
from dgn.text.words import LONGEST_WORD, is_number, is_year, snowball, value_of, word_pattern

ENGLISH = "en"
"""English is read by `dgn.text.words`, and its words have vectors that know their meaning."""

_LISTS: dict[str, Any] = json.loads(
    importlib.resources.files("dgn.text").joinpath("languages.json").read_text(encoding="utf-8")
)
"""By code: the name of a language, its Snowball stemmer, its function words, the words that ask,
and words of negation; for English, words for numbers and opposites, too."""

LANGUAGE_CODES = tuple(_LISTS)
"""The codes of ISO 639-1 that can be given; "und" is any other language in its own script."""

_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "in": "id"}

_WITHOUT_SPACES = frozenset({"ja", "km", "lo", "my", "th", "zh"})
_WITH_DECIMAL_COMMA = frozenset(
    {"bg", "cs", "da", "de", "el", "es", "fi", "fr", "hu", "id", "it", "nl", "no", "pl", "pt"}
    | {"ro", "ru", "sv", "tr", "uk", "vi"}
)
_WITHOUT_ACCENTS = frozenset({"el", "es", "fr", "it", "pt", "ro"})
"""Accents are often left out, or changed by the form of a word; other languages need them."""

_ELIDES = frozenset({"fr", "it"})
"""Here an apostrophe ends a word: l'eau, dell'acqua."""

_DOTLESS = str.maketrans({"İ": "i", "I": "ı"})
_CEDILLAS = str.maketrans({"ş": "ș", "ţ": "ț"})
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652\u0670]")
_ARABIC = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ک": "ك", "ی": "ي"})
_PERSIAN = str.maketrans({"ك": "ک", "ي": "ی", "ى": "ی", "ۀ": "ه", "أ": "ا", "إ": "ا", "ؤ": "و"})
_HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_HIRAGANA = "\u3040-\u309f"
_CHARACTER = re.compile(
    f"[{_HAN}]|[{_HIRAGANA}]|[\u30a0-\u30ff\u31f0-\u31ff]+"  # a run of katakana is a word
    "|[\u0e00-\u0e7f][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*"  # Thai and Lao, with vowels and tones
    "|[\u0e80-\u0eff][\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd]*"
    "|[\u1000-\u109f][\u102b-\u103e\u1056-\u1059]*"
    "|[\u1780-\u17ff](?:\u17d2[\u1780-\u17a2]|[\u17b6-\u17d1\u17d3])*"
    f"|[^{_HAN}{_HIRAGANA}\u30a0-\u30ff\u31f0-\u31ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+"
)
_IS_HIRAGANA = re.compile(f"[{_HIRAGANA}]")
_PARTICLES = re.compile(
    "(?:에서는|에서|에게|으로|까지|부터|처럼|보다|이라는|라는|에는|과의|와의|은|는|이|가|을|를|의|에|로"
    "|와|과|도|만)$"
)
_GROUPED_BY_DOTS = re.compile(r"-?\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_GROUP_START = re.compile(r"[^\w]*\d{1,3}")
_GROUP = re.compile(r"\d{3}")
_LAST_GROUP = re.compile(r"\d{3}(?!\d|[.:/\-]\d).*", re.DOTALL)

_SHORTEST_GRAM, _LONGEST_GRAM = 3, 5
_LEAST_RARITY, _RARITY_PER_LETTER, _LONGEST_COUNTED = 2.0, 0.2, 12
"""How rare a word is as far as its length says; function words have the least."""


@dataclass(frozen=True)
class WordFacts:
    """What is known about a word besides its vector; see `WordTable`."""

    rarity: float
    is_number: bool
    is_year: bool
    is_function: bool
    is_question: bool


@final
@dataclass(frozen=True)
class Language:
    """How the words of a language are read; `find_language` returns one.

    Attributes:
        code: The code of the language.
    """

    code: str

    @property
    def name(self) -> str:
        """The name of the language in English."""
        return str(_LISTS[self.code]["name"])

    @cached_property
    def function_words(self) -> frozenset[str]:
        """Words without content, as `read` returns them; those that ask are among them."""
        return self._read_list("function_words") | self.question_words

    @cached_property
    def question_words(self) -> frozenset[str]:
        """Words that say what is asked for, as `read` returns them."""
        return self._read_list("question_words")

    @cached_property
    def negations(self) -> frozenset[str]:
        """Words that deny, as `read` returns them."""
        return self._read_list("negations")

    def _read_list(self, name: str) -> frozenset[str]:
        words = {self.read(word) for word in word_list(self.code, name)}
        if self.code in _WITHOUT_ACCENTS:
            words |= set(map(_without_accents, words))
        return frozenset(words)

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of a text, with the groups of a number joined: 20 000 becomes 20000."""
        if self.code not in _WITH_DECIMAL_COMMA:
            return list(pieces)
        joined: list[str] = []
        is_open = False
        for piece in pieces:
            if is_open and _LAST_GROUP.fullmatch(piece):
                joined[-1] += piece
                is_open = _GROUP.fullmatch(piece) is not None
            else:
                joined.append(piece)
                is_open = _GROUP_START.fullmatch(piece) is not None
        return joined

    def written(self, piece: str) -> tuple[str, ...]:
        """The words of a text without spaces, as they are written."""
        words = [match.group() for match in word_pattern(piece).finditer(piece)]
        if self.code in _ELIDES:
            words = [part for word in words for part in word.split("'") if part]
        elif self.code in _WITHOUT_SPACES:
            words = [part for word in words for part in _parts(word)]
        return tuple(word[:LONGEST_WORD] for word in words if self.read(word))

    def read(self, word: str) -> str:
        """A word that `written` returned as it is compared; empty if nothing is left of it."""
        if self.code == "tr":
            word = word.translate(_DOTLESS)
        word = word.casefold()
        if word.isascii():
            return word
        if self.code in ("ar", "fa"):
            word = _ARABIC_MARKS.sub("", word)
            word = word.translate(_ARABIC if self.code == "ar" else _PERSIAN)
        elif self.code == "ro":
            word = word.translate(_CEDILLAS)
        return "".join(map(_plain_digit, word)) if any(map(str.isdigit, word)) else word

    def stem(self, word: str) -> str:
        """The stem of a word that `read` returned; that of a number is its value."""
        return _stem(self.code, word)

    def facts(self, word: str) -> WordFacts:
        """What is known about a word that `read` returned."""
        is_digits = is_number(word)
        is_function = not is_digits and self._is_function(word)
        letters = 0 if is_function else min(len(word), _LONGEST_COUNTED)
        return WordFacts(
            _LEAST_RARITY + _RARITY_PER_LETTER * letters,
            is_digits,
            is_digits and is_year(word),
            is_function,
            is_function and word in self.question_words,
        )

    def _is_function(self, word: str) -> bool:
        if word in self.function_words:
            return True
        if self.code in _WITHOUT_SPACES or self.code == "ko":
            return _IS_HIRAGANA.match(word) is not None
        return len(word) == 1


@cache
def find_language(code: str) -> Language:
    """The language with this code, other than English."""
    return Language(checked_language(code))


def checked_language(code: object) -> str:
    """The code of a language, after it was checked to be one: "DE" and "de-AT" become "de".

    Raises:
        InvalidInput: There is no language with this code.
    """
    if isinstance(code, str):
        short = code.lower().replace("_", "-").partition("-")[0]
        short = _ALIASES.get(short, short)
        if short in LANGUAGE_CODES:
            return short
    allowed = f"None, or one of {', '.join(LANGUAGE_CODES)}"
    raise InvalidInput("language", found=f"{code!r:.40}", allowed=allowed)


def word_list(code: str, name: str) -> list[str]:
    """One of the lists of a language, such as its `function_words`; empty if there is none."""
    return str(_LISTS[code].get(name, "")).split()


ENGLISH_NEGATIONS = frozenset(word_list(ENGLISH, "negations"))


@cache
def english_opposites() -> dict[str, tuple[tuple[int, int], ...]]:
    """For each English word that has an opposite, the pairs it belongs to, and the side of each."""
    sides: dict[str, list[tuple[int, int]]] = {}
    for number, pair in enumerate(_LISTS[ENGLISH]["opposites"]):
        for side, words in enumerate(pair):
            for word in words.split():
                sides.setdefault(word, []).append((number, side))
    return {word: tuple(places) for word, places in sides.items()}


@cache
def english_numbers() -> dict[str, str]:
    """The value of each English word for a number; a day and a month stand for themselves."""
    return dict(_LISTS[ENGLISH]["numbers"])


def spelling_vectors(words: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """[words, dimension], of length 1: near for words that have many runs of letters in common.

    Every run of 3 to 5 letters, with a mark for the start and the end of the word, is hashed to a
    number and a sign. Static vectors of English say nothing about the words of another language;
    the spelling relates forms, compounds and derivations that have different stems. A single
    character has no runs, and resembles nothing.
    """
    places: list[int] = []
    signs: list[int] = []
    counts: list[int] = []
    for word in words:
        before = len(places)
        marked = f"<{word}>" if len(word) > 1 else ""
        for length in range(_SHORTEST_GRAM, _LONGEST_GRAM + 1):
            for start in range(len(marked) - length + 1):
                number = zlib.crc32(marked[start : start + length].encode())
                places.append(number % dimension)
                signs.append(1 if number >> 16 & 1 else -1)
        counts.append(len(places) - before)
    vectors = np.zeros(len(words) * dimension, np.float32)
    rows = np.repeat(np.arange(len(words)) * dimension, counts)
    np.add.at(vectors, rows + np.array(places, np.int64), signs)
    return unit_rows(vectors.reshape(len(words), dimension)).astype(np.float32)


def _parts(word: str) -> list[str]:
    """The characters of a text without spaces; other letters and numbers stay whole."""
    return [word] if word.isascii() else _CHARACTER.findall(word)


def _plain_digit(character: str) -> str:
    return str(unicodedata.digit(character, character))


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    split = unicodedata.normalize("NFD", word)
    return "".join(itertools.filterfalse(unicodedata.combining, split))


_FEMININE = ("ी", "ियाँ", "ियां", "ियों")
"""How feminine nouns end in Hindi; Snowball's stems do not tell them from masculine ones."""


@lru_cache(maxsize=2**16)
def _stem(code: str, word: str) -> str:
    if is_number(word) and word[-1].isdigit():
        return _value(code, word)
    if code not in _ELIDES:  # what follows an apostrophe is a suffix: Ankara'da, Grimm's
        word = word.partition("'")[0] or word
    if code == "ko":
        return _without_particle(word)
    algorithm = _LISTS[code].get("stemmer")
    found = snowball(algorithm).stem(word) if algorithm else word
    if code == "hi" and word.endswith(_FEMININE):  # a girl, लड़की, is not a boy, लड़का
        found += _FEMININE[0]
    if code in _WITHOUT_ACCENTS:
        found = _without_accents(found)
    return found or word


def _value(code: str, number: str) -> str:
    """The value of a number as this language writes it: 1.500 is 1500 in German."""
    if code in _WITH_DECIMAL_COMMA:
        if _GROUPED_BY_DOTS.fullmatch(number):
            number = number.replace(".", "").replace(",", ".")
        elif _DECIMAL_COMMA.fullmatch(number):
            number = number.replace(",", ".")
    value = value_of(number)
    # English tells 1,500 from the year 1500 by the words around it; here they are the same.
    return value.replace(",", "") if value.count(",") == 1 else value


def _without_particle(word: str) -> str:
    """A Korean word without the particle that is written as its end."""
    found = _PARTICLES.search(word)
    return word[: found.start()] if found and found.start() >= 2 else word


def written_words(text: str, language: str = ENGLISH) -> list[str]:
    """The words of a text as they are written, in order.

    Examples:
        >>> written_words("L'eau de l'étang, 20 000 litres", "fr")
        ['L', 'eau', 'de', 'l', 'étang', '20000', 'litres']
    """
    if language == ENGLISH:
        return english.written_words(text)
    own = find_language(language)
    return [word for piece in own.pieces(english.pieces_of(text)) for word in own.written(piece)]


def stems_of(text: str, language: str = ENGLISH) -> frozenset[str]:
    """The stems of all words of a text."""
    if language == ENGLISH:
        return english.stems_of(text)
    own = find_language(language)
    return frozenset(own.stem(own.read(word)) for word in written_words(text, language))
