"""Claim facets at run time: NumPy alone, from texts to a set function over the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.encoders.encoder import Encoded, Facet, TextEncoder
from dgn.encoders.facet_weights import FacetWeights, untrained_weights
from dgn.encoders.facets import encode
from dgn.encoders.matcher import Matcher, word_table
from dgn.encoders.matches import as_batch
from dgn.encoders.query import Query
from dgn.objectives import FeatureCoverage, Items
from dgn.text.tokens import clean_brackets
from dgn.text.vectors import SubwordVectors
from dgn.text.word_tokens import WordReader


@final
class FacetEncoder(TextEncoder):
    """Coverage of the claim, word by word.

    rarity: [tokens], the IDF of every token of the vectors. weights: what was learned; left out,
    the untrained ones.
    """

    def __init__(
        self,
        vectors: SubwordVectors,
        rarity: NDArray[np.float32],
        weights: FacetWeights | None = None,
    ) -> None:
        self.vectors, self.rarity = vectors, rarity
        self.weights = weights or untrained_weights(vectors.dimension)
        self._reader = WordReader(vectors, rarity)
        self._matcher = Matcher(self._reader)

    def encode(self, queries: Sequence[Query]) -> Encoded:
        matches, words = self._matcher.match(queries)
        batch = as_batch(matches, word_table(words))
        facets = encode(self.weights, batch)
        return Encoded(
            FeatureCoverage(facets.weights),
            Items(facets.features, batch.mask),
            tuple(len(one.claim) for one in matches),
            lambda number: self._facets(queries[number].claim),
            facets.full,
            batch.title,
        )

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(rows) for rows in self.vectors.token_rows(texts)]

    def _facets(self, claim: str) -> tuple[Facet, ...]:
        """The claim's words: what was cut into several tokens is one facet."""
        words = self._reader.words(clean_brackets(claim))
        return tuple(Facet(name, tuple(tokens)) for name, tokens in words)
