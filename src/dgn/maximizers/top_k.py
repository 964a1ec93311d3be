"""Top-k: the k largest scores, each item by itself; what greedy is measured against."""

from __future__ import annotations

from dgn.arrays import Array, device_of, namespace
from dgn.errors import InvalidInput
from dgn.maximizers.checks import checked_count
from dgn.maximizers.selection import Selections
from dgn.objectives import Items
from dgn.objectives.checks import check_mask


def top_k(scores: Array, k: int, mask: Array = None) -> Selections:
    """Pick the k items of the largest scores of every set.

    The best set of a modular f(A) = Σ_{a∈A} score_a, so the certificate is always 100%. Scores may
    be negative; ties go to the lowest index.

    scores: [batch, items], or [items] for a single set. mask: the same shape, False for padding.
    """
    items = Items(scores[..., None], mask)
    check_mask(items.mask)
    scores, k = items.features[..., 0], min(checked_count(k), items.size)
    xp = namespace(scores)
    if not bool(xp.all(xp.isfinite(scores))):
        raise InvalidInput("scores", found="a NaN or an infinity", allowed="finite numbers")
    ranked = xp.where(items.mask, scores, xp.full_like(scores, -xp.inf))
    indices = xp.argsort(ranked, axis=1, descending=True, stable=True)[:, :k]
    counts = xp.minimum(
        xp.sum(items.mask, axis=1, dtype=xp.int64),
        xp.full((items.batch,), k, dtype=xp.int64, device=device_of(scores)),
    )
    real = xp.arange(k, device=device_of(scores))[None, :] < counts[:, None]
    gains = xp.take_along_axis(scores, indices, axis=1)
    gains = xp.where(real, gains, xp.zeros_like(gains))
    values = xp.cumulative_sum(gains, axis=1)
    return Selections(
        indices=xp.where(real, indices, xp.full_like(indices, -1)),
        gains=gains,
        values=values,
        counts=counts,
        bounds=values[:, -1],
    )
