"""Recall, precision and F1 of the first k picks against the gold, sentence by sentence.

The paper's scores count gold sentences. Macro is the mean over claims; micro counts all sentences
of all claims together, so that claims with much gold weigh more. FEVER's official scores are
others: see `dgn.evaluation.fever_scores`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput


def harmonic_mean(a: float, b: float) -> float:
    """2ab / (a + b); 0 where both are."""
    return 2 * a * b / (a + b) if a + b else 0.0


@dataclass(frozen=True)
class Scores:
    """Recall and precision, both macro or both micro."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        return harmonic_mean(self.recall, self.precision)


@dataclass(frozen=True, eq=False)
class Hits:
    """What the first k picks found, claim by claim; claims without gold are left out.

    found, wanted, picked: [claims], gold among the picks, gold in all, and picks.
    """

    found: NDArray[np.int64]
    wanted: NDArray[np.int64]
    picked: NDArray[np.int64]

    @property
    def recalls(self) -> NDArray[np.float64]:
        """[claims], the recall of each."""
        return self.found / self.wanted

    @property
    def precisions(self) -> NDArray[np.float64]:
        """[claims], the precision of each; 0 where nothing was picked."""
        return self.found / np.maximum(self.picked, 1)

    @property
    def macro(self) -> Scores:
        """The means over claims."""
        return Scores(float(self.recalls.mean()), float(self.precisions.mean()))

    @property
    def micro(self) -> Scores:
        """Over all sentences together."""
        found = float(self.found.sum())
        return Scores(found / float(self.wanted.sum()), found / max(1.0, float(self.picked.sum())))


def hits_at(k: int, indices: Any, gold: Any, missing: Any = 0) -> Hits:
    """What the first k picks found.

    indices: [batch, picks] in pick order, −1 for no pick. gold: [batch, items], True for gold.
    missing: [batch], how much gold is not among the items at all; nobody can find it, and it
    counts. Sets without gold are left out: there is nothing to find in them.
    """
    if k < 1:
        raise InvalidInput("k", found=str(k), allowed="at least 1")
    picks: NDArray[np.int64] = np.asarray(indices)[:, :k]
    truth: NDArray[np.bool_] = np.asarray(gold)
    picked = picks >= 0
    found = (np.take_along_axis(truth, np.where(picked, picks, 0), axis=1) & picked).sum(axis=1)
    wanted = truth.sum(axis=1) + np.asarray(missing)
    has_gold = wanted > 0
    if not has_gold.any():
        raise InvalidInput("gold", found="no gold in any set", allowed="some gold to find")
    return Hits(found[has_gold], wanted[has_gold], picked.sum(axis=1)[has_gold])


def scores_at(k: int, indices: Any, gold: Any) -> Scores:
    """The macro scores of the first k picks; see `hits_at`."""
    return hits_at(k, indices, gold).macro
