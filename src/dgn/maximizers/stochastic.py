"""Stochastic greedy: each pick is the best of a random sample, for one very large ground set."""

from __future__ import annotations

import math

import numpy as np

from dgn.arrays import Array
from dgn.errors import InvalidInput
from dgn.maximizers.checks import checked_count, checked_share, checked_single_set
from dgn.maximizers.large import GrowingSelection
from dgn.maximizers.selection import Selection
from dgn.objectives import Items, SetFunction, State


def stochastic_greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    seed: int,
    epsilon: float = 0.1,
    context: State | None = None,
    stop_share: float = 0.0,
) -> Selection:
    """Pick up to k items of one set, each the best of a sample of (n/k)·log(1/ε) others.

    At least 1 − 1/e − ε of the best possible f on average (Mirzasoleiman et al., 2015), with
    n·log(1/ε) gains in all, whatever k is; one more pass over the items makes the certificate.
    The same seed gives the same picks.
    """
    items = checked_single_set(objective, items, context)
    k, stop_share = checked_count(k), checked_share("stop_share", stop_share)
    if not 0 < epsilon < 1:
        raise InvalidInput("epsilon", found=f"{epsilon}", allowed="a number between 0 and 1")
    growing = GrowingSelection(objective, items, context, stop_share)
    remaining = np.asarray([i for i, real in enumerate(items.mask[0].tolist()) if real])
    sample_size = math.ceil(len(remaining) / k * math.log(1 / epsilon))
    random = np.random.default_rng(seed)
    while len(growing.indices) < k and len(remaining):
        size = min(sample_size, len(remaining))
        places = np.sort(random.choice(len(remaining), size, replace=False, shuffle=False))
        gains = growing.gains_of(remaining[places])
        best = int(growing.xp.argmax(gains))
        gain = gains[best].item()
        if growing.too_little(gain):
            break
        growing.pick(int(remaining[places[best]]), gain)
        remaining = np.delete(remaining, places[best])
    return growing.finish(growing.bound(growing.all_gains(), k))
