"""How much of a claim is covered, word by word: for people, beside what the search maximises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.encoders import Encoded
from dgn.maximizers import Selection
from dgn.objectives import FeatureCoverage


def covered_facets(encoded: Encoded, picks: Sequence[int]) -> NDArray[np.float64]:
    """[picks + 1, facets], from 0 to 1: how far each facet is covered after so many picks.

    A facet is covered whole by a sentence that says it in its own word, or by the title of a page
    from which a sentence was picked.
    """
    objective, facets = encoded.objective, encoded.name_facets(0)
    if not facets or not isinstance(objective, FeatureCoverage) or encoded.full is None:
        return np.zeros((len(picks) + 1, len(facets)))
    named = encoded.named[0]
    levels = np.zeros((len(picks) + 1, named))
    offered = np.asarray(encoded.items.features, np.float64)[0, :, :named]
    levels[1:] = np.cumsum(offered[list(picks)], axis=0)
    # At least something: a word of which even its own match says nothing cannot be covered.
    full = np.maximum(np.asarray(encoded.full, np.float64)[0, :named], 1e-3)
    shares = objective.concave.of(levels) / objective.concave.of(full)
    if encoded.given is not None and len(picks):
        given = np.asarray(encoded.given, np.float64)[0][list(picks)]
        shares[1:] = np.maximum(shares[1:], np.maximum.accumulate(given, axis=0))
    weights = _feature_weights(encoded, named)
    covered = np.zeros((len(picks) + 1, len(facets)))
    for place, facet in enumerate(facets):
        own = list(facet.features)
        covered[:, place] = np.minimum(shares[:, own], 1.0) @ weights[own] / weights[own].sum()
    return covered


def facet_weights(encoded: Encoded) -> NDArray[np.float64]:
    """[facets], how much each matters; together 1."""
    facets, weights = encoded.name_facets(0), _feature_weights(encoded, encoded.named[0])
    own = np.array([weights[list(facet.features)].sum() for facet in facets])
    return own / own.sum() if len(own) else own


def _feature_weights(encoded: Encoded, count: int) -> NDArray[np.float64]:
    weights: Any = getattr(encoded.objective, "weights", None)
    if weights is None:
        return np.ones(count)
    # Above 0, so that there is a mean also where nothing weighs anything.
    return np.asarray(weights, np.float64).reshape(-1)[:count] + 1e-12


def covered_shares(encoded: Encoded, picks: Sequence[int]) -> NDArray[np.float64]:
    """[picks + 1], the share of the claim that is covered after so many picks."""
    return covered_facets(encoded, picks) @ facet_weights(encoded)


def smallest_cover(encoded: Encoded, selection: Selection, share: float) -> int:
    """How many of these picks cover that share of what all sentences together cover.

    Of the claim's words; or, where features have no names, of the function's own value.
    """
    shares = covered_shares(encoded, selection.indices)
    reachable = float(covered_shares(encoded, range(encoded.items.size))[-1])
    if not reachable:
        objective, items = encoded.objective, encoded.items
        everything = np.ones((1, items.size), np.asarray(items.features).dtype)
        whole = objective.add(items, objective.empty(items), everything)
        reachable = float(objective.value(whole)[0])
        shares = np.array([0.0, *selection.values])
    enough = np.flatnonzero(shares >= share * reachable - 1e-6 * reachable)
    return int(enough[0]) if len(enough) else len(selection)
