"""Summarizing documents: answers on Stack Overflow and pages about health, with marked sentences.

A pool is a document and what was asked. The labels are the sentences that people marked as its
summary; the measure is how well the words of the selected sentences are those of the summary, so
that a word counts once. The parts have no document in common.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from torch import Tensor

from dgn.data import Example
from dgn.learn.layers import Unfolded
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.text import PooledVectors, open_vectors
from dgn.text.vectors import unit_rows
from experiments.diversity.pools import (
    DENSITY_FACTS,
    Benchmark,
    Pool,
    densities,
    distances,
    standardized,
)
from experiments.domains import read_domain

_SETS = ("healthsumm", "sosum")
_MOST_SENTENCES = 100


@dataclass(frozen=True, eq=False)
class _Marked:
    """The words of each sentence, and which sentences are the summary."""

    words: tuple[frozenset[str], ...]
    gold: NDArray[np.bool_]


@final
class Summaries(Benchmark):
    """The sentences of documents; see the module."""

    name = "sentences of a summary (health, Stack Overflow)"
    measure = "F1 of the different words, the k selected sentences against the marked ones"
    ks = (2, 4, 8)
    counts = {"learn": 600, "choose": 120, "report": 200}  # noqa: RUF012
    facts = (*DENSITY_FACTS, "like the query", "position", "first", "length")

    def pools(self, part: str) -> list[Pool]:
        found: list[Pool] = []
        for name in _SETS:
            domain = read_domain(name)
            usable = [one for one in domain.train if _is_usable(one)]
            # Rows are ordered by document, so that two neighbours may share one.
            cut = _next_document(usable, round(0.8 * len(usable)))
            rows: list[Example] = {
                "learn": usable[:cut],
                "choose": usable[cut:],
                "report": [one for one in domain.dev if _is_usable(one)],
            }[part]
            order = np.random.default_rng(4).permutation(len(rows))
            most = self.counts[part] // len(_SETS)
            found += [_pool(rows[int(i)]) for i in order[:most]]
        return found

    def score(self, pool: Pool, chosen: Sequence[int]) -> float:
        target: _Marked = pool.target
        wanted = frozenset[str]().union(*(target.words[i] for i in np.flatnonzero(target.gold)))
        found = frozenset[str]().union(*(target.words[i] for i in chosen))
        return 2 * len(wanted & found) / max(1, len(wanted) + len(found))

    def loss(self, pools: Sequence[Pool], unfolded: Unfolded, ks: Sequence[int]) -> Tensor:
        """The loss of the paper, against the marked sentences."""
        del ks
        gold = np.zeros((len(pools), unfolded.log_probs.shape[2]), bool)
        for row, pool in enumerate(pools):
            gold[row, : pool.size] = pool.target.gold
        return LayerwiseCrossEntropy("set")(unfolded, torch.from_numpy(gold))


def _is_usable(example: Example) -> bool:
    return 8 <= len(example.gold) <= _MOST_SENTENCES and 2 <= sum(example.gold) < len(example.gold)


def _next_document(rows: Sequence[Example], cut: int) -> int:
    """The first row from `cut` on that shares no sentence with the row before it."""
    texts = [set(row.query.texts) for row in rows]
    while cut < len(rows) and texts[cut - 1] & texts[cut]:
        cut += 1
    return cut


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]{2,}", text.lower())) - ENGLISH_STOP_WORDS


def _pool(example: Example) -> Pool:
    texts = example.query.texts
    rows = unit_rows(np.asarray(_vectors().pooled([example.query.text, *texts]), np.float32))
    query, vectors = rows[0], rows[1:]
    like = (vectors @ query).clip(min=0.05)
    words = tuple(_words(text) for text in texts)
    place = np.arange(len(texts))
    facts = standardized(
        [
            *densities(distances(vectors, vectors)),
            like,
            place / len(texts),
            place == 0,
            np.log1p([len(own) for own in words]),
        ]
    )
    marked = _Marked(words, np.array(example.gold))
    return Pool(vectors, (like / like.mean()).astype(np.float32), facts, marked)


@cache
def _vectors() -> PooledVectors:
    return open_vectors("wordllama")
