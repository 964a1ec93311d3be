"""Forward greedy: k times, add the item of the largest gain; all sets of a batch at once."""

from __future__ import annotations

from dgn.arrays import Array, Bool, Float, Int, device_of, namespace
from dgn.maximizers.certificate import largest_sum
from dgn.maximizers.checks import checked_count, checked_items, checked_share
from dgn.maximizers.selection import Selections
from dgn.objectives import Items, SetFunction, State


def greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    context: State | None = None,
    stop_share: float = 0.0,
) -> Selections:
    """Pick up to k items of every set, each time the one that adds the most.

    At least 1 − 1/e of the best possible f, for a monotone submodular f (Nemhauser et al., 1978);
    the certificate says how much for this very set. Ties go to the lowest index, no item is picked
    twice, and a set with fewer than k items gives all of them.

    items: Items, or features as [items, features] or [batch, items, features].
    context: what is already given: f(· | context) is maximised instead of f.
    stop_share: stop before a pick that adds less than this share of what the first pick added.

        >>> import numpy as np
        >>> from dgn.objectives import FeatureCoverage
        >>> print(greedy(FeatureCoverage(), np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]]), k=2)[0])
        picked 0 (+1.1), 2 (+0.693): at least 84.9% of the best possible set
    """
    items = checked_items(objective, items, context)
    k, stop_share = checked_count(k), checked_share("stop_share", stop_share)
    state = objective.empty(items, context)
    return _search(objective, items, state, k, stop_share)


def _search(
    objective: SetFunction, items: Items, state: State, k: int, stop_share: float
) -> Selections:
    xp = namespace(items.features)
    available = items.mask
    running = xp.any(available, axis=1)
    enough = None
    indices: list[Array] = []
    gains: list[Array] = []
    seen: list[Array] = []
    for _ in range(min(k, items.size)):
        seen.append(objective.gains(items, state))
        pick, gain = best_available(seen[-1], available)
        enough = stop_share * gain if enough is None else enough
        # An exhausted set offers −inf, which is never enough.
        running = running & (gain >= enough)
        picked = one_hot(pick, items.size) & running[:, None]
        available = available & ~picked
        state = objective.add(items, state, xp.astype(picked, items.features.dtype))
        indices.append(xp.where(running, pick, -1))
        gains.append(xp.where(running, gain, 0.0))
    seen.append(objective.gains(items, state))
    picks, added = xp.stack(indices, axis=1), xp.stack(gains, axis=1)
    values = xp.cumulative_sum(added, axis=1)
    return Selections(
        indices=picks,
        gains=added,
        values=values,
        counts=xp.sum(picks >= 0, axis=1, dtype=xp.int64),
        bounds=_least_bound(values, xp.stack(seen, axis=1), k),
    )


def _least_bound(
    values: Float[Array, "batch picks"], gains: Float[Array, "batch prefixes items"], k: int
) -> Float[Array, " batch"]:
    """The certificate's bound: the least over all prefixes of the picks, the empty one included."""
    xp = namespace(values)
    before = xp.concat([xp.zeros_like(values[:, :1]), values], axis=1)
    return xp.min(before + largest_sum(gains, k), axis=1)


def best_available(
    scores: Float[Array, "batch items"], available: Bool[Array, "batch items"]
) -> tuple[Int[Array, " batch"], Float[Array, " batch"]]:
    """The index and the score of the best available item of every set, the lowest index first."""
    xp = namespace(scores)
    scores = xp.where(available, scores, -xp.inf)
    return xp.argmax(scores, axis=1), xp.max(scores, axis=1)


def one_hot(indices: Int[Array, " batch"], size: int) -> Bool[Array, "batch size"]:
    """True at one index a row."""
    xp = namespace(indices)
    return xp.arange(size, device=device_of(indices))[None, :] == indices[:, None]
