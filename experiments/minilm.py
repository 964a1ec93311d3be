"""MiniLM's sentence embeddings as vectors for the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Float
from dgn.text import PooledVectors
from dgn.text.encoders.minilm.transformer import WordPieces, embed, load_minilm
from dgn.text.spelling import clean_brackets


@final
class MiniLMVectors(PooledVectors):
    """MiniLM's sentence embeddings as pooled vectors, for the baselines of dgn.evaluation."""

    def __init__(self) -> None:
        self._encoder, self._pieces = load_minilm(dropout=0.0), WordPieces()
        self.dimension, self.fingerprint = self._encoder.width, "minilm"
        self._known: dict[str, NDArray[np.float32]] = {}

    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        cleaned = [clean_brackets(text) for text in new]
        for text, vector in zip(new, embed(self._encoder, self._pieces, cleaned), strict=True):
            self._known[text] = vector.numpy()
        return np.stack([self._known[text] for text in texts])

    def forget(self) -> None:
        """Read texts anew, also those that are known."""
        self._known.clear()
