"""Searches for submodular functions that are not monotone: random greedy and double greedy.

    random_greedy(GraphCut(1.0), similarities, k=5, seed=0)   at most k items
    double_greedy(GraphCut(1.0), similarities, seed=0)        any number of items

A function that never decreases needs neither: greedy is as good for it, and deterministic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import checked_count, checked_items, unbatched
from dgn.core.search.constrained import Found, as_precise, begin, one_hot
from dgn.core.search.constraints import Constraints
from dgn.core.search.selection import Selection, Selections


def random_greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    seed: int = 0,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
) -> Selection | Selections:
    """Select at most k items, each at random among the k items with the largest gains.

    For a submodular f that is never negative, the value is at least 1/e of the best possible one on
    average, and 1 − 1/e if f is monotone (Buchbinder et al., 2014). An item without a positive gain
    is never selected: where fewer than k items have one, a step selects nothing with the remaining
    probability. The certificate is that of the first prefix; of all prefixes if f says that it is
    monotone. The same seed selects the same items, in a batch as alone.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features].
        k: The largest number of items to select.
        seed: The seed of the random numbers, which all sets of a batch share.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items that are already there, as for `greedy`.
        pinned: Items that must be selected, as for `greedy`.

    Returns:
        One Selection for a single set, Selections for a batch.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.functions import GraphCut
        >>> path = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        >>> random_greedy(GraphCut(1.0), path, k=1).indices  # the middle cuts both edges
        (1,)
    """
    count, seed = checked_count(k), checked_count(seed, "seed", 0)
    items = checked_items(objective, items, context, takes_any_gain=True)
    constraints = Constraints.of(items.mask, count, single=items.single, given=given, pinned=pinned)
    start = begin(objective, items, context, constraints)
    room = constraints.room(items.mask, count)
    random = np.random.default_rng(seed)
    xp, state, available = namespace(items.features), start.state, room.allowed
    bounds: list[Array] = []
    picks: list[tuple[Array, Array]] = []
    for _ in range(min(count, items.size)):
        gains = xp.astype(objective.gains(items, state), xp.float64)
        bounds.append(_reached(picks, gains) + room.largest_gain(gains))
        positive = xp.where(available, gains, xp.zeros_like(gains))
        ranked = xp.argsort(-positive, axis=1, stable=True)
        rank = xp.astype(random.random() * xp.astype(room.counts, xp.float64), xp.int64)
        index = xp.take_along_axis(ranked, rank[:, None], axis=1)[:, 0]
        gain = xp.take_along_axis(positive, index[:, None], axis=1)[:, 0]
        is_taken = (gain > 0) & (room.counts > len(picks))
        index = xp.where(is_taken, index, xp.full_like(index, -1))
        selected = one_hot(index, items.size)
        available = available & ~selected
        state = objective.add(items, state, xp.astype(selected, items.features.dtype))
        picks.append((index, xp.where(is_taken, gain, xp.zeros_like(gain))))
    bound = bounds[0]
    if objective.monotone:
        gains = xp.astype(objective.gains(items, state), xp.float64)
        bounds.append(_reached(picks, gains) + room.largest_gain(gains))
        bound = xp.min(xp.stack(bounds), axis=0)
    found = _found(picks, bound)
    return unbatched(as_precise(start.completed(found), items), items)


def double_greedy(
    objective: SetFunction,
    items: Items | Array,
    *,
    seed: int = 0,
    context: State | None = None,
    given: Any = None,
) -> Selection | Selections:
    """Select any number of items: each one is kept or discarded once, in the order of the items.

    An item is kept with a probability proportional to what it adds to the items kept so far, and
    discarded with one proportional to what leaving it out adds to those not discarded so far. For a
    submodular f that is never negative, the value is at least 1/2 of the best possible one on
    average (Buchbinder et al., 2012), which no algorithm with polynomially many evaluations can
    exceed. The certificate adds up what each decision may have cost. It takes two evaluations of a
    set for each item; the larger sets cost as much as adding all items.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features].
        seed: The seed of the random numbers, which all sets of a batch share.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items that are already there, as for `greedy`.

    Returns:
        One Selection for a single set, Selections for a batch.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.functions import GraphCut
        >>> path = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        >>> print(double_greedy(GraphCut(1.0), path))
        selected 1 (+2): at least 66.6% of the best possible set
    """
    seed = checked_count(seed, "seed", 0)
    items = checked_items(objective, items, context, takes_any_gain=True)
    constraints = Constraints.of(items.mask, None, single=items.single, given=given)
    start = begin(objective, items, context, constraints)
    room = constraints.room(items.mask, items.size)
    random = np.random.default_rng(seed)
    xp, dtype, state = namespace(items.features), items.features.dtype, start.state
    left, picks = room.allowed, list[tuple[Array, Array]]()
    lost = xp.zeros(items.batch, dtype=xp.float64, device=device_of(items.features))
    alone = room.largest_gain(xp.astype(objective.gains(items, state), xp.float64))
    for item in range(items.size):
        own = xp.arange(items.size, device=device_of(left)) == item
        others = objective.add(items, start.state, xp.astype(left & ~own, dtype))
        kept, dropped = (
            xp.maximum(xp.astype(sign * objective.gains(items, one)[:, item], xp.float64), lost * 0)
            for sign, one in ((1, state), (-1, others))
        )
        # Where both are 0, either decision costs nothing.
        keeps = room.allowed[:, item] & (kept > random.random() * (kept + dropped))
        lost = lost + xp.where(room.allowed[:, item], xp.where(keeps, dropped, kept), lost * 0)
        member = own[None, :] & keeps[:, None]
        state = objective.add(items, state, xp.astype(member, dtype))
        left = left & (keeps[:, None] | ~own)
        picks.append((xp.where(keeps, item, -1), xp.where(keeps, kept, lost * 0)))
    found = _found(picks, alone)
    bound = xp.minimum(alone, found.values[:, -1] + lost)
    return unbatched(as_precise(start.completed(_found(picks, bound)), items), items)


def _reached(picks: list[tuple[Array, Array]], like: Array) -> Float[Array, " batch"]:
    return sum((gain for _, gain in picks), namespace(like).zeros_like(like[:, 0]))


def _found(picks: list[tuple[Array, Array]], bound: Float[Array, " batch"]) -> Found:
    """What was selected, without gaps."""
    xp = namespace(bound)
    indices = xp.stack([index for index, _ in picks], axis=1)
    gains = xp.stack([gain for _, gain in picks], axis=1)
    order = xp.argsort(xp.astype(indices < 0, xp.int64), axis=1, stable=True)
    steps = max(1, int(xp.max(xp.sum(indices >= 0, axis=1, dtype=xp.int64))))
    indices = xp.take_along_axis(indices, order, axis=1)[:, :steps]
    gains = xp.take_along_axis(gains, order, axis=1)[:, :steps]
    return Found(indices, gains, bound, indices[:, 0], gains[:, 0])
