"""The search problem of some queries: a set function, its items, and what can be told of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.objectives import FeatureCoverage, Items, Mixture, SetFunction, State

_SCORE_SCALE = 3.0
"""The best score before the concave function; 0 is the worst."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is maximized: f over the passages of a batch of queries, or of one query."""

    objective: SetFunction
    items: Items

    def of_query(self, row: int) -> Problem:
        """The problem of one query of the batch, with arrays of its own."""
        if self.items.batch == 1 and self.items.mask[0, -1]:
            return self
        return Problem(self.objective.of_set(row), self.items.of_set(row))

    def priced(self) -> Problem:
        """The problem for a search that pays per token.

        Only features that count in the coverage are kept, and what every passage of a query has
        in common is subtracted: it is worth the same in a short passage as in a long one, and per
        token it would buy short passages that say nothing. If nothing else is left of a query, its
        passages stay as they are.
        """
        f, mask = self.objective.counted(), self.items.mask
        hidden = np.where(mask[..., None], self.items.features, np.inf)
        reduced = Items(self.items.features - hidden.min(axis=1, keepdims=True), mask)
        has_gain = f.gains(reduced, f.empty(reduced)).max(axis=1) > 0
        # Multiplied, because the features of a query are replaced completely or not at all.
        share = has_gain[:, None, None].astype(reduced.features.dtype)
        kept = share * reduced.features + (1 - share) * self.items.features
        return Problem(f, Items(kept, mask))

    def relevant(self, least: float) -> tuple[Problem, list[bool]]:
        """The problem without passages of less relevance, and whether a query has none left.

        Of a query that has none left, one passage stays, since a search needs one.
        """
        mask = self.items.mask.copy()
        is_empty: list[bool] = []
        for row in range(self.items.batch):
            relevance = np.array(self.of_query(row).relevance())
            kept = mask[row, : len(relevance)] & (relevance >= least)
            is_empty.append(not kept.any())
            if kept.any():
                mask[row, : len(relevance)] = kept
        return Problem(self.objective, Items(self.items.features, mask)), is_empty

    def with_scores(self, scores: Sequence[Sequence[float] | None], weight: float) -> Problem:
        """Add scores from elsewhere as one more feature; f stays monotone and submodular.

        It is under a concave function as the other features are, so that passages that say
        something new are still selected when some passages with a high score were.

        Args:
            scores: For each query, one score for each passage, or None.
            weight: What the best score of a query is worth, as a multiple of the largest gain
                without scores.
        """
        features = self.items.features
        column = np.zeros((*features.shape[:2], 1), features.dtype)
        for row, own in enumerate(scores):
            if own is not None:
                column[row, : len(own), 0] = _SCORE_SCALE * _scaled(np.asarray(own, np.float64))
        first = self.objective.gains(self.items, self.objective.empty(self.items)).max(axis=1)
        first = np.where(first > 0, first, 1.0)  # if no word is found, the scores alone decide
        worth = weight * first / math.log1p(_SCORE_SCALE)
        relevance = FeatureCoverage(worth[:, None].astype(features.dtype))
        both = Mixture((self.objective, relevance), np.ones(2), (slice(None, -1), slice(-1, None)))
        return Problem(both, Items(np.concatenate([features, column], axis=2), self.items.mask))

    def covered(self, indices: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """How far each feature is covered after 0, 1, … of these passages; for one query.

        A feature is covered as far as the best of the passages covers it alone: five passages that
        hardly mention a word do not cover it together.

        Returns:
            [selected + 1, features], and [features], how much each counts (they sum to 1); None
            if the objective does not define coverage.
        """
        # One passage at least, so that the weights are known; it does not count.
        found = _normalized(self.objective.coverage(self._each_alone([0, *indices])))
        if found is None:
            return None
        alone, weights = found
        alone[0] = 0
        return np.maximum.accumulate(alone, axis=0), weights

    def coverage_after(self, indices: Sequence[int]) -> NDArray[np.float64] | None:
        """[selected + 1], the share of the query that is covered; None if it is not defined."""
        found = self.covered(indices)
        return None if found is None else np.clip(_weighted(*found), 0.0, 1.0)

    def progress(self, indices: Sequence[int]) -> tuple[NDArray[np.float64], float]:
        """How much is reached after 0, 1, … of these passages, and what all passages reach.

        It is the coverage or, if the objective does not define it, the value of the function.
        """
        reached = self.coverage_after(indices)
        everything = range(self.items.size)
        if reached is not None:
            whole = self.coverage_after(everything)
            return reached, float(whole[-1]) if whole is not None else 0.0
        values = [self._state_after(order) for order in (indices, everything)]
        reached, whole = (np.asarray(self.objective.value(state), np.float64) for state in values)
        return reached, float(whole[-1])

    def relevance(self) -> tuple[float, ...]:
        """For one query, the relevance of each passage, from 0 to 1.

        It is the share of the query that the passage covers alone or, if the objective does not
        define coverage, its value as a share of the value of all passages together.
        """
        f = self.objective
        state = self._each_alone(range(self.items.size))
        found = _normalized(f.coverage(state))
        if found is not None:
            relevance = _weighted(*found)
        else:
            everything = np.ones((1, self.items.size), self.items.features.dtype)
            whole = f.value(f.add(self.items, f.empty(self.items), everything))[0]
            relevance = np.asarray(f.value(state), np.float64) / (float(whole) or 1.0)
        return tuple(np.clip(relevance, 0.0, 1.0).tolist())

    def _each_alone(self, indices: Sequence[int]) -> State:
        """The states after each of these passages by itself, as one batch."""
        alone = Items(self.items.features[0][list(indices)][:, None, :])
        f = self.objective
        return f.add(alone, f.empty(alone), np.ones((alone.batch, 1), alone.features.dtype))

    def _state_after(self, indices: Sequence[int]) -> State:
        """The states after 0, 1, … of these passages, as one batch."""
        count = len(indices)
        member = np.zeros((count + 1, self.items.size), self.items.features.dtype)
        for place, index in enumerate(indices):
            member[place + 1 :, index] = 1
        items = self.items.repeat(count + 1)
        return self.objective.add(items, self.objective.empty(items), member)


def _normalized(
    found: tuple[NDArray[Any], NDArray[Any]] | None,
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    if found is None:
        return None
    shares, weights = (np.asarray(part, np.float64) for part in found)
    return shares, weights[0] / (weights[0][weights[0] > 0].sum() or 1.0)


def _weighted(shares: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """The weighted sums; in the same order, however far a batch is padded with other features."""
    counts = weights > 0
    return shares[:, counts] @ weights[counts]


def _scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores between 0 and 1; equal scores say nothing and become 0."""
    scores = scores / (np.abs(scores).max() or 1.0)  # the range of huge scores would overflow
    low, high = scores.min(), scores.max()
    return np.zeros_like(scores) if high == low else (scores - low) / (high - low)
