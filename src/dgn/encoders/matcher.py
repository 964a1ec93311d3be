"""From texts to matches: every word of a claim is compared with every word of a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.encoders.matches import ClaimMatches, WordTable
from dgn.encoders.query import Query
from dgn.errors import InvalidInput
from dgn.text.tokens import title_words
from dgn.text.word_tokens import WordReader, WordTokens

_TITLE_FROM = 0.5
"""From this cosine on, a title begins to say what a word of the claim says; at 1 it says it all."""

_RARITY_MIDDLE, _RARITY_SPREAD = 6.0, 2.0
"""An IDF less the first, over the second, is about 0 and of the size of the other facts."""


@final
class Matcher:
    """Matches claims with sentences, in the space of a reader's vectors."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader

    def match(self, queries: Sequence[Query]) -> tuple[list[ClaimMatches], WordTokens]:
        """The matches of each query, and the words that they are about."""
        titles = [list(dict.fromkeys(query.titles)) for query in queries]
        texts: list[str] = []
        for query, different in zip(queries, titles, strict=True):
            texts += [query.claim, *query.sentences, *map(title_words, different)]
        words = self.reader.read(texts)
        matches: list[ClaimMatches] = []
        place = 0
        for query, different in zip(queries, titles, strict=True):
            if not query.sentences:
                raise InvalidInput("sentences", found="none", allowed="at least one")
            claim = words.texts[place]
            if not len(claim):
                raise InvalidInput(
                    "claim", found=repr(query.claim), allowed="a text with a word in it"
                )
            behind = place + 1 + len(query.sentences) + len(different)
            # Sentences and titles in one go: the arrays are small, and calls are what costs.
            found = _compared(words, claim, words.texts[place + 1 : behind])
            matches.append(_put_together(query, different, claim, found))
            place = behind
        return matches, words


def word_table(words: WordTokens) -> WordTable:
    """The words as an encoder sees them."""
    rarity = (words.rarity[:, None] - _RARITY_MIDDLE) / _RARITY_SPREAD
    return WordTable(words.vectors, np.concatenate([rarity, words.facts], axis=1))


@dataclass(frozen=True, eq=False)
class _Compared:
    """[texts, words of the claim], and [texts] for the last two; named as in ClaimMatches."""

    matched: NDArray[np.int64]
    cosine: NDArray[np.float32]
    exact: NDArray[np.bool_]
    pair: NDArray[np.bool_]
    likeness: NDArray[np.float32]
    lengths: NDArray[np.int64]


def _put_together(
    query: Query,
    titles: Sequence[str],
    claim: NDArray[np.int64],
    found: _Compared,
) -> ClaimMatches:
    here = len(query.sentences)
    # A word that the title has counts as said, whatever its neighbours in the space.
    near = (found.cosine[here:] - _TITLE_FROM) / (1 - _TITLE_FROM)
    said = np.maximum(found.exact[here:], near).clip(0, 1)
    number = {title: place for place, title in enumerate(titles)}
    which = [number[title] for title in query.titles]
    pages, places = np.array(query.pages), np.array(query.places)
    follows = np.zeros(len(pages), dtype=np.bool_)
    follows[1:] = (pages[1:] == pages[:-1]) & (places[1:] == places[:-1] + 1)
    sizes = Counter(query.pages)
    return ClaimMatches(
        claim=claim,
        matched=found.matched[:here],
        cosine=found.cosine[:here],
        exact=found.exact[:here],
        pair=found.pair[:here],
        title=said[which].astype(np.float32),
        likeness=found.likeness[:here],
        length=found.lengths[:here].astype(np.float32),
        place=places.astype(np.float32),
        page_size=np.array([sizes[page] for page in query.pages], np.float32),
        follows=follows,
    )


def _compared(
    words: WordTokens, claim: NDArray[np.int64], texts: Sequence[NDArray[np.int64]]
) -> _Compared:
    """The words of the claim against those of each text."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    longest = int(lengths.max())
    if not longest:
        none = np.zeros((len(texts), len(claim)))
        flags, numbers = none.astype(np.bool_), none.astype(np.float32)
        return _Compared(none.astype(int), numbers, flags, flags, numbers[:, 0], lengths)
    flat = np.concatenate(texts)
    cosines = words.vectors[flat] @ words.vectors[claim].T
    same = words.spelling[flat][:, None] == words.spelling[claim]
    # [texts, longest]: the places of each text's words in the flat list.
    inside = np.arange(longest) < lengths[:, None]
    starts = np.cumsum(lengths) - lengths
    index = np.where(inside, starts[:, None] + np.arange(longest), 0)
    spread = np.where(inside[..., None], cosines[index], -2.0)
    best = spread.argmax(axis=1)
    here = same[index] & inside[..., None]
    pair = np.zeros((len(texts), len(claim)), np.bool_)
    pair[:, 1:] = (here[:, 1:, 1:] & here[:, :-1, :-1]).any(axis=1)
    filled = (lengths > 0)[:, None]
    rarity = np.where(inside, words.rarity[flat][index], 0)
    nearness = cosines.max(axis=1).clip(0)[index]
    return _Compared(
        matched=np.where(filled, flat[np.take_along_axis(index, best, axis=1)], 0),
        cosine=np.where(filled, np.take_along_axis(spread, best[:, None], axis=1)[:, 0], 0),
        exact=here.any(axis=1),
        pair=pair,
        likeness=(nearness * rarity).sum(axis=1) / np.maximum(rarity.sum(axis=1), 1e-6),
        lengths=lengths,
    )
