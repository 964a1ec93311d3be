"""The one result type: which items, in which order, what each was worth, and the proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dgn.arrays import Array, namespace
from dgn.maximizers.certificate import Certificate


@dataclass(frozen=True)
class Selection:
    """What was picked from one ground set.

    indices: the picked items, in the order of the picks.
    gains: what each pick added.
    values: f of the picks so far, after each pick (given the context, if there was one).
    certificate: how near to the best possible set this is, at least.
    """

    indices: tuple[int, ...]
    gains: tuple[float, ...]
    values: tuple[float, ...]
    certificate: Certificate

    def __len__(self) -> int:
        return len(self.indices)

    def __str__(self) -> str:
        picks = ", ".join(
            f"{index} (+{gain:.3g})" for index, gain in zip(self.indices, self.gains, strict=True)
        )
        return f"picked {picks}: {self.certificate}"


@dataclass(frozen=True, eq=False)
class Selections:
    """What was picked from each ground set of a batch; `selections[i]` is one Selection.

    indices: [batch, k], −1 where a set gave fewer picks.
    gains, values: [batch, k], 0 and the last value there.
    counts: [batch], how many picks each set gave.
    bounds: [batch], what no allowed set can exceed.
    """

    indices: Array
    gains: Array
    values: Array
    counts: Array
    bounds: Array

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
        """[batch], the certificates' ratios: the share of the best possible value, at least."""
        xp = namespace(self.values)
        reached = self.values[:, -1]
        bounds = xp.maximum(self.bounds, reached)
        positive = bounds > 0
        ones = xp.ones_like(bounds)
        return xp.where(positive, reached / xp.where(positive, bounds, ones), ones)
