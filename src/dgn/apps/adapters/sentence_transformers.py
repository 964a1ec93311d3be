"""sentence-transformers: a user's own models as vectors or as scores; needs `dgn[sentences]`.

model = SentenceTransformer("all-MiniLM-L6-v2")
selector.select(query, passages, scores=scores_of(model, query, passages))  # words and model
Selector(encoder_of(model)).select(query, passages)                         # the model alone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from dgn.errors import require_extra
from dgn.text.encoders import PooledEncoder
from dgn.text.vectors import SentenceEncoder

require_extra(
    "The sentence-transformers adapter", package="sentence_transformers", extra="sentences"
)

from sentence_transformers import CrossEncoder, SentenceTransformer


def encoder_of(model: SentenceTransformer, scale: float = 100.0) -> PooledEncoder:
    """An encoder for `Selector` that reads texts with this model.

    Args:
        model: A bi-encoder.
        scale: What query ⊙ passage is multiplied with; the larger, the more diverse the selection.
    """
    return PooledEncoder(SentenceEncoder(model), scale)


def scores_of(
    model: SentenceTransformer | CrossEncoder, query: str, passages: Sequence[str]
) -> list[float]:
    """Scores for `Selector.select(…, scores=…)`.

    Args:
        model: A CrossEncoder, whose scores are returned, or a SentenceTransformer, for cosines.
        query: The query.
        passages: The passages.
    """
    loose: Any = model
    if isinstance(model, CrossEncoder):
        pairs = [(query, passage) for passage in passages]
        found = np.asarray(loose.predict(pairs, show_progress_bar=False), np.float64)
    else:
        rows = loose.encode([query, *passages], normalize_embeddings=True, show_progress_bar=False)
        rows = np.asarray(rows, np.float64)
        found = rows[1:] @ rows[0]
    return cast("list[float]", found.reshape(len(passages)).tolist())
