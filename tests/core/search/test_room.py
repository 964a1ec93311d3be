"""The largest sum of gains of an allowed set, the bound of certificates, against brute force."""

import itertools

import numpy as np
import torch
from hypothesis import given as given_examples
from hypothesis import settings
from hypothesis import strategies as st

from dgn.core.constraints import Constraints


@settings(max_examples=300)
@given_examples(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_the_largest_gain_of_a_room_against_brute_force(
    seed: int, has_costs: bool, is_torch: bool
) -> None:
    random = np.random.default_rng(seed)
    mask = random.random((2, 7)) < 0.8
    pinned = [np.flatnonzero(row)[:1].tolist() for row in mask]
    groups, quotas = random.integers(-2, 3, (2, 7)), [1, 2, 1]
    gains = random.integers(0, 4, (2, 7)) * mask / 2
    costs, budget = random.integers(1, 5, (2, 7)).astype(float), np.array([4.0, 7.0])
    k = int(random.integers(1, 6))
    constraints = Constraints.of(
        mask, k, single=False, pinned=pinned, groups=groups, max_per_group=quotas
    )
    array = torch.from_numpy if is_torch else np.asarray
    room = constraints.room(array(mask), k)
    if has_costs:
        room = room.with_costs(array(costs), array(budget))
    found = np.asarray(room.largest_gain(array(gains)))
    for row in range(2):
        free = [item for item in np.flatnonzero(mask[row]) if item not in pinned[row]]
        best = 0.0
        for count in range(k - len(pinned[row]) + 1):
            for chosen in itertools.combinations(free, count):
                held = groups[row, [*pinned[row], *chosen]].tolist()
                fits = all(held.count(group) <= quotas[group] for group in range(3))
                if has_costs:
                    fits = fits and costs[row, list(chosen)].sum() <= budget[row]
                best = max(best, gains[row, list(chosen)].sum() if fits else 0.0)
        if has_costs:
            assert found[row] >= best
        else:
            assert found[row] == best
