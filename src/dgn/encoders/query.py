"""What an encoder is asked: a claim, and the sentences that may say something of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """A claim and the sentences to pick from.

    titles: of each sentence's page, '' where there is none. places: of each sentence on its page.
    pages: which page each sentence is on; neighbours share one.
    """

    claim: str
    sentences: Sequence[str]
    titles: Sequence[str]
    places: Sequence[int]
    pages: Sequence[int]

    @classmethod
    def of_page(cls, claim: str, sentences: Sequence[str], title: str = "") -> Query:
        """All sentences of one page, in order."""
        count = len(sentences)
        return cls(claim, sentences, [title] * count, range(count), [0] * count)
