"""Baselines on words and on vectors, and any Selector as a baseline.

The lexical baselines count how rare a word is in the passages of all queries, each passage once;
they never see gold.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput, require_extra
from dgn.selector import Limits, Selector
from dgn.text import PooledVectors
from dgn.text.languages import ENGLISH, find_language, written_words
from dgn.text.query import Query
from dgn.text.vectors import unit_rows
from dgn.text.words import split_words, stem

STRATEGIES = ("mmr", "msd", "dpp")

_QUERIES_PER_BATCH = 64
_TEXTS_PER_BATCH = 4096

Terms = Callable[[str], Counter[str]]
TermsIn = Callable[[str, str], Counter[str]]
"""The terms of a text, given its language."""


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


class Baseline(ABC):
    """A way to select passages.

    Attributes:
        name: Its name in tables.
        parameters: The number of learned parameters.
    """

    name: str
    parameters: int = 0

    @abstractmethod
    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        """[queries, k], the selected passages in order of selection, −1 where there are fewer."""


@final
class SelectorBaseline(Baseline):
    """A Selector, whatever its encoder.

    Args:
        name: The name in tables.
        selector: The selector.
        titles: Whether it sees the titles of the passages.
        breadth: How much it counts that the passages represent all of them; None for the default.
    """

    def __init__(
        self, name: str, selector: Selector, *, titles: bool = True, breadth: float | None = None
    ) -> None:
        self.name, self._selector, self._titles = name, selector, titles
        self._breadth = breadth
        self.parameters = selector.encoder.parameters

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        selected = np.full((len(queries), k), -1, dtype=np.int64)
        by_length = sorted(range(len(queries)), key=lambda row: len(queries[row].passages))
        for start in range(0, len(queries), _QUERIES_PER_BATCH):
            rows = by_length[start : start + _QUERIES_PER_BATCH]
            batch = [queries[row] if self._titles else _untitled(queries[row]) for row in rows]
            selections = self._selector.select_queries(batch, Limits(k=k, breadth=self._breadth))
            for row, selection in zip(rows, selections, strict=True):
                selected[row, : len(selection)] = selection.indices
        return selected


@final
class FirstPassages(Baseline):
    """The first k passages: a page says first what matters most."""

    name = "first k"

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        return best_first([np.zeros(len(query.passages)) for query in queries], k)


@final
class TfIdf(Baseline):
    """The cosine of TF-IDF vectors, as in FEVER's own baseline, of words or also of bigrams."""

    def __init__(self, bigrams: bool = False) -> None:
        self.name = "TF-IDF, bigrams too" if bigrams else "TF-IDF, words"
        self._terms: Terms = _words_and_bigrams if bigrams else _words

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        idf = Idf.of(self._terms(text) for text in _different_passages(queries))
        return best_first([self._scores(query, idf) for query in queries], k)

    def _scores(self, query: Query, idf: Idf) -> NDArray[np.float64]:
        wanted = self._vector(query.text, idf)
        passages = [self._vector(text, idf) for text in query.texts]
        return np.array(
            [sum(wanted.get(term, 0.0) * w for term, w in vector.items()) for vector in passages]
        )

    def _vector(self, text: str, idf: Idf) -> dict[str, float]:
        """A vector of length 1; empty for a text without words."""
        counts = self._terms(text)
        weights = idf.weights(list(counts)).tolist()
        vector = {
            term: count * weight
            for (term, count), weight in zip(counts.items(), weights, strict=True)
        }
        length = math.sqrt(sum(weight**2 for weight in vector.values())) or 1.0
        return {term: weight / length for term, weight in vector.items()}


@final
class Bm25(Baseline):
    """Okapi BM25 of every passage, with Lucene's IDF, which is never negative.

    Args:
        k1: How much further occurrences of a word count.
        b: How much long passages are discounted.
        stemmed: Whether the forms of a word count as the same word; each text is read in its
            language.
    """

    def __init__(self, k1: float = 1.5, b: float = 0.75, *, stemmed: bool = False) -> None:
        self.name = "BM25, stems" if stemmed else "BM25"
        self._k1, self._b = k1, b
        self._terms: TermsIn = _stems if stemmed else _words_in

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        return best_first(self.scores(queries), k)

    def scores(self, queries: Sequence[Query]) -> list[NDArray[np.float64]]:
        """The score of every passage of every query."""
        pairs = (((text, query.read_language) for text in query.texts) for query in queries)
        passages = list(dict.fromkeys(itertools.chain.from_iterable(pairs)))
        idf = Idf.of(self._terms(*passage) for passage in passages)
        # If no passage has a word, nothing is divided by its length.
        mean_length = (
            sum(self._terms(*passage).total() for passage in passages) / len(passages) or 1.0
        )
        return [self._scores(query, idf, mean_length) for query in queries]

    def _scores(self, query: Query, idf: Idf, mean_length: float) -> NDArray[np.float64]:
        wanted = self._terms(query.text, query.read_language)
        scores = np.zeros(len(query.passages))
        each = ((text, query.read_language) for text in query.texts)
        for index, (text, language) in enumerate(each):
            counts = self._terms(text, language)
            norm = self._k1 * (1 - self._b + self._b * counts.total() / mean_length)
            for term, times in wanted.items():
                if count := counts.get(term, 0):
                    having = idf.counts.get(term, 0)
                    rarity = math.log(1 + (idf.documents - having + 0.5) / (having + 0.5))
                    scores[index] += times * rarity * count / (count + norm)
        return scores


@final
class PooledTopK(Baseline):
    """The k passages with the largest product with the query: top-k of the paper.

    Args:
        vectors: The vectors of texts.
        name: The name in tables.
        unit: Whether the vectors are scaled to length 1: cosines, or dot products.
    """

    def __init__(self, vectors: PooledVectors, name: str = "Top-k", *, unit: bool = True) -> None:
        self.name, self._vectors, self._unit = name, vectors, unit

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        embedded = _embed(self._vectors, queries, unit=self._unit)
        return best_first([passages @ query for query, passages in embedded], k)


@final
class Diversified(Baseline):
    """A diversifier of pyversity (`dgn[peers]`) on the cosine with the query.

    Args:
        strategy: "mmr", "msd" or "dpp".
        vectors: The vectors of texts.
        diversity: From 0, relevance alone, to 1.
    """

    def __init__(self, strategy: str, vectors: PooledVectors, diversity: float = 0.5) -> None:
        require_extra(f"The baseline {strategy}", package="pyversity", extra="peers")
        if strategy not in STRATEGIES:
            allowed = f"one of {', '.join(STRATEGIES)}"
            raise InvalidInput("strategy", found=repr(strategy), allowed=allowed)
        if not 0 <= diversity <= 1:
            raise InvalidInput("diversity", found=f"{diversity}", allowed="from 0 to 1")
        self.name = f"{strategy.upper()} {diversity:g}"
        self._strategy, self._vectors, self._diversity = strategy, vectors, diversity

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        import pyversity

        diversify: Any = pyversity.diversify
        selected = np.full((len(queries), k), -1, dtype=np.int64)
        for row, (query, passages) in enumerate(_embed(self._vectors, queries)):
            indices = diversify(
                passages,
                passages @ query,
                k=min(k, len(passages)),
                strategy=self._strategy,
                diversity=self._diversity,
            ).indices
            selected[row, : len(indices)] = indices
        return selected


def _embed(
    vectors: PooledVectors, queries: Sequence[Query], *, unit: bool = True
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """The vector of every query and those of its passages, of length 1 if `unit`."""
    texts = list(dict.fromkeys(t for query in queries for t in (query.text, *query.texts)))
    parts = [
        np.asarray(vectors.pooled(texts[start : start + _TEXTS_PER_BATCH]), np.float32)
        for start in range(0, len(texts), _TEXTS_PER_BATCH)
    ]
    rows = np.concatenate(parts)
    rows = unit_rows(rows) if unit else rows
    row = {text: number for number, text in enumerate(texts)}
    return [(rows[row[q.text]], rows[[row[text] for text in q.texts]]) for q in queries]


def best_first(scores: Sequence[NDArray[Any]], k: int) -> NDArray[np.int64]:
    """The k best scores of every query; ties go to the lowest index."""
    selected = np.full((len(scores), k), -1, dtype=np.int64)
    for row, of_query in enumerate(scores):
        best = np.argsort(-of_query, kind="stable")[:k]
        selected[row, : len(best)] = best
    return selected


def _untitled(query: Query) -> Query:
    return replace(query, passages=tuple(replace(p, title="") for p in query.passages))


@lru_cache(maxsize=200_000)
def _words(text: str) -> Counter[str]:
    return Counter(word.lower() for word in split_words(text))


def _words_in(text: str, language: str) -> Counter[str]:
    del language
    return _words(text)


@lru_cache(maxsize=200_000)
def _stems(text: str, language: str) -> Counter[str]:
    if language != ENGLISH:
        rules = find_language(language)
        return Counter(rules.stem(rules.read(word)) for word in written_words(text, language))
    return Counter(map(_stem, _words(text).elements()))


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return stem(word.casefold())


@lru_cache(maxsize=200_000)
def _words_and_bigrams(text: str) -> Counter[str]:
    words = [word.lower() for word in split_words(text)]
    return Counter([*words, *(" ".join(pair) for pair in itertools.pairwise(words))])


def _different_passages(queries: Sequence[Query]) -> list[str]:
    return list(dict.fromkeys(text for query in queries for text in query.texts))
