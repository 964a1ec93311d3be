"""How far is a query covered, and how relevant is each passage? Measured on one query.

Every function takes the set function of one query and its passages as items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import FeatureCoverage, Items, SetFunction, State


def covered_features(
    objective: SetFunction, items: Items, indices: Sequence[int], given: Items | None = None
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """How far each feature is covered after 0, 1, … of these passages.

    A feature is covered as far as the best of the passages covers it alone: five passages that
    hardly mention a word do not cover it together.

    Args:
        objective: The set function.
        items: The passages.
        indices: The selected ones.
        given: Texts that cover from the start.

    Returns:
        [selected + 1, features], and [features], how much each counts (they sum to 1); None if the
        objective does not define coverage.
    """
    measured = covered_alone(objective, items, indices)
    if measured is None:
        return None
    alone, weights = measured
    start = np.zeros((1, alone.shape[1]))
    before = None if given is None else _measured(objective, _each_alone(objective, given))
    if before is not None:
        start = before[0].max(axis=0, keepdims=True)
    return np.maximum.accumulate(np.concatenate([start, alone]), axis=0), weights


def covered_alone(
    objective: SetFunction, items: Items, indices: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """How far each of these passages covers each feature by itself.

    Returns:
        [passages, features], and [features], how much each counts (they sum to 1); None if the
        objective does not define coverage.
    """
    # One passage at least, so that the weights are known; it does not count.
    measured = _measured(objective, _each_alone(objective, items, [0, *indices]))
    return None if measured is None else (measured[0][1:], measured[1])


def coverage_after(
    objective: SetFunction, items: Items, indices: Sequence[int], given: Items | None = None
) -> NDArray[np.float64] | None:
    """[selected + 1], the share of the query that is covered; None if it is not defined."""
    covered = covered_features(objective, items, indices, given)
    return None if covered is None else np.clip(_weighted_sum(*covered), 0.0, 1.0)


def relevance_of(objective: SetFunction, items: Items) -> NDArray[np.float64]:
    """[items], the relevance of each passage, from 0 to 1.

    It is the share of the query that the passage covers alone or, if the objective does not define
    coverage, its value as a share of the value of all passages together.
    """
    if type(objective) is FeatureCoverage and objective.target is not None:
        return _relevance_at_once(objective, items)
    state = _each_alone(objective, items)
    measured = _measured(objective, state)
    if measured is not None:
        return np.clip(_weighted_sum(*measured), 0.0, 1.0)
    everything = np.ones((1, items.size), items.features.dtype)
    whole = objective.value(objective.add(items, objective.empty(items), everything))[0]
    values = np.asarray(objective.value(state), np.float64)
    return np.clip(values / (float(whole) or 1.0), 0.0, 1.0)


def progress(
    objective: SetFunction, items: Items, indices: Sequence[int], given: Items | None = None
) -> tuple[NDArray[np.float64], float]:
    """How much is reached after 0, 1, … of these passages, and what all passages reach.

    It is the coverage or, if the objective does not define it, the value of the function.
    """
    reached = coverage_after(objective, items, indices, given)
    everything = range(items.size)
    if reached is not None:
        whole = coverage_after(objective, items, everything, given)
        return reached, float(whole[-1]) if whole is not None else 0.0
    states = (_after_each(objective, items, order) for order in (indices, everything))
    reached, whole = (np.asarray(objective.value(state), np.float64) for state in states)
    return reached, float(whole[-1])


def _relevance_at_once(objective: FeatureCoverage, items: Items) -> NDArray[np.float64]:
    """The same for the function of most encoders, in a fifth of the time.

    What an item covers alone are its features.
    """
    level, width = items.features[0], items.features.shape[2]
    target = np.broadcast_to(np.asarray(objective.target, level.dtype), (1, width))[0]
    weights = np.ones(width)
    if objective.weights is not None:
        weights = np.broadcast_to(np.asarray(objective.weights, level.dtype), (1, width))[0]
        weights = weights.astype(np.float64)
    counts = np.flatnonzero((target > 0) & (weights > 0))
    shares = np.minimum(level[:, counts] / target[counts], 1).astype(np.float64)
    weights = weights[counts]
    return np.clip(shares @ (weights / (weights.sum() or 1.0)), 0.0, 1.0)


def _each_alone(
    objective: SetFunction, items: Items, indices: Sequence[int] | None = None
) -> State:
    """The states after each of these passages, by default of all, by itself, as one batch."""
    chosen = slice(None) if indices is None else list(indices)
    alone = Items(items.features[0][chosen][:, None, :])
    member = np.ones((alone.batch, 1), alone.features.dtype)
    return objective.add(alone, objective.empty(alone), member)


def _after_each(objective: SetFunction, items: Items, indices: Sequence[int]) -> State:
    """The states after 0, 1, … of these passages, as one batch."""
    member = np.zeros((len(indices) + 1, items.size), items.features.dtype)
    for step, index in enumerate(indices):
        member[step + 1 :, index] = 1
    many = items.repeat(len(indices) + 1)
    return objective.add(many, objective.empty(many), member)


def _measured(
    objective: SetFunction, state: State
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The coverage of each feature in some states, and weights that sum to 1."""
    coverage = objective.coverage(state)
    if coverage is None:
        return None
    shares, weights = (np.asarray(part, np.float64) for part in coverage)
    return shares, weights[0] / (weights[0][weights[0] > 0].sum() or 1.0)


def _weighted_sum(shares: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
    """The weighted sums; in the same order, however far a batch is padded with other features."""
    counts = weights > 0
    return shares[:, counts] @ weights[counts]
