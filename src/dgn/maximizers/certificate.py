"""The proof that comes with a selection: how far from the best set it can be, at most.

For any set A and budget k, submodularity gives f(best) ≤ f(A) + the k largest gains given A. Each
prefix of a greedy search gives such a bound for nothing; the least of them, against the value that
was reached, is a proof for this very query. It is usually far better than 1 − 1/e, and it is about
f: it says nothing of whether f is the right function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dgn.arrays import Array, Float, namespace


@dataclass(frozen=True)
class Certificate:
    """`value` was reached, and no allowed set is worth more than `bound`."""

    value: float
    bound: float

    @property
    def ratio(self) -> float:
        """The share of the best possible value that was reached, at least; 1 is optimal."""
        if math.isnan(self.bound):
            return 0.0  # nothing is proved
        return 1.0 if self.bound <= self.value else self.value / self.bound

    def __str__(self) -> str:
        # Rounded down: a certificate must not promise more than it proves.
        return f"at least {math.floor(1000 * self.ratio) / 10:.1f}% of the best possible set"


def largest_sum(gains: Float[Array, "*batch items"], k: int) -> Float[Array, "*batch"]:
    """The sum of the k largest gains along the last axis."""
    xp = namespace(gains)
    if gains.shape[-1] > k:
        gains = xp.sort(gains, axis=-1)[..., -k:]
    return xp.sum(gains, axis=-1)


def fractional_knapsack(
    gains: Float[Array, "batch items"],
    costs: Float[Array, "batch items"],
    budget: Float[Array, " batch"],
) -> Float[Array, " batch"]:
    """The most gain that fits the budget if items could be cut, [batch]: at least any real fill."""
    xp = namespace(gains)
    order = xp.argsort(gains / costs, axis=1, descending=True)
    gains = xp.take_along_axis(gains, order, axis=1)
    costs = xp.take_along_axis(costs, order, axis=1)
    spent_before = xp.cumulative_sum(costs, axis=1) - costs
    share = (budget[:, None] - spent_before) / costs
    return xp.sum(gains * xp.clip(share, 0, 1), axis=1)
