"""Inverse document frequency: how rare a word is, counted in a corpus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TOKEN_IDF = Path(__file__).parent / "wordllama_idf.npy"


@dataclass(frozen=True)
class Idf:
    """idf(w) = log((1 + documents) / (1 + documents with w)) + 1, smoothed as in scikit-learn.

    A word that occurs in no document has the largest value.
    """

    documents: int
    counts: dict[str, int]

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> Idf:
        """Count documents, each given as its tokens."""
        counts: Counter[str] = Counter()
        total = 0
        for tokens in documents:
            counts.update(set(tokens))
            total += 1
        return cls(total, dict(counts))

    def weights(self, tokens: Sequence[str]) -> NDArray[np.float32]:
        """[tokens], at least 1."""
        values = (math.log((1 + self.documents) / (1 + self.counts.get(t, 0))) + 1 for t in tokens)
        return np.fromiter(values, dtype=np.float32, count=len(tokens))


def token_idf() -> NDArray[np.float32]:
    """[tokens], the IDF of every token of the wordllama vectors, which ships with dgn.

    It was counted in 33,927 different sentences of the Wikipedia introductions that belong to
    FEVER's training claims; `python -m experiments.count_idf` counts it again.
    """
    return np.load(_TOKEN_IDF).astype(np.float32)
