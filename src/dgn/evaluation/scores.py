"""Recall, precision and F1 of the first k picks against the gold, sentence by sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput


@dataclass(frozen=True)
class Scores:
    """Macro scores: the mean over the sets that have gold."""

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """The harmonic mean of the macro recall and the macro precision."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def scores_at(k: int, indices: Any, gold: Any) -> Scores:
    """Score the first k picks.

    indices: [batch, picks] in pick order, −1 for no pick. gold: [batch, items], True for gold.
    Sets without gold are left out: there is nothing to find in them.
    """
    if k < 1:
        raise InvalidInput("k", found=str(k), allowed="at least 1")
    picks: NDArray[np.int64] = np.asarray(indices)[:, :k]
    truth: NDArray[np.bool_] = np.asarray(gold)
    picked = picks >= 0
    hits = (np.take_along_axis(truth, np.where(picked, picks, 0), axis=1) & picked).sum(axis=1)
    wanted = truth.sum(axis=1)
    has_gold = wanted > 0
    if not has_gold.any():
        raise InvalidInput("gold", found="no gold in any set", allowed="some gold to find")
    recall = hits[has_gold] / wanted[has_gold]
    precision = hits[has_gold] / np.maximum(picked.sum(axis=1)[has_gold], 1)
    return Scores(recall=float(recall.mean()), precision=float(precision.mean()))
