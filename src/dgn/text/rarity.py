"""How rare each token of the default vectors is: an IDF a token, counted once, inside the package.

Counted in 33,927 different sentences of Wikipedia introductions, those of FEVER's training claims
(`python -m scripts.count_rarity` counts again).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dgn.text.vectors import TokenVectors

COUNTED = Path(__file__).parent / "wordllama_rarity.npy"


def default_rarity() -> NDArray[np.float32]:
    """[tokens], the IDF of every token of the wordllama vectors."""
    return np.load(COUNTED).astype(np.float32)


def count_rarity(vectors: TokenVectors, sentences: Iterable[Sequence[str]]) -> NDArray[np.float32]:
    """[tokens], log((1 + sentences) / (1 + sentences with the token)) + 1.

    sentences: in portions; each is tokenised at once.
    """
    counts = np.zeros(len(vectors.table), np.int64)
    total = 0
    for portion in sentences:
        for rows in vectors.token_rows(portion):
            counts[np.unique(np.asarray(rows, np.int64))] += 1
        total += len(portion)
    return (np.log((1 + total) / (1 + counts)) + 1).astype(np.float32)
