"""The paper's features: pooled vectors of claim and sentence, multiplied element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from dgn.encoders.encoder import Encoded, TextEncoder
from dgn.encoders.query import Query
from dgn.objectives import FeatureCoverage, Items
from dgn.text.matching import unit_rows
from dgn.text.tokens import split_words
from dgn.text.vectors import PooledVectors


@final
class PooledEncoder(TextEncoder):
    """relu(scale · claim ⊙ sentence), of vectors of length 1: the untrained greedy baseline."""

    def __init__(self, vectors: PooledVectors, scale: float = 100.0) -> None:
        self._vectors, self._scale = vectors, scale

    def encode(self, queries: Sequence[Query]) -> Encoded:
        texts = [text for query in queries for text in (query.claim, *query.sentences)]
        vectors = unit_rows(np.asarray(self._vectors.pooled(texts)))
        longest = max(len(query.sentences) for query in queries)
        features = np.zeros((len(queries), longest, vectors.shape[1]), np.float32)
        mask = np.zeros((len(queries), longest), np.bool_)
        place = 0
        for row, query in enumerate(queries):
            count = len(query.sentences)
            product = vectors[place] * vectors[place + 1 : place + 1 + count]
            features[row, :count] = np.maximum(self._scale * product, 0)
            mask[row, :count] = True
            place += 1 + count
        return Encoded(FeatureCoverage(), Items(features, mask), (0,) * len(queries))

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        return [len(split_words(text)) for text in texts]
