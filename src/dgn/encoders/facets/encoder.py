"""The facets at run time: NumPy alone, from texts to a set function over the passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn import kernels
from dgn.encoders.base import Encoder, Facet
from dgn.encoders.facets.asked import facets_of, with_asked
from dgn.encoders.facets.formula import LONGEST_QUERY, WHOLE_SCALE, encode
from dgn.encoders.facets.matching import (
    FUNCTION_WORD_SHARE,
    IDF_MIDDLE,
    IDF_SPREAD,
    SAME_STEM,
    SOME_NUMBER,
    TITLE_FROM,
    Matcher,
    Matches,
    WordTable,
)
from dgn.encoders.facets.prepared import PreparedWords
from dgn.encoders.facets.weights import FacetWeights, untrained_weights
from dgn.kernels.facets import FacetKernel
from dgn.objectives import FeatureCoverage, Items, SetFunction
from dgn.query import Passage, Query
from dgn.text import SubwordVectors, WordReader, open_vectors, token_idf


@final
class FacetEncoder(Encoder):
    """Coverage of the query, word by word.

    Args:
        weights: What was learned; by default, the untrained weights.
        vectors: The word vectors; by default, wordllama's.
        idf: [tokens], the IDF of every token of the vectors; by default, the one that ships with
            dgn.
    """

    def __init__(
        self,
        weights: FacetWeights | None = None,
        vectors: SubwordVectors | None = None,
        idf: NDArray[np.float32] | None = None,
    ) -> None:
        self.vectors = default_vectors() if vectors is None else vectors
        self.idf = token_idf() if idf is None else idf
        untrained = untrained_weights(self.vectors.dimension)
        self.weights = weights or untrained
        self._is_trained = weights is not None and not weights.equals(untrained)
        self.matcher = Matcher(WordReader(self.vectors, self.idf))

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        if kernels.is_available():
            return self._encode_compiled(queries)
        matches, words = self.matcher.match(queries)
        found = encode(self.weights, Matches.of(matches, WordTable.of(words)))
        return with_asked(queries, *found)

    def _encode_compiled(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        texts, known = self.matcher.words_of(queries)
        features, weights, target, mask = self._kernel.compute(known, texts)
        items = Items(features) if len(queries) == 1 else Items(features, mask)
        return with_asked(queries, FeatureCoverage(weights, target=target), items)

    def prepare(self, passages: Sequence[Passage]) -> PreparedWords | None:
        if not kernels.is_available():
            return None
        return PreparedWords.of(self.vectors, self.idf, self._kernel, passages)

    def load_prepared(self, folder: Path) -> PreparedWords | None:
        if not kernels.is_available():
            return None
        return PreparedWords.load(self.vectors, self.idf, self._kernel, folder)

    @cached_property
    def _kernel(self) -> FacetKernel:
        w = {name: np.asarray(weight) for name, weight in vars(self.weights).items()}

        def positive(name: str) -> tuple[float, ...]:
            return tuple(np.logaddexp(w[name], 0).tolist())

        arrays = ("word_weight", "projection", "hidden", "hidden_bias", "output")
        has_relevance = len(w["relevance_weight"]) > 0
        numbers = {
            "threshold": w["threshold"].item(),
            "scale": math.exp(w["log_scale"].item()),
            "title": positive("title")[0],
            "likeness": positive("likeness")[0],
            "likeness_from": w["likeness"][1].item(),
            "relevance": positive("relevance_weight")[0] if has_relevance else -1.0,
            "output_bias": w["output_bias"].item(),
            "middle_idf": IDF_MIDDLE,
            "spread_idf": IDF_SPREAD,
            "same_stem": SAME_STEM,
            "some_number": SOME_NUMBER,
            "title_from": TITLE_FROM,
            "function_share": FUNCTION_WORD_SHARE,
            "whole_scale": WHOLE_SCALE,
            "longest_query": LONGEST_QUERY,
        }
        several = {name: positive(name) for name in ("bonus", "neighbours")}
        return FacetKernel({name: w[name] for name in arrays}, numbers, several)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(rows) for rows in self.vectors.token_rows(texts)]

    def facets(self, query: str) -> tuple[Facet, ...]:
        """The words of the query, and what it asks for."""
        return facets_of(query)

    @property
    def uses_blas(self) -> bool:
        return not kernels.is_available()

    @property
    def parameters(self) -> int:
        return sum(w.size for w in vars(self.weights).values()) if self._is_trained else 0

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        # The IDF that ships with dgn is not stored again.
        is_shipped = np.array_equal(self.idf, token_idf())
        description = {
            "family": "facets",
            "vectors": self.vectors.fingerprint,
            "idf": "shipped" if is_shipped else "own",
            "sizes": asdict(self.weights.sizes),
        }
        arrays = {name: np.asarray(w) for name, w in vars(self.weights).items()}
        return description, arrays if is_shipped else {**arrays, "idf": self.idf}


def default_vectors() -> SubwordVectors:
    """The vectors that the facets are made for."""
    vectors = open_vectors("wordllama")
    assert isinstance(vectors, SubwordVectors)  # noqa: S101
    return vectors
