"""What a question asks for: "when" asks for a date, "how many" for a number.

A question word weighs nothing as a word: a passage with "when" in it answers nothing. Its feature
stands for what is asked for instead, and a passage that contains such a thing covers it. The rule
is the same for every model and is not trained. There is none for "who": without upper case, which
must not matter, names are hard to tell from other words, and lists of names did not help.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dgn.core.functions import FeatureCoverage, Items
from dgn.text.encoders.base import Facet
from dgn.text.query import Query
from dgn.text.words import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    is_number,
    is_year,
    read_words,
    stem,
    written_words,
)

_WEIGHT = 0.1
"""What the thing asked for weighs, where all words of the query together weigh 1."""

_DATE, _NUMBER = "a date", "a number"
_DATES = frozenset({"year", "date", "day", "month", "century", "decade"})
_AMOUNTS = frozenset({"many", "much", "old", "tall", "long", "far", "large", "big", "high", "deep"})
_COUNTS = frozenset({"number", "amount", "percentage", "percent", "population", "price", "total"})
_AUXILIARIES = frozenset(
    {"did", "do", "does", "is", "are", "was", "were", "has", "have", "had", "will", "can", "could"}
)
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


_HINTS = {_DATE: _DATE_WORDS | _AMBIGUOUS_MONTHS, _NUMBER: _NUMBER_WORDS | {"one"}}
"""A text without a digit and without one of these contains no date, or no number."""

_DIGIT = re.compile(r"[\d¼-¾⅐-⅞²³¹⁰-⁹]")
_LETTERS = re.compile(r"[^\W\d_]+")


class Asked(NamedTuple):
    """What a query asks for: the position of its question word, and the kind of thing."""

    word: int
    kind: str


@lru_cache(maxsize=4096)
def asked_of(query: str) -> Asked | None:
    """What a query asks for; None if it is not a question, or if no rule knows it.

    Examples:
        >>> asked_of("Since when has the bridge been open?")
        Asked(word=1, kind='a date')
        >>> asked_of("How many trains cross it?").kind
        'a number'
        >>> asked_of("It was closed when the ice came.")
    """
    words = [*map(str.casefold, written_words(query))]
    if "?" not in query and not _begins_as_a_question(words):
        return None
    for position, (word, after) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        if word == "when" or (word in ("what", "which") and after in _DATES):
            return Asked(position, _DATE)
        if (word == "how" and after in _AMOUNTS) or (
            word in ("what", "which") and after in _COUNTS
        ):
            return Asked(position, _NUMBER)
    return None


def _begins_as_a_question(words: list[str]) -> bool:
    """Whether a question may begin so: "when did it", and not "when he came, it"."""
    when = next((number for number in range(2) if words[number : number + 1] == ["when"]), None)
    if when is not None:
        return words[when + 1 : when + 2] != [] and words[when + 1] in _AUXILIARIES
    return bool(QUESTION_WORDS & set(words[:2]))


def facets_of(query: str) -> tuple[Facet, ...]:
    """The words of a query; its question word is named with what it asks for."""
    asked = asked_of(query)
    return tuple(
        Facet(f"{word} ({asked.kind})", (position,), is_asked=True)
        if asked is not None and asked.word == position
        else Facet(word, (position,), stem(read), is_content=read not in FUNCTION_WORDS)
        for position, (word, read) in enumerate(
            zip(written_words(query), read_words(query), strict=True)
        )
    )


@lru_cache(maxsize=2**14)
def contains(kind: str, text: str) -> bool:
    """Whether a text contains a thing of this kind; a year is not an answer to "how many"."""
    has_hint = _DIGIT.search(text) or not _HINTS[kind].isdisjoint(_LETTERS.findall(text.lower()))
    if not has_hint:  # most texts have none, and this is far cheaper
        return False
    words = read_words(text)
    if kind == _DATE:
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


def with_asked(
    queries: Sequence[Query], objective: FeatureCoverage, items: Items
) -> tuple[FeatureCoverage, Items]:
    """The function and the items with what the questions ask for, in place of question words."""
    asked = {row: asked_of(query.text) for row, query in enumerate(queries)}
    if not any(asked.values()):
        return objective, items
    weights, features = objective.weights.copy(), items.features.copy()
    for row, one in asked.items():
        if one is not None:
            full = objective.target[row, one.word]
            texts = queries[row].texts
            weights[row, one.word] = _WEIGHT / np.log1p(full)
            features[row, : len(texts), one.word] = [
                full * contains(one.kind, text) for text in texts
            ]
    return FeatureCoverage(weights, target=objective.target), Items(features, items.mask)
