"""Contenders from elsewhere: the diversifiers of pyversity (`dgn[peers]`), on pooled vectors."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from dgn.errors import InvalidInput, require_extra
from dgn.evaluation.contenders.base import Contender, Picks, Questions

STRATEGIES = ("mmr", "msd", "dpp")


@final
class Diversified(Contender):
    """Relevance is the cosine with the claim; diversity is the strategy's own business.

    diversity: from 0, relevance alone, to 1.
    """

    def __init__(self, strategy: str, diversity: float = 0.5) -> None:
        require_extra(f"the contender {strategy}", package="pyversity", extra="peers")
        if strategy not in STRATEGIES or not 0 <= diversity <= 1:
            raise InvalidInput(
                "strategy",
                found=f"{strategy}, diversity {diversity}",
                allowed=f"{', '.join(STRATEGIES)}, with a diversity from 0 to 1",
            )
        self.name = f"{strategy.upper()} {diversity:g}"
        self._strategy, self._diversity = strategy, diversity

    def pick(self, questions: Questions, k: int) -> Picks:
        import pyversity

        diversify: Any = pyversity.diversify
        table = questions.vectors
        claims, sentences = (_unit(part) for part in (table.claims, table.sentences))
        picks = np.full((len(table), k), -1, dtype=np.int64)
        for row, claim in enumerate(claims):
            start, end = table.offsets[row], table.offsets[row + 1]
            candidates = sentences[table.candidates[start:end]]
            found = diversify(
                candidates,
                candidates @ claim,
                k=min(k, len(candidates)),
                strategy=self._strategy,
                diversity=self._diversity,
            ).indices
            picks[row, : len(found)] = found
        return picks


def _unit(vectors: Any) -> Any:
    vectors = vectors.astype(np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
