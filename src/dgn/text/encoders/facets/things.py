"""Does a text contain a thing of the kind that is asked for: a date, a number, a name?

Dates and numbers are found by their words. Names are found by their capital letters, without lists:
a word that is capitalized inside a sentence of some passage, and that no passage writes in lower
case, belongs to a name, even at the beginning of a sentence. Where capitals say nothing, as in
texts without them, nothing is known about names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from dgn.text.spelling import normalized
from dgn.text.words import FUNCTION_WORDS, is_number, is_year, read_words, split_piece

DATE, NUMBER, NAME = "a date", "a number", "a name"
"""The kinds of things, as explanations name them."""

_SINGLE_NAME = 0.2
"""How far a name of one word covers what is asked for; it is often only mentioned again."""

_HEADLINE = 0.7
"""A text with more of its content words capitalized is a headline: capitals say nothing there."""

_CLOSING = "\"')]}»”’"
_OPENING = ('"', "'", "(", "[", "{", "“", "‘", "«", "*", "-", "•", "|")

_DATE_WORDS = frozenset(
    """
    january february april june july september october november december monday tuesday wednesday
    thursday friday saturday sunday century decade
    """.split()  # noqa: SIM905
)
_AMBIGUOUS_MONTHS = frozenset({"march", "may", "august"})
_BEFORE_MONTHS = frozenset(
    """
    in since until till during early late mid last next this every each
    """.split()  # noqa: SIM905
)
_NUMBER_WORDS = frozenset(
    """
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
    seventy eighty ninety hundred thousand million billion half dozen percent
    """.split()  # noqa: SIM905
)
_BEFORE_PRONOUNS = frozenset(
    """
    no any every some each this that which another the
    """.split()  # noqa: SIM905
)
"""After one of these, "one" is a pronoun: no one knows."""

_HINTS = {DATE: _DATE_WORDS | _AMBIGUOUS_MONTHS, NUMBER: _NUMBER_WORDS | {"one"}}
"""A text without a digit and without one of these contains no date, or no number."""

_DIGIT = re.compile(r"[\d¼-¾⅐-⅞²³¹⁰-⁹]")
_LETTERS = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=2**14)
def contains(kind: str, text: str) -> bool:
    """Whether a text contains a thing of this kind; a year is not an answer to "how many"."""
    has_hint = _DIGIT.search(text) or not _HINTS[kind].isdisjoint(_LETTERS.findall(text.lower()))
    if not has_hint:  # most texts have none, and this is far cheaper
        return False
    words = read_words(text)
    if kind == DATE:
        return any(
            is_year(word)
            or word in _DATE_WORDS
            or (word in _AMBIGUOUS_MONTHS and _names_month(words, position))
            for position, word in enumerate(words)
        )
    return any(
        (is_number(word) and not is_year(word))
        or word in _NUMBER_WORDS
        or (word == "one" and _counts_one(words, position))
        for position, word in enumerate(words)
    )


def _names_month(words: Sequence[str], position: int) -> bool:
    """Whether "march" is the month: 4 March, in March, March 1911."""
    before = words[position - 1] if position else ""
    after = words[position + 1] if position + 1 < len(words) else ""
    is_dated = any(word and is_number(word) for word in (before, after))
    return is_dated or before in _BEFORE_MONTHS


def _counts_one(words: Sequence[str], position: int) -> bool:
    """Whether "one" is a number: one train, and not "no one" or "one of them"."""
    before = words[position - 1] if position else ""
    after = words[position + 1] if position + 1 < len(words) else ""
    if not after:
        return not before
    return before not in _BEFORE_PRONOUNS and after not in FUNCTION_WORDS


class _Word(NamedTuple):
    """A word of a text, and what its capital letter says.

    Attributes:
        word: In lower case, without a possessive ending.
        is_capital: Whether it begins with a capital letter.
        is_initial: Whether it begins a sentence, a quotation or the like, where a capital letter
            says nothing.
    """

    word: str
    is_capital: bool
    is_initial: bool


def name_shares(query: str, texts: Sequence[str]) -> list[float] | None:
    """How far each text names someone or something that the query does not name, from 0 to 1.

    A full name, and a name after "by", count fully. A name of one word counts less. A pronoun is
    not a name.

    Args:
        query: The query; a name in it is not what it asks for.
        texts: All passages of the query.

    Returns:
        One number for each text; None if the texts have no capital letters that say anything.

    Examples:
        >>> texts = ["It was designed by Clara Voss.", "Voss liked bridges.", "She designed it."]
        >>> name_shares("Who designed the bridge?", texts)
        [1.0, 0.2, 0.0]
    """
    read = [*map(_words_of, texts)]
    names = _name_words(read)
    if not names:
        return None
    asked = _words_of(query)
    known = {word.word: word.is_capital and not word.is_initial for word in asked}
    return [max((_share(run) for run in _runs(words, names, known)), default=0.0) for words in read]


def _name_words(texts: Sequence[tuple[_Word, ...]]) -> frozenset[str]:
    lower: set[str] = set()
    capital: set[str] = set()
    for words in texts:
        content = [word for word in words if word.word not in FUNCTION_WORDS]
        lower.update(word.word for word in content if not word.is_capital)
        if sum(word.is_capital for word in content) <= _HEADLINE * len(content):
            capital.update(word.word for word in content if word.is_capital and not word.is_initial)
    months = _DATE_WORDS | _AMBIGUOUS_MONTHS
    return frozenset(word for word in capital - lower if len(word) > 1) - months


def _runs(
    words: Sequence[_Word], names: frozenset[str], known: Mapping[str, bool]
) -> Iterator[tuple[int, str]]:
    """The names of a text that are not known: how many words each has, and the word before it."""
    run: list[str] = []
    before = ""
    for word in (*words, _Word("", is_capital=False, is_initial=True)):
        is_letter = len(word.word) == 1 and word.word not in FUNCTION_WORDS  # an initial
        is_part = word.is_capital and (word.word in names or is_letter)
        if not is_part or word.is_initial:
            # "Clara Voss" is known if the query names Clara; "President Orr" is not, although the
            # query speaks of a president.
            if not any(map(known.get, run)) and not names.isdisjoint(set(run) - known.keys()):
                yield len(run), before
            run = []
        if is_part:
            run.append(word.word)
        else:
            before = word.word


def _share(run: tuple[int, str]) -> float:
    length, before = run
    return 1.0 if length > 1 or before == "by" else _SINGLE_NAME


@lru_cache(maxsize=2**14)
def _words_of(text: str) -> tuple[_Word, ...]:
    words: list[_Word] = []
    is_initial = True
    for piece in normalized(text).split():
        for number, word in enumerate(split_piece(piece)):
            if word[0].isalpha():
                is_quoted = number == 0 and piece.startswith(_OPENING)
                read = word.casefold().removesuffix("'s")
                words.append(_Word(read, word[0].isupper(), is_initial or is_quoted))
                is_initial = False
        inner = piece.rstrip(_CLOSING)
        # "J." and "Dr." do not end a sentence, and neither do they begin one.
        is_short = inner.endswith(".") and len(inner) <= 4 and inner[:1].isupper()
        if inner.endswith((".", "?", "!", ":", ";")) and not is_short:
            is_initial = True
    return tuple(words)
