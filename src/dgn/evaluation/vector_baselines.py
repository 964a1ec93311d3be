"""Baselines on pooled vectors: top-k, untrained greedy, and pyversity's diversifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput, require_extra
from dgn.evaluation.baselines import Baseline, SelectorBaseline, best_first
from dgn.selector import Selector
from dgn.text import PooledVectors
from dgn.text.pooled import PooledEncoder
from dgn.text.query import Query
from dgn.text.vectors import unit_rows

STRATEGIES = ("mmr", "msd", "dpp")
_TEXTS_PER_BATCH = 4096


@final
class PooledTopK(Baseline):
    """The k passages with the largest product with the query: top-k of the paper.

    Args:
        vectors: The vectors of texts.
        name: The name in tables.
        unit: Whether the vectors are scaled to length 1: cosines, or dot products.
    """

    def __init__(self, vectors: PooledVectors, name: str = "Top-k", *, unit: bool = True) -> None:
        self.name, self._vectors, self._unit = name, vectors, unit

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        embedded = _embed(self._vectors, queries, unit=self._unit)
        return best_first([passages @ query for query, passages in embedded], k)


@final
class Diversified(Baseline):
    """A diversifier of pyversity (`dgn[peers]`) on the cosine with the query.

    Args:
        strategy: "mmr", "msd" or "dpp".
        vectors: The vectors of texts.
        diversity: From 0, relevance alone, to 1.
    """

    def __init__(self, strategy: str, vectors: PooledVectors, diversity: float = 0.5) -> None:
        require_extra(f"The baseline {strategy}", package="pyversity", extra="peers")
        if strategy not in STRATEGIES:
            allowed = f"one of {', '.join(STRATEGIES)}"
            raise InvalidInput("strategy", found=repr(strategy), allowed=allowed)
        if not 0 <= diversity <= 1:
            raise InvalidInput("diversity", found=f"{diversity}", allowed="from 0 to 1")
        self.name = f"{strategy.upper()} {diversity:g}"
        self._strategy, self._vectors, self._diversity = strategy, vectors, diversity

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        import pyversity

        diversify: Any = pyversity.diversify
        found = np.full((len(queries), k), -1, dtype=np.int64)
        for row, (query, passages) in enumerate(_embed(self._vectors, queries)):
            indices = diversify(
                passages,
                passages @ query,
                k=min(k, len(passages)),
                strategy=self._strategy,
                diversity=self._diversity,
            ).indices
            found[row, : len(indices)] = indices
        return found


def untrained_greedy(vectors: PooledVectors, scale: float = 1.0, *, unit: bool = True) -> Baseline:
    """Greedy on relu(scale · X) with equal weights: Greedy of the paper, where a DGN may start."""
    selector = Selector(PooledEncoder(vectors, scale, unit=unit))
    return SelectorBaseline(f"Greedy ×{scale:g}", selector)


def _embed(
    vectors: PooledVectors, queries: Sequence[Query], *, unit: bool = True
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """The vector of every query and those of its passages, of length 1 if `unit`."""
    texts = list(dict.fromkeys(t for query in queries for t in (query.text, *query.texts)))
    parts = [
        np.asarray(vectors.pooled(texts[start : start + _TEXTS_PER_BATCH]), np.float32)
        for start in range(0, len(texts), _TEXTS_PER_BATCH)
    ]
    rows = np.concatenate(parts)
    rows = unit_rows(rows) if unit else rows
    row = {text: number for number, text in enumerate(texts)}
    return [(rows[row[q.text]], rows[[row[text] for text in q.texts]]) for q in queries]
