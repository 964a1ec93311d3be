"""What the words of a claim find in each sentence: the facts that an encoder weighs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, Bool, Float, Int


@dataclass(frozen=True, eq=False)
class ClaimMatches:
    """One claim of T words against A sentences. Where a sentence has no word, all is 0.

    claim: [T], the claim's words; places in some table of words, as is `matched`.
    matched: [A, T], the sentence's word that is nearest to each word of the claim.
    cosine: [A, T], how near. exact: [A, T], whether the sentence has the very word, but for case.
    pair: [A, T], whether it has it right behind the claim's word before.
    title: [A, T], from 0 to 1, how much the title of the sentence's page says of the word.
    likeness: [A], how near the sentence's words are to any of the claim, rare ones counting more.
    length: [A], words. place: [A], on its page, from 0 on. page_size: [A], sentences on its page.
    follows: [A], whether the sentence stands right behind the one before it here.
    """

    claim: NDArray[Any]
    matched: NDArray[Any]
    cosine: NDArray[Any]
    exact: NDArray[np.bool_]
    pair: NDArray[np.bool_]
    title: NDArray[Any]
    likeness: NDArray[Any]
    length: NDArray[Any]
    place: NDArray[Any]
    page_size: NDArray[Any]
    follows: NDArray[np.bool_]


BY_PAIR = ("matched", "cosine", "exact", "pair", "title")
BY_ITEM = ("likeness", "length", "place", "page_size", "follows")


@dataclass(frozen=True, eq=False)
class WordTable:
    """The words that matches are about. facts: [words, 4], rarity (about 0) and `text.FACTS`."""

    vectors: Float[Array, "words dimension"]
    facts: Float[Array, "words facts"]


@dataclass(frozen=True, eq=False)
class Matches:
    """A batch of claims and their sentences, padded; the names are those of ClaimMatches.

    words: the tokens of this batch; all that is learned of one is worked out once.
    real: [batch, tokens], False where a claim is padded. mask: [batch, items], where sentences are.
    """

    words: WordTable
    claim: Int[Array, "batch tokens"]
    real: Bool[Array, "batch tokens"]
    mask: Bool[Array, "batch items"]
    matched: Int[Array, "batch items tokens"]
    cosine: Float[Array, "batch items tokens"]
    exact: Float[Array, "batch items tokens"]
    pair: Float[Array, "batch items tokens"]
    title: Float[Array, "batch items tokens"]
    likeness: Float[Array, "batch items"]
    length: Float[Array, "batch items"]
    place: Float[Array, "batch items"]
    page_size: Float[Array, "batch items"]
    follows: Float[Array, "batch items"]

    def placed(self, place: Callable[[Array], Array]) -> Matches:
        """The same with every array put elsewhere: into another library, onto a device."""
        arrays = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "words"}
        words = WordTable(place(self.words.vectors), place(self.words.facts))
        return Matches(words, **{name: place(array) for name, array in arrays.items()})


def as_batch(claims: Sequence[ClaimMatches], words: WordTable) -> Matches:
    """Several claims, padded to the longest and to the one with the most sentences."""
    tokens = max(len(one.claim) for one in claims)
    items = max(len(one.length) for one in claims)
    batch = len(claims)
    padded: dict[str, NDArray[Any]] = {
        "claim": np.zeros((batch, tokens), np.int64),
        "real": np.zeros((batch, tokens), np.bool_),
        "mask": np.zeros((batch, items), np.bool_),
        "matched": np.zeros((batch, items, tokens), np.int64),
    }
    padded |= {name: np.zeros((batch, items, tokens), np.float32) for name in BY_PAIR[1:]}
    padded |= {name: np.zeros((batch, items), np.float32) for name in BY_ITEM}
    for row, one in enumerate(claims):
        here, long = len(one.length), len(one.claim)
        padded["claim"][row, :long] = one.claim
        padded["real"][row, :long] = True
        padded["mask"][row, :here] = True
        for name in BY_PAIR:
            padded[name][row, :here, :long] = getattr(one, name)
        for name in BY_ITEM:
            padded[name][row, :here] = getattr(one, name)
    return Matches(words, **padded)
