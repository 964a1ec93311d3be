"""Contenders that look at words alone: the first sentences, TF-IDF and BM25.

How rare a word is, they learn from the candidates of all questions, each sentence counted once;
never from gold.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.data.records import Example
from dgn.evaluation.contenders.base import Contender, Picks, Questions, best_first
from dgn.text.idf import Idf
from dgn.text.tokens import split_words

Terms = Callable[[str], Counter[str]]


@lru_cache(maxsize=200_000)
def _words(text: str) -> Counter[str]:
    return Counter(word.lower() for word in split_words(text))


@lru_cache(maxsize=200_000)
def _words_and_bigrams(text: str) -> Counter[str]:
    words = [word.lower() for word in split_words(text)]
    return Counter([*words, *(" ".join(pair) for pair in itertools.pairwise(words))])


def _different_sentences(questions: Questions) -> list[str]:
    texts = (candidate.text for example in questions.examples for candidate in example.candidates)
    return list(dict.fromkeys(texts))


@final
class FirstSentences(Contender):
    """The first k: a page says first what matters most."""

    name = "first k"

    def pick(self, questions: Questions, k: int) -> Picks:
        return best_first([np.zeros(len(example.gold)) for example in questions.examples], k)


@final
class TfIdf(Contender):
    """Cosine of TF-IDF vectors, as in FEVER's own baseline; of words, or of bigrams as well."""

    def __init__(self, bigrams: bool = False) -> None:
        self.name = "TF-IDF, bigrams too" if bigrams else "TF-IDF, words"
        self._terms: Terms = _words_and_bigrams if bigrams else _words

    def pick(self, questions: Questions, k: int) -> Picks:
        idf = Idf.of(self._terms(text) for text in _different_sentences(questions))
        return best_first([self._scores(example, idf) for example in questions.examples], k)

    def _scores(self, example: Example, idf: Idf) -> NDArray[np.float64]:
        claim = self._vector(example.claim.text, idf)
        sentences = [self._vector(candidate.text, idf) for candidate in example.candidates]
        return np.array(
            [sum(claim.get(term, 0.0) * w for term, w in vector.items()) for vector in sentences]
        )

    def _vector(self, text: str, idf: Idf) -> dict[str, float]:
        """Unit length; empty for a text without words."""
        counts = self._terms(text)
        weights = idf.weights(list(counts)).tolist()
        vector = {
            term: count * weight
            for (term, count), weight in zip(counts.items(), weights, strict=True)
        }
        length = math.sqrt(sum(weight**2 for weight in vector.values())) or 1.0
        return {term: weight / length for term, weight in vector.items()}


@final
class Bm25(Contender):
    """Okapi BM25 of every candidate, with Lucene's idf, which is never negative."""

    name = "BM25"

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        self._k1, self._b = k1, b

    def pick(self, questions: Questions, k: int) -> Picks:
        sentences = _different_sentences(questions)
        known = Idf.of(_words(text) for text in sentences)
        # Where no candidate has a word, nothing is divided by its length.
        mean_length = sum(_words(text).total() for text in sentences) / len(sentences) or 1.0
        return best_first(
            [self._scores(example, known, mean_length) for example in questions.examples], k
        )

    def _scores(self, example: Example, known: Idf, mean_length: float) -> NDArray[np.float64]:
        claim = _words(example.claim.text)
        scores = np.zeros(len(example.candidates))
        for place, candidate in enumerate(example.candidates):
            counts = _words(candidate.text)
            norm = self._k1 * (1 - self._b + self._b * counts.total() / mean_length)
            for term, asked in claim.items():
                if count := counts.get(term, 0):
                    having = known.counts.get(term, 0)
                    rarity = math.log(1 + (known.documents - having + 0.5) / (having + 0.5))
                    scores[place] += asked * rarity * count / (count + norm)
        return scores
