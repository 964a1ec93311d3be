"""What a question asks for: "when" asks for a date, "how many" for a number, "who" for a name.

A question word weighs nothing as a word: a passage with "when" in it answers nothing. Its feature
stands for what is asked for instead, and a passage that contains such a thing covers it. The rules
are the same for every model and are not trained. They know English alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dgn.core.functions import FeatureCoverage, Items
from dgn.text.encoders.base import Facet
from dgn.text.encoders.facets.things import DATE, NAME, NUMBER, contains, name_shares
from dgn.text.query import Query
from dgn.text.spelling import normalized
from dgn.text.words import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    is_name,
    read_words,
    split_piece,
    stem,
    written_words,
)

_WEIGHTS = {DATE: 0.1, NUMBER: 0.1, NAME: 0.12}
"""What the thing asked for weighs, where all words of the query together weigh 1."""

_DATES = frozenset({"year", "date", "day", "month", "century", "decade"})
_AMOUNTS = frozenset({"many", "much", "old", "tall", "long", "far", "large", "big", "high", "deep"})
_COUNTS = frozenset({"number", "amount", "percentage", "percent", "population", "price", "total"})
_PRONOUNS = {"when": DATE, "who": NAME, "whom": NAME, "whose": NAME}
_WITH_NOUN = {
    "how": {NUMBER: _AMOUNTS},
    "what": {DATE: _DATES, NUMBER: _COUNTS},
    "which": {DATE: _DATES, NUMBER: _COUNTS},
}
"""What question words ask for, by themselves and with the word after them."""

_AUXILIARIES = frozenset(
    """
    did do does is are am was were has have had will would can could should shall may might must ca
    wo
    """.split()  # noqa: SIM905
)
_DO = frozenset({"do", "does", "did", "can", "should"})
_CONJUNCTIONS = frozenset({"and", "or", "but"})
_PREPOSITIONS = frozenset(
    """
    in on at by for from to of since until till during after before about around with under within
    through over between among near into as per
    """.split()  # noqa: SIM905
)
_OPENERS = (
    _CONJUNCTIONS
    | _PREPOSITIONS
    | frozenset({"so", "then", "also", "well", "ok", "okay", "hi", "hello", "please", "exactly"})
)
"""What may stand before the question word of a question: "and since when", "so how many"."""

_BEFORE_NOUNS = _PREPOSITIONS | frozenset({"when", "while", "if", "once", "according", "because"})
"""A sentence that begins so has its question after the comma: "In 1911, who designed it?"."""

_BETWEEN = frozenset({"exactly", "else", "ever", "precisely"})
"""What may stand between "when" and its auxiliary: "when exactly did"."""

_MEASURED_BY = frozenset({"by", "with", "in", "at", "for", "during"})
"""After one of these, a second question may begin: "Who won, with what percentage?"."""

_RELATIVES = frozenset({"who", "whom", "whose", "which", "where"})

_REQUEST = re.compile(
    r"(?:(?:you|we|anyone|anybody|someone|somebody|they|it)(?: please)?"
    r" (?:know|known|tell(?: me| us)?|say|remember|recall|explain|confirm|clarify|guess)"
    r"|(?:tell|show|remind) (?:me|us)|^(?:please )?(?:name|state|list)|(?:any|an|no) (?:idea|clue)"
    r"|\bi(?: would| d)?(?: really)? (?:want|need|like|love) to (?:know|find out|ask)"
    r"|\bi(?: am| was| m)? (?:wonder|wondering|curious)|^(?:just )?wondering)"
    r"(?: exactly| about| roughly| in| at| by| for| since| from| until| to| on| of)*$"
)
"""How a question is put into a request: "Do you know when …", "I would like to know how many …"."""

_SHRUG = re.compile(
    r"(?:matter|(?:regardless|irrespective) of|(?:depend\w*|based|rely|relies) on)$"
)
"""After one of these, nothing is asked: "regardless of how much"."""

_QUESTION_WORD = re.compile(r"\b(?:who|when|what|which|how)", re.IGNORECASE)
_LONGEST_OPENING = 12
"""So many words before a question word are looked at, so that the time stays linear."""

_CLOSING = "\"')]}»”’"
_SENTENCE_ENDS = frozenset(".?!")
_CLAUSE_ENDS = frozenset(",;:.?!")


class Asked(NamedTuple):
    """What a query asks for: the position of its question word, and the kind of thing."""

    word: int
    kind: str


class _Sentence(NamedTuple):
    """A sentence of a query.

    Attributes:
        words: Its words in lower case, without what an apostrophe appends: the who of "who's".
        inverted: For each word, whether an auxiliary or the end of the question follows.
        clauses: For each word, where its clause begins.
        first: The position of the first word in the query.
        is_marked: Whether a question mark ends it.
    """

    words: list[str]
    inverted: list[bool]
    clauses: list[int]
    first: int
    is_marked: bool


@lru_cache(maxsize=4096)
def asked_of(query: str) -> tuple[Asked, ...]:
    """What a query asks for; empty if it is not a question, or if no rule knows it.

    A question word asks only where it is an interrogative. In "How do I stop it when it opens?",
    "when" begins a subordinate clause, and in "the man who designed it", "who" a relative one.

    Examples:
        >>> asked_of("Since when has the bridge been open, and how many trains cross it?")
        (Asked(word=1, kind='a date'), Asked(word=8, kind='a number'))
        >>> asked_of("How do I cross the bridge when the ice comes?")
        ()
    """
    if not _QUESTION_WORD.search(query):  # most queries are claims, and this is far cheaper
        return ()
    asked: dict[str, Asked] = {}
    for sentence in _sentences(query):
        for position in _interrogatives(sentence):
            kind = _kind_of(sentence.words, position)
            if kind is not None:
                asked.setdefault(kind, Asked(sentence.first + position, kind))
    if NAME in asked and is_name(read_words(query)[asked[NAME].word]):
        del asked[NAME]  # the WHO
    return tuple(asked.values())


def _sentences(query: str) -> Iterator[_Sentence]:
    pieces: list[str] = []
    first = 0
    for piece in normalized(query).split():
        pieces.append(piece)
        if piece.rstrip(_CLOSING)[-1:] in _SENTENCE_ENDS:
            sentence = _sentence(pieces, first)
            yield sentence
            first += len(sentence.words)
            pieces = []
    if pieces:
        yield _sentence(pieces, first)


def _sentence(pieces: Sequence[str], first: int) -> _Sentence:
    written: list[str] = []
    clauses: list[int] = []
    clause = 0
    for piece in pieces:
        own = split_piece(piece)
        written += map(str.casefold, own)
        clauses += [clause] * len(own)
        if piece.rstrip(_CLOSING)[-1:] in _CLAUSE_ENDS:
            clause = len(written)
    is_marked = pieces[-1].rstrip(_CLOSING).endswith("?")
    inverted = [
        "'" in word or _is_inverted(written, number, is_marked=is_marked)
        for number, word in enumerate(written)
    ]
    words = [word.partition("'")[0] for word in written]
    return _Sentence(words, inverted, clauses, first, is_marked)


def _is_inverted(words: Sequence[str], position: int, *, is_marked: bool) -> bool:
    """Whether a question continues so after a word: "when exactly did it", not "when it did"."""
    following = words[position + 1 : position + 6]
    while following and following[0] in _BETWEEN:
        following = following[1:]
    if not following:
        return is_marked or (position > 0 and words[position - 1] in _CONJUNCTIONS)
    if following[0] in _CONJUNCTIONS | QUESTION_WORDS:  # when and in which film, when and where
        return not QUESTION_WORDS.isdisjoint(following[:3])
    return following[0].partition("'")[0].removesuffix("n") in _AUXILIARIES


def _interrogatives(sentence: _Sentence) -> list[int]:
    """The question words of a sentence that ask."""
    words = sentence.words
    places = [number for number, word in enumerate(words) if word in QUESTION_WORDS]
    opening = [number for number in places if _opens_question(sentence, number)]
    first = min(opening, default=len(words))
    requested = [number for number in places if number <= first and _is_requested(words, number)]
    if not sentence.is_marked and not requested and first > 1:
        return []
    if opening or requested:
        return sorted({*requested, *opening})
    is_yes_or_no = words[:1] and words[0] in _AUXILIARIES
    return [] if is_yes_or_no else [number for number in places if _asks_late(sentence, number)]


def _opens_question(sentence: _Sentence, position: int) -> bool:
    """Whether a question word begins the sentence, or a clause that is a question of its own."""
    words, clause = sentence.words, sentence.clauses[position]
    if words[position] == "when" and sentence.inverted[position]:
        return True  # a clause that is not a question has its subject there
    before = words[max(clause, position - _LONGEST_OPENING) : position]
    is_joined = _is_joined(before)
    if not is_joined and not _OPENERS.issuperset(before):
        return _kind_of(words, position) in (DATE, NUMBER) and before[-1] in _MEASURED_BY
    if words[position] == "when":
        return _is_whole(sentence, position)
    # After a noun and a comma, "who" and "which" tell more about the noun.
    is_relative = words[position] in _RELATIVES and _kind_of(words, position) in (None, NAME)
    return clause == 0 or is_joined or not is_relative or words[0] in _BEFORE_NOUNS


def _is_joined(before: Sequence[str]) -> bool:
    """Whether a conjunction, and perhaps a preposition, comes last: "and", "and by"."""
    last = before[:-1] if before and before[-1] in _PREPOSITIONS else before
    return bool(last) and last[-1] in _CONJUNCTIONS


def _is_whole(sentence: _Sentence, position: int) -> bool:
    """Whether a clause with "when" is the whole question, as in "When the bridge opened?"."""
    others = sentence.words[position + 1 :]
    has_other = not (QUESTION_WORDS | _DO).isdisjoint(others) or sentence.clauses[-1] > 0
    return sentence.is_marked and position < 2 and not has_other and not others[0].endswith("ing")


def _asks_late(sentence: _Sentence, position: int) -> bool:
    """Whether a question word asks that is not at the beginning: "It opened in what year?"."""
    words = sentence.words
    kind = _kind_of(words, position)
    if kind == NAME:
        is_object = words[position] == "who" and words[position - 1] in _PREPOSITIONS
        is_last = position == len(words) - 1
        return is_last or is_object or (sentence.inverted[position] and words[0] in _BEFORE_NOUNS)
    return (
        kind is not None
        and words[position] != "when"
        and not _SHRUG.search(_before(words, position))
    )


def _is_requested(words: Sequence[str], position: int) -> bool:
    """Whether the words before a question word ask for it: "Can you tell me", "I wonder"."""
    return _REQUEST.search(_before(words, position)) is not None


def _before(words: Sequence[str], position: int) -> str:
    return " ".join(words[max(0, position - _LONGEST_OPENING) : position])


def _kind_of(words: Sequence[str], position: int) -> str | None:
    """What a question word asks for, with the word after it."""
    if words[position] in _PRONOUNS:
        return _PRONOUNS[words[position]]
    after = words[position + 1 : position + 2]
    kinds = _WITH_NOUN.get(words[position], {})
    return next((kind for kind, nouns in kinds.items() if not nouns.isdisjoint(after)), None)


def facets_of(query: str) -> tuple[Facet, ...]:
    """The words of a query; its question words are named with what they ask for."""
    asked = dict(asked_of(query))
    return tuple(
        Facet(f"{word} ({asked[position]})", (position,), is_asked=True)
        if position in asked
        else Facet(word, (position,), stem(read), is_content=read not in FUNCTION_WORDS)
        for position, (word, read) in enumerate(
            zip(written_words(query), read_words(query), strict=True)
        )
    )


def with_asked(
    queries: Sequence[Query], objective: FeatureCoverage, items: Items
) -> tuple[FeatureCoverage, Items]:
    """The function and the items with what the questions ask for, in place of question words."""
    asked = {row: asked_of(query.text) for row, query in enumerate(queries)}
    if not any(asked.values()):
        return objective, items
    weights, features = objective.weights.copy(), items.features.copy()
    for row, several in asked.items():
        texts = queries[row].texts
        for word, kind in several:
            full = objective.target[row, word]
            shares = _shares(kind, queries[row].text, texts)
            features[row, : len(texts), word] = 0 if shares is None else full * np.array(shares)
            weights[row, word] = 0 if shares is None else _WEIGHTS[kind] / np.log1p(full)
    return FeatureCoverage(weights, target=objective.target), Items(features, items.mask)


def _shares(kind: str, query: str, texts: Sequence[str]) -> list[float] | None:
    """How far each text contains a thing of this kind; None if nothing can be known about it."""
    if kind == NAME:
        return name_shares(query, texts)
    return [float(contains(kind, text)) for text in texts]
