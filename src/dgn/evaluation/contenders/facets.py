"""Claim facets as contenders: the shipped selector, a trained one, or the untrained start."""

from __future__ import annotations

from pathlib import Path
from typing import final

import numpy as np

from dgn.encoders import FacetEncoder, TextEncoder
from dgn.evaluation.contenders.base import Contender, Picks, Questions
from dgn.features.queries import query_of
from dgn.maximizers import greedy
from dgn.selector import Selector
from dgn.text.rarity import default_rarity
from dgn.text.wordllama import WordLlamaVectors

_CLAIMS_AT_ONCE = 64


@final
class ClaimFacets(Contender):
    """Picks by coverage of the claim's words. titles: whether pages' titles are told."""

    def __init__(self, name: str, encoder: TextEncoder, *, titles: bool = True) -> None:
        self.name, self._encoder, self._titles = name, encoder, titles
        if isinstance(encoder, FacetEncoder):
            self.parameters = sum(weight.size for weight in vars(encoder.weights).values())

    @classmethod
    def pretrained(cls, model: Path | None = None, *, titles: bool = True) -> ClaimFacets:
        """The shipped one, or that of a folder, whose name it takes."""
        name = "facets" if model is None else model.resolve().name
        encoder = Selector.from_pretrained(model).encoder
        return cls(name if titles else f"{name}-no-title", encoder, titles=titles)

    @classmethod
    def untrained(cls, *, titles: bool = True) -> ClaimFacets:
        """Cosines, IDF and titles; nothing learned."""
        encoder = FacetEncoder(WordLlamaVectors(), default_rarity())
        made = cls("facets-untrained" + ("" if titles else "-no-title"), encoder, titles=titles)
        made.parameters = 0
        return made

    def pick(self, questions: Questions, k: int) -> Picks:
        picks = np.full((len(questions.examples), k), -1, dtype=np.int64)
        queries = [query_of(example, titles=self._titles) for example in questions.examples]
        by_length = sorted(range(len(queries)), key=lambda row: len(queries[row].sentences))
        for start in range(0, len(queries), _CLAIMS_AT_ONCE):
            rows = by_length[start : start + _CLAIMS_AT_ONCE]
            encoded = self._encoder.encode([queries[row] for row in rows])
            chosen = greedy(encoded.objective, encoded.items, k).indices
            picks[rows, : chosen.shape[1]] = chosen
        return picks
