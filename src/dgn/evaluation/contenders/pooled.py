"""Contenders on pooled vectors that learn nothing: cosine Top-k, and greedy on relu(X)."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from dgn.data.batches import ClaimBatches
from dgn.evaluation.contenders.base import Contender, Picks, Questions
from dgn.maximizers import greedy, top_k
from dgn.objectives import FeatureCoverage, Items

_CLAIMS_AT_ONCE = 256


@final
class CosineTopK(Contender):
    """The k sentences nearest to the claim: the paper's Top-k."""

    name = "Top-k"

    def pick(self, questions: Questions, k: int) -> Picks:
        table = questions.vectors
        picks = np.full((len(table), k), -1, dtype=np.int64)
        lengths = np.linalg.norm(table.sentences.astype(np.float32), axis=1)
        for batch in ClaimBatches(table, _CLAIMS_AT_ONCE, seed=0).once():
            counted: NDArray[np.int64] = np.arange(int(batch.mask.shape[1]))
            places = np.where(batch.mask, table.offsets[batch.rows, None] + counted, 0)
            norms = np.maximum(lengths[table.candidates[places]], 1e-12)
            # The claim's own length is the same for all its sentences.
            indices = top_k(batch.x.sum(axis=2) / norms, k, batch.mask).indices
            picks[batch.rows, : indices.shape[1]] = indices
        return picks


@final
class UntrainedGreedy(Contender):
    """Greedy on relu(scale · X) with equal weights: the paper's Greedy, where a DGN may start."""

    def __init__(self, scale: float = 1.0) -> None:
        self.name, self.scale = f"Greedy ×{scale:g}", scale

    def pick(self, questions: Questions, k: int) -> Picks:
        table = questions.vectors
        picks = np.full((len(table), k), -1, dtype=np.int64)
        for batch in ClaimBatches(table, _CLAIMS_AT_ONCE, seed=0).once():
            items = Items(np.maximum(self.scale * batch.x, 0), batch.mask)
            indices = greedy(FeatureCoverage(), items, k).indices
            picks[batch.rows, : indices.shape[1]] = indices
        return picks
