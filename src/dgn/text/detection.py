"""The language of a text, found in the text: by its script, then by its function words.

A short text often has no function word that belongs to one language alone, and "La Paz" is no
Spanish; a query is therefore read in the language of all its texts together. English text, which
has no function words of another language, is recognized by a single look-up.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from dgn.text.languages import ENGLISH, LANGUAGE_CODES, find_language, word_list
from dgn.text.words import FUNCTION_WORDS as ENGLISH_WORDS
from dgn.text.words import MARKS_AROUND, pieces_of

_LEAST_VOTES, _LEAST_WORDS = 1.3, 2
"""A language needs two words, one of which hardly any other language has: "mein" alone may be the
title of a book."""

_LEAST_SHARE = 0.12
"""The votes of a language as a share of the words; English names have function words, too."""

_LEAD = 1.25
"""How many times the votes of the next language: Spanish and Portuguese share many of theirs."""

_ALSO_ENGLISH = frozenset(
    """
    ad ale allen alt andre aura bare ben bent bland bo ca car care chi cine co col com come comment
    deste die dies dig dine dir dog dont door due ed ella end era even face god go ha hal ham han
    hans hat hay ho im inn jo kde kim kit lain li lo ma man meg men mere met min mind mine mint mod
    na nam non num one os par per plus po pot pour pro pure sale sam sea sin sit size solo son state
    sub sue tan ten till ton ty um ur vain var via want war ya yo
    """.split()  # noqa: SIM905
)
"""English words and names; they say nothing about the language."""

_IN_NAMES = frozenset({"al", "bin", "de", "del", "der", "di", "el", "et", "la", "le", "van", "von"})
"""They are not enough to look closer: English text has names such as Ludwig van Beethoven."""

_MARKS = f"{MARKS_AROUND}¿¡«»„“”‘’…،؛؟।"
_LETTERS = {
    "ß": "de",
    "ñ": "es",
    "ã": "pt",
    "õ": "pt",
    "œ": "fr",
    "ø": "da no",
    "æ": "da no",
    "å": "da no sv",
    "ğ": "tr",
    "ı": "tr",
    "ő": "hu",
    "ű": "hu",
    "ă": "ro vi",
    "ș": "ro",
    "ț": "ro",
    "ł": "pl",
    "ą": "pl",
    "ę": "pl",
    "ř": "cs",
    "ě": "cs",
    "ů": "cs",
    "đ": "vi",
    "ơ": "vi",
    "ư": "vi",
    "ї": "uk",
    "є": "uk",
    "і": "uk",
    "ы": "ru",
    "э": "ru",
    "ё": "ru",
    "ъ": "bg",
    "پ": "fa",
    "چ": "fa",
    "ژ": "fa",
    "گ": "fa",
    "ک": "fa",
    "ی": "fa",
    "ة": "ar",
    "ي": "ar",
    "ى": "ar",
    "أ": "ar",
    "إ": "ar",
}
"""Letters that few of the languages have; a word with one counts as half a vote."""

_SCRIPTS = (
    # First and last letter, and the languages that are written so; the first one if in doubt.
    (0x370, 0x3FF, "el"),
    (0x400, 0x52F, "ru uk bg"),
    (0x530, 0x58F, "hy"),
    (0x590, 0x5FF, "he"),
    (0x600, 0x77F, "ar fa"),
    (0x780, 0x8FF, "und"),
    (0x900, 0x97F, "hi"),
    (0x980, 0xB7F, "und"),
    (0xB80, 0xBFF, "ta"),
    (0xC00, 0xDFF, "und"),
    (0xE00, 0xE7F, "th"),
    (0xE80, 0xEFF, "lo"),
    (0xF00, 0xFFF, "und"),
    (0x1000, 0x109F, "my"),
    (0x10A0, 0x10FF, "und"),
    (0x1100, 0x11FF, "ko"),
    (0x1200, 0x177F, "und"),
    (0x1780, 0x17FF, "km"),
    (0x1800, 0x1CFF, "und"),
    (0x1F00, 0x1FFF, "el"),
    (0x2D00, 0x2DDF, "und"),
    (0x3005, 0x3007, "zh"),
    (0x3040, 0x30FF, "ja"),
    (0x3130, 0x318F, "ko"),
    (0x31F0, 0x31FF, "ja"),
    (0x3400, 0x9FFF, "zh"),
    (0xA000, 0xABFF, "und"),
    (0xAC00, 0xD7FF, "ko"),
    (0xF900, 0xFAFF, "zh"),
    (0xFB1D, 0xFB4F, "he"),
    (0xFB50, 0xFDFF, "ar fa"),
    (0xFE70, 0xFEFE, "ar fa"),
    (0xFF66, 0xFF9D, "ja"),
    (0x20000, 0x3FFFF, "zh"),
)
_STARTS = [first for first, _, _ in _SCRIPTS]
_OTHER_SCRIPT = re.compile(
    f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last, _ in _SCRIPTS)}]"
)
_LEAST_LETTERS = 3
"""One or two letters of another script are often symbols, as in "μ = 5"; characters are words."""


_TAKEN_FOR = {"da": "no", "no": "da", "ja": "zh"}
"""What a text of a language is easily taken for: a Japanese text without kana for Chinese, and
Danish for Norwegian. If the query is in such a language, so are these passages."""

_FEW_LETTERS = 12
"""If fewer than one in so many characters are of another script, nothing is counted."""

_LEAST_KANA = 0.2
"""Kana for each character: a Chinese text may quote a Japanese name."""


def query_language(texts: Sequence[str], pieces: Sequence[Sequence[str]] | None = None) -> str:
    """The language in which a query and its passages are read, found from all of them together.

    Args:
        texts: The query, and the passages.
        pieces: What `pieces_of` returns for each text, if it is known.
    """
    pieces = [*map(pieces_of, texts)] if pieces is None else pieces
    # Nearly always for English, and found out in a tenth of the time.
    if _FOREIGN.isdisjoint(itertools.chain.from_iterable(pieces)) and all(
        text.isascii() or not _OTHER_SCRIPT.search(text) for text in texts
    ):
        return ENGLISH
    joined = [*itertools.chain.from_iterable(pieces)]
    code = found_language("\n".join(texts), joined) or found_language(texts[0])
    if code is not None:
        return code
    # Texts in several languages: that of most of them.
    counts = Counter(filter(None, map(found_language, texts)))
    return min(counts, key=lambda one: (-counts[one], one), default=ENGLISH)


def found_language(text: str, pieces: Sequence[str] | None = None) -> str | None:
    """The language of a text by itself; None if it is not clear.

    Args:
        text: The text.
        pieces: What `pieces_of` returns for it, if it is known.

    Examples:
        >>> found_language("Wie kündige ich mein Abonnement?")
        'de'
        >>> found_language("How do I cancel my subscription?")
        'en'
        >>> found_language("Paul Klee, Ad Parnassum")
    """
    pieces = pieces_of(text) if pieces is None else pieces
    if not _is_suspect(text, pieces):
        return None if _ONLY_ENGLISH.isdisjoint(pieces) else ENGLISH
    codes = _by_script("".join(pieces)) if _OTHER_SCRIPT.search(text) else None
    if codes is None:
        english = sum(map(_ONLY_ENGLISH.__contains__, pieces))
        if english > sum(map(_FOREIGN.__contains__, pieces)):
            return ENGLISH
        return _by_votes(pieces, None)
    if len(codes) == 1:
        return codes[0]
    return _by_votes(pieces, codes) or codes[0]


def _is_suspect(text: str, pieces: Sequence[str]) -> bool:
    """Whether anything in a text may belong to another language; nothing in most English ones."""
    if not _FOREIGN.isdisjoint(pieces):
        return True
    return not text.isascii() and _OTHER_SCRIPT.search(text) is not None


def _by_script(text: str) -> tuple[str, ...] | None:
    """The languages of the script of most letters, unless it is the Latin one."""
    others = [*filter(str.isalpha, _OTHER_SCRIPT.findall(text))]
    if _FEW_LETTERS * len(others) < len(text):  # a symbol or a name in a text in Latin letters
        return None
    latin = sum(map(str.isalpha, text)) - len(others)
    places = (bisect.bisect(_STARTS, ord(letter)) - 1 for letter in others)
    counts = Counter(_SCRIPTS[place][2] for place in places)
    # A character of Chinese or Korean is a syllable, of several letters elsewhere.
    weights = {"zh": 3, "ja": 3, "ko": 3}
    weighed = {script: weights.get(script, 1) * count for script, count in counts.items()}
    script = max(weighed, key=lambda one: (weighed[one], one), default="")
    if weighed.get(script, 0) < max(_LEAST_LETTERS, latin):
        return None
    if script == "zh" and counts["ja"] >= _LEAST_KANA * counts["zh"]:
        return ("ja",)
    return tuple(script.split())


def _by_votes(pieces: Sequence[str], codes: tuple[str, ...] | None) -> str | None:
    """The language whose function words and letters a text has; each word counts once.

    Args:
        pieces: The pieces of the text.
        codes: The languages to choose from, if the script says so much.
    """
    words = {part for piece in pieces for part in piece.strip(_MARKS).casefold().split("'")}
    votes: dict[str, float] = {}
    known: Counter[str] = Counter()
    for word in words:
        shared = _VOTES.get(word, ())
        known.update(shared)
        for code in shared:
            votes[code] = votes.get(code, 0.0) + 1 / len(shared)
        if not word.isascii():
            lettered = {code for letter in word for code in _LETTERS.get(letter, "").split()}
            known.update(lettered.difference(shared))
            for code in lettered:
                votes[code] = votes.get(code, 0.0) + 0.5
    english = votes.pop(ENGLISH, 0.0)
    if codes is not None:
        votes = {code: votes.get(code, 0.0) for code in codes}
    # Rounded: the order of the words must not decide.
    ranked = sorted(votes, key=lambda code: (-round(votes[code], 6), code))
    first, second = ([*ranked, "", ""])[:2]
    most = votes.get(first, 0.0)
    is_ahead = most > _LEAD * votes.get(second, 0.0) or _TAKEN_FOR.get(first) == second
    if codes is not None:
        return first if is_ahead else None
    least = max(_LEAST_VOTES, _LEAST_SHARE * len(words), 2 * english)
    if most >= least and known[first] >= _LEAST_WORDS:
        return first if is_ahead else None
    is_english = known[ENGLISH] >= max(known.values(), default=0)
    return ENGLISH if is_english and not _ONLY_ENGLISH.isdisjoint(words) else None


@cache
def _votes() -> dict[str, tuple[str, ...]]:
    """The languages that each function word belongs to."""
    found: dict[str, list[str]] = {word: [ENGLISH] for word in sorted(ENGLISH_WORDS)}
    for code in LANGUAGE_CODES:
        if code == ENGLISH:
            continue
        for word in sorted(find_language(code).function_words - _ALSO_ENGLISH):
            found.setdefault(word, []).append(code)
    is_latin_letter = re.compile("[a-z]")
    return {
        word: tuple(codes)
        for word, codes in found.items()
        if not is_latin_letter.fullmatch(word)  # single letters are everywhere
    }


_VOTES = _votes()


def _only_english() -> frozenset[str]:
    """Function words that no other language has, as a text writes them."""
    words = {word for word, codes in _VOTES.items() if codes == (ENGLISH,)}
    return frozenset(words | {word.capitalize() for word in words})


_ONLY_ENGLISH = _only_english()


def _foreign() -> frozenset[str]:
    """Function words of other languages in Latin letters that English text does not have."""
    common = ENGLISH_WORDS | _ALSO_ENGLISH | _IN_NAMES

    def words_of(name: str) -> set[str]:
        return {
            word
            for code in LANGUAGE_CODES
            for word in word_list(code, name)
            if word not in common and len(word) > 1 and not _OTHER_SCRIPT.search(word)
        }

    asking = words_of("question_words")
    return frozenset(words_of("function_words") | asking | {word.capitalize() for word in asking})


_FOREIGN = _foreign()
