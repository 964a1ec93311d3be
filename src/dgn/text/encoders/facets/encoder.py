"""The facets at run time: NumPy alone, from texts to a set function over the passages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.functions import FeatureCoverage, Items, SetFunction
from dgn.core.native.facets import FacetKernel
from dgn.errors import InvalidInput
from dgn.text.encoders.base import (
    Encoder,
    Facet,
    KnownScores,
    ReadArrays,
    require_keys,
    require_sizes,
)
from dgn.text.encoders.facets.formula import (
    LONGEST_QUERY,
    WHOLE_SCALE,
    FacetSizes,
    FacetWeights,
    encode,
    shapes_of,
    untrained_weights,
)
from dgn.text.encoders.facets.index import IndexedWords
from dgn.text.encoders.facets.known import known_scores
from dgn.text.encoders.facets.matching import (
    FUNCTION_WORD_SHARE,
    IDF_MIDDLE,
    IDF_SPREAD,
    SAME_STEM,
    SOME_NUMBER,
    TITLE_FROM,
    Matches,
    match_query,
    read_queries,
)
from dgn.text.encoders.facets.questions import facets_of, with_asked
from dgn.text.query import Passage, Query
from dgn.text.vectors import SubwordVectors, open_vectors, token_idf
from dgn.text.vocabulary import WordReader


@final
class FacetEncoder(Encoder):
    """Coverage of the query, word by word: the default encoder.

    Args:
        weights: What was learned; by default, the untrained weights.
        vectors: The word vectors; by default, wordllama's.
        idf: [tokens], the IDF of every token of the vectors; by default, the one that ships with
            dgn.
    """

    family = "facets"
    description = (
        "The features are the words of the query, compared with the words of each passage by "
        "spelling, stem and static word vectors (wordllama), how like the query a passage is as a "
        "whole, and how relevant a small network finds it. Words of a title count as covered by "
        "its passages."
    )
    limits = (
        "It compares words, not meanings: a fact in entirely different words is missed, negation "
        "is not understood, and it cannot tell whether a passage supports or refutes a claim."
    )

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
        self.reader = WordReader(self.vectors, self.idf)

    def encode(self, queries: Sequence[Query]) -> tuple[SetFunction, Items]:
        words, table = read_queries(self.reader, queries)
        if native.is_available():
            features, weights, target, mask = self._kernel.compute(table, words)
            items = Items(features) if len(queries) == 1 else Items(features, mask)
            return with_asked(queries, FeatureCoverage(weights, target=target), items)
        matches = Matches.of([match_query(one, table) for one in words], table)
        return with_asked(queries, *encode(self.weights, matches))

    def prepare(self, passages: Sequence[Passage]) -> IndexedWords | None:
        if not native.is_available():
            return None
        return IndexedWords.of(self.vectors, self.idf, self._kernel, passages)

    def load_prepared(self, arrays: Mapping[str, NDArray[Any]]) -> IndexedWords | None:
        if not native.is_available():
            return None
        return IndexedWords.load(self.vectors, self.idf, self._kernel, arrays)

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

    def known_scores(self, query: Query) -> KnownScores:
        return known_scores(self.reader, query)

    @staticmethod
    def facets(query: str) -> tuple[Facet, ...]:
        """The words of the query, and what it asks for."""
        return facets_of(query)

    @property
    def uses_blas(self) -> bool:
        return not native.is_available()

    @property
    def parameters(self) -> int:
        return sum(w.size for w in vars(self.weights).values()) if self._is_trained else 0

    @property
    def fingerprint(self) -> str:
        return f"{type(self).__name__} {self.vectors.fingerprint}"

    def save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        # The IDF that ships with dgn is not stored again.
        is_shipped = np.array_equal(self.idf, token_idf())
        description = {
            "family": self.family,
            "vectors": self.vectors.fingerprint,
            "idf": "shipped" if is_shipped else "own",
            "sizes": asdict(self.weights.sizes),
        }
        arrays = {name: np.asarray(w) for name, w in vars(self.weights).items()}
        return description, arrays if is_shipped else {**arrays, "idf": self.idf}

    @classmethod
    def load(
        cls, description: Mapping[str, Any], arrays: ReadArrays, vectors: str | None
    ) -> FacetEncoder:
        require_keys(description, vectors=str, idf=str, sizes=dict)
        sizes = cast("dict[str, Any]", description["sizes"])
        names = {one.name for one in fields(FacetSizes)}
        if set(sizes) != names:
            allowed = f"a dictionary with {', '.join(sorted(names))}"
            raise InvalidInput("sizes", found=f"{sizes!r:.60}", allowed=allowed)
        require_sizes(list(sizes.values()))
        wanted = FacetSizes(**sizes)
        if vectors not in (None, "wordllama"):
            raise InvalidInput(
                "vectors", found=repr(vectors), allowed="left out; the facets need wordllama's"
            )
        installed = default_vectors()
        if description["vectors"] != installed.fingerprint:
            raise InvalidInput(
                "vectors",
                message=f"The model was trained on the vectors {description['vectors']}, and "
                f"{installed.fingerprint} are installed; install the version of wordllama that it "
                "was trained with.",
            )
        if wanted.dimension != installed.dimension:
            raise InvalidInput(
                "sizes",
                message=f"The model has the dimension {wanted.dimension}, and the vectors have "
                f"{installed.dimension}.",
            )
        extra = {} if description["idf"] == "shipped" else {"idf": (len(installed.table),)}
        weights = arrays({**shapes_of(wanted), **extra})
        idf = weights.pop("idf").astype(np.float32) if extra else None
        return cls(FacetWeights(**weights), installed, idf)


def default_vectors() -> SubwordVectors:
    """The vectors that the facets are made for."""
    vectors = open_vectors("wordllama")
    assert isinstance(vectors, SubwordVectors)  # noqa: S101
    return vectors
