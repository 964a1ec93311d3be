"""The result of a search: the selected items, what each was worth, and how good the set is.

The certificate is a proof about this particular set. For any set A and any k, submodularity gives
f(best) ≤ f(A) + the k largest gains given A. Each prefix of a greedy search provides such a bound
at no extra cost; the smallest of them, divided into the value that was reached, is usually far
better than 1 − 1/e. It is a statement about f: whether f is the right function is another
question.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Float, Int, device_of, namespace

_SHOWN = 10
"""Items that the text of a selection names."""


@dataclass(frozen=True)
class Certificate:
    """The value that was reached, and a bound that no allowed set exceeds."""

    value: float
    bound: float

    @property
    def ratio(self) -> float:
        """At least this share of the best possible value was reached; 1 is optimal."""
        if math.isnan(self.bound):
            return 0.0  # nothing is proved
        return 1.0 if self.bound <= self.value else max(0.0, self.value) / self.bound

    def __str__(self) -> str:
        if self.ratio == 1:
            return "100% of the best possible set"
        if self.bound == math.inf:
            return "no bound of the best possible set is known"
        # Rounded down: a certificate must not promise more than it proves.
        return f"at least {math.floor(1000 * self.ratio) / 10:.1f}% of the best possible set"


@dataclass(frozen=True)
class Selection:
    """What was selected from one ground set.

    Attributes:
        indices: The selected items, in the order of selection.
        gains: What each of them added when it was selected.
        values: f of the selected items so far, after each selection (given the context, if any).
        certificate: How close to the best possible set this is, at least.
    """

    indices: tuple[int, ...]
    gains: tuple[float, ...]
    values: tuple[float, ...]
    certificate: Certificate

    @classmethod
    def of(
        cls, indices: Sequence[int], gains: Sequence[float], bound: float, like: Array
    ) -> Selection:
        """One selection from its gains, with numbers as precise as those of the array `like`.

        Selections of a batch have the dtype of the features; one alone must not be more precise.
        """
        sums = [*itertools.accumulate(gains), bound]
        *values, bound = namespace(like).asarray(sums, dtype=like.dtype).tolist()
        value = values[-1] if values else 0.0
        certificate = Certificate(value, value if bound < value else bound)
        return cls(tuple(indices), tuple(gains), tuple(values), certificate)

    def __len__(self) -> int:
        return len(self.indices)

    def __str__(self) -> str:
        if not self.indices:
            return "selected nothing"
        pairs = zip(self.indices[:_SHOWN], self.gains[:_SHOWN], strict=True)
        items = ", ".join(f"{index} ({gain:+.3g})" for index, gain in pairs)
        more = f" and {len(self) - _SHOWN} more" if len(self) > _SHOWN else ""
        return f"selected {items}{more}: {self.certificate}"


@dataclass(frozen=True, eq=False)
class Selections:
    """What was selected from each ground set of a batch; `selections[i]` is one Selection.

    Attributes:
        indices: [batch, k], −1 where a set has fewer selected items.
        gains: [batch, k], 0 there.
        values: [batch, k], the last value there.
        counts: [batch], the number of selected items per set.
        bounds: [batch], what no allowed set can exceed.
    """

    indices: Array
    gains: Array
    values: Array
    counts: Array
    bounds: Array

    @classmethod
    def of(cls, indices: Array, gains: Array, values: Array, bounds: Array) -> Selections:
        """The selections of a batch; the counts follow from the indices."""
        xp = namespace(indices)
        return cls(indices, gains, values, xp.sum(indices >= 0, axis=1, dtype=xp.int64), bounds)

    @classmethod
    def stack(cls, selections: Sequence[Selection], like: Array) -> Selections:
        """Several selections as one batch, with arrays of the library and device of `like`."""
        longest = max(map(len, selections))
        xp, device = namespace(like), device_of(like)

        def padded(rows: list[tuple[float, ...]], fill: float | None, dtype: object) -> Array:
            full = [
                [
                    *row,
                    *[(row[-1] if row else 0.0) if fill is None else fill] * (longest - len(row)),
                ]
                for row in rows
            ]
            return xp.asarray(full, dtype=dtype, device=device)

        return cls(
            indices=padded([one.indices for one in selections], -1, xp.int64),
            gains=padded([one.gains for one in selections], 0.0, like.dtype),
            values=padded([one.values for one in selections], None, like.dtype),
            counts=xp.asarray([len(one) for one in selections], dtype=xp.int64, device=device),
            bounds=xp.asarray(
                [one.certificate.bound for one in selections], dtype=like.dtype, device=device
            ),
        )

    def __len__(self) -> int:
        return self.indices.shape[0]

    def __getitem__(self, row: int) -> Selection:
        count = int(self.counts[row])
        values = tuple(self.values[row, :count].tolist())
        reached, bound = values[-1] if values else 0.0, self.bounds[row].item()
        return Selection(
            indices=tuple(self.indices[row, :count].tolist()),
            gains=tuple(self.gains[row, :count].tolist()),
            values=values,
            certificate=Certificate(reached, reached if bound < reached else bound),
        )

    def __iter__(self) -> Iterator[Selection]:
        return (self[row] for row in range(len(self)))

    @property
    def ratios(self) -> Array:
        """[batch], the ratios of the certificates."""
        xp = namespace(self.values)
        reached = self.values[:, -1]
        is_optimal = self.bounds <= reached
        worth = xp.maximum(reached, xp.zeros_like(reached))
        ratios = worth / xp.where(is_optimal, xp.ones_like(reached), self.bounds)
        ratios = xp.where(is_optimal, xp.ones_like(reached), ratios)
        # A bound that is not a number proves nothing.
        return xp.where(xp.isnan(self.bounds), xp.zeros_like(reached), ratios)


def largest_sum(
    gains: Float[Array, "*batch items"], k: int | Int[Array, "*batch"]
) -> Float[Array, "*batch"]:
    """The sum of the k largest gains along the last axis; padding, whose gain is 0, adds nothing.

    They are added from the smallest one on, so that a sum does not depend on how many zeros
    there are. `k` is one number of at least 1, or one number of at least 0 for each row.
    """
    xp = namespace(gains)
    most = k if isinstance(k, int) else max(1, int(xp.max(k)))
    if gains.shape[-1] > 16 * most and hasattr(xp, "partition"):  # NumPy; a few of many items count
        gains = xp.partition(gains, -most, axis=-1)[..., -most:]
    largest = xp.sort(gains, axis=-1)[..., -most:]
    if not isinstance(k, int):
        rank = xp.arange(largest.shape[-1], 0, -1, device=device_of(gains))
        largest = xp.where(rank <= k[..., None], largest, xp.zeros_like(largest))
    return xp.astype(xp.cumulative_sum(largest, axis=-1, dtype=xp.float64)[..., -1], gains.dtype)


def fractional_knapsack(
    gains: NDArray[np.float64], costs: NDArray[np.float64], budget: float
) -> float:
    """The largest gain of one set within the budget if items could be divided: an upper bound."""
    order = np.argsort(-gains / costs, stable=True)
    gains, costs = gains[order], costs[order]
    spent_before = np.cumsum(costs) - costs
    share = (budget - spent_before) / costs
    return float(np.cumsum(gains * np.clip(share, 0, 1))[-1])


def power_below(number: float) -> float:
    """The power of 2 that scales a number to between ½ and 1, as far as there is one; 1 for 0."""
    exponent = math.frexp(number)[1] if 0 < number < math.inf else 0
    return math.ldexp(1.0, -max(-1022, exponent))
