"""MiniLM's sentence embeddings as vectors for the baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Float
from dgn.minilm.package import WordPieces, read_weights
from dgn.minilm.reading import TextReader
from dgn.text import PooledVectors
from dgn.text.spelling import clean_brackets


@final
class MiniLMVectors(PooledVectors):
    """MiniLM's sentence embeddings as pooled vectors, for the baselines of dgn.evaluation.

    Args:
        in_torch: Whether torch computes them, as most do, or our kernel with 8 bits, which is
            several times faster.
    """

    def __init__(self, *, in_torch: bool = True) -> None:
        self._known: dict[str, NDArray[np.float32]] = {}
        self._pieces = WordPieces()
        self.dimension, self.fingerprint = 384, "minilm"
        self._embed = self._with_torch() if in_torch else self._with_kernel()

    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            vectors = self._embed([clean_brackets(text) for text in new])
            self._known.update(zip(new, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])

    def forget(self) -> None:
        """Read texts anew, also those that are known."""
        self._known.clear()

    def _with_torch(self) -> Callable[[list[str]], NDArray[np.float32]]:
        from dgn.minilm.transformer import embed, load_minilm

        encoder = load_minilm(dropout=0.0)
        return lambda texts: np.stack([v.numpy() for v in embed(encoder, self._pieces, texts)])

    def _with_kernel(self) -> Callable[[list[str]], NDArray[np.float32]]:
        read = TextReader(read_weights())
        return lambda texts: read(texts, self._pieces.tokens_of(texts))[1]
