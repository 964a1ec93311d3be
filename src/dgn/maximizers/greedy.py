"""Forward greedy: k times, add the item with the largest gain; all sets of a batch at once.

`top_k` is its baseline: the items with the k largest scores, each scored by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dgn import kernels
from dgn.arrays import Array, Bool, Float, Int, cast_like, device_of, is_array, namespace
from dgn.errors import InvalidInput
from dgn.maximizers._checks import (
    checked_count,
    checked_items,
    checked_share,
    compiled_coverage,
    unbatched,
)
from dgn.maximizers.large import search_lazily
from dgn.maximizers.selection import Certificate, Selection, Selections, largest_sum
from dgn.maximizers.sparse import is_sparse, sparse_set
from dgn.objectives import Items, SetFunction, State

_SMALL = 1 << 20
"""Sets with at most this many numbers are searched in memory that is kept."""


def greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    context: State | None = None,
    stop_share: float = 0.0,
) -> Selection | Selections:
    """Select up to k items of every set, each time the one with the largest gain.

    For a monotone submodular f, the value is at least 1 − 1/e of the best possible one (Nemhauser
    et al., 1978); the certificate says how much for this particular set. Ties go to the lowest
    index, no item is selected twice, and a set with fewer than k items returns all of them.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features]; or a
            SciPy sparse matrix, [items, features].
        k: The number of items to select.
        context: What is already covered: f(· | context) is maximized instead of f.
        stop_share: Stop before an item that adds less than this share of what the first one added.

    Returns:
        One Selection for a single set, Selections for a batch.

    Examples:
        >>> import numpy as np
        >>> from dgn.objectives import FeatureCoverage
        >>> features = np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]])
        >>> print(greedy(FeatureCoverage(), features, k=2))
        selected 0 (+1.1), 2 (+0.693): at least 84.9% of the best possible set
    """
    k, stop_share = checked_count(k), checked_share("stop_share", stop_share)
    if is_sparse(items):
        return search_lazily(sparse_set(objective, items, context), k, stop_share)
    if context is None:
        found = _search_at_once(objective, items, k, stop_share)
        if found is not None:
            return found
    items = checked_items(objective, items, context)
    found = _compiled_search(objective, items, context, k, stop_share)
    if found is None:
        found = _search(objective, items, objective.empty(items, context), k, stop_share)
    return unbatched(found, items)


def top_k(scores: Array, k: int, mask: Array = None) -> Selection | Selections:
    """Select the k items with the largest scores of every set.

    This is the best set of the modular function f(A) = Σ_{a∈A} score_a, so the certificate is
    always 100%. Scores may be negative; ties go to the lowest index.

    Args:
        scores: [batch, items], or [items] for a single set.
        k: The number of items to select.
        mask: The same shape as the scores, False for padding.

    Returns:
        One Selection for a single set, Selections for a batch.
    """
    if not is_array(scores):
        found = type(scores).__name__
        raise InvalidInput("scores", found=found, allowed="a NumPy array or a torch tensor")
    items = Items(scores[..., None], mask).widened()
    items.check_filled()
    scores, k = items.features[..., 0], min(checked_count(k), items.size)
    xp = namespace(scores)
    if not bool(xp.all(xp.isfinite(scores))):
        raise InvalidInput("scores", found="a NaN or an infinity", allowed="finite numbers")
    most = float(xp.finfo(scores.dtype).max) / k
    if xp.max(xp.abs(scores)).item() > most:
        raise InvalidInput(
            "scores", message=f"scores may add up to more than {scores.dtype} can hold."
        )
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
    found = Selections(
        indices=xp.where(real, indices, xp.full_like(indices, -1)),
        gains=gains,
        values=values,
        counts=counts,
        bounds=values[:, -1],
    )
    return unbatched(found, items)


def _search_at_once(
    objective: Any, items: Any, k: int, stop_share: float
) -> Selection | Selections | None:
    """A search that finds out by itself whether it was allowed.

    Checks take longer than the search of a small set. None if there is no kernel for these arrays,
    or if the numbers are unusual and have to be checked.
    """
    is_plain = not isinstance(items, Items)
    features: Any = items if is_plain else items.features
    shape: Any = tuple(getattr(features, "shape", ()))
    if len(shape) not in {2, 3} or 0 in shape:
        return None
    coverage = compiled_coverage(objective, features)
    if coverage is None:
        return None
    weights: Any = coverage.weights
    if weights is not None and weights.shape not in {shape[-1:], (*shape[:-2], shape[-1])}:
        return None
    if len(shape) == 2 and type(features) is np.ndarray and features.size <= _SMALL:
        return _search_small(objective, coverage, features, min(k, shape[0]), stop_share)
    batch = features if len(shape) == 3 else features[None]
    has_padding = not is_plain and items.has_padding
    found = _find(coverage, batch, items.mask if has_padding else None, None, k, stop_share)
    is_empty = has_padding and bool((found.indices[:, 0] < 0).any())
    if is_empty or not objective.surely_allows(found.range, tuple(batch.shape)):
        return None
    is_single = len(shape) == 2 if is_plain else items.single
    selections = _selections(found)
    return selections[0] if is_single else selections


def _search_small(
    objective: SetFunction, coverage: kernels.Coverage, features: Any, k: int, stop_share: float
) -> Selection | None:
    """One small set, with as little around the search as possible."""
    items, width = features.shape
    search = kernels.one_set(items, width, k, features.dtype)
    indices, numbers, found = search.search(coverage, features, stop_share)
    if not objective.surely_allows(found, (1, items, width)):
        return None
    count = k - indices.count(-1)
    gains, values = tuple(numbers[:count]), tuple(numbers[k : k + count])
    certificate = Certificate(values[-1], max(values[-1], numbers[2 * k]))
    return Selection(tuple(indices[:count]), gains, values, certificate)


def _compiled_search(
    objective: SetFunction, items: Items, context: State | None, k: int, stop_share: float
) -> Selections | None:
    """The search by a compiled kernel; None if there is none for this function or these arrays."""
    coverage = compiled_coverage(objective, items.features)
    if coverage is None:
        return None
    level = None if context is None else objective.empty(items, context).level
    return _selections(_find(coverage, items.features, items.mask, level, k, stop_share))


def _find(
    coverage: kernels.Coverage, features: Any, mask: Any, level: Any, k: int, stop_share: float
) -> kernels.Found:
    """The search by the kernel for the library and the device of the arrays."""
    if type(features) is np.ndarray:
        return kernels.greedy(coverage, features, mask, level, k, stop_share)
    if features.is_cuda:
        from dgn.gpu.greedy import greedy as search

        return search(coverage, features, mask, level, k, stop_share)

    def array(tensor: Any) -> Any:
        return None if tensor is None else tensor.detach().numpy()

    weights = None if coverage.weights is None else array(cast_like(coverage.weights, features))
    coverage = kernels.Coverage(coverage.form, coverage.parameter, weights)
    found = kernels.greedy(coverage, array(features), array(mask), array(level), k, stop_share)
    tensors: list[Any] = [namespace(features).asarray(one) for one in found[:-1]]
    return kernels.Found(*tensors, range=found.range)


def _selections(found: kernels.Found) -> Selections:
    counts = (found.indices >= 0).sum(-1)
    return Selections(found.indices, found.gains, found.values, counts, found.bounds)


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
        index, gain = best_available(seen[-1], available)
        enough = stop_share * gain if enough is None else enough
        # An exhausted set offers −inf, which is never enough.
        running = running & (gain >= enough)
        selected = one_hot(index, items.size) & running[:, None]
        available = available & ~selected
        state = objective.add(items, state, xp.astype(selected, items.features.dtype))
        indices.append(xp.where(running, index, -1))
        gains.append(xp.where(running, gain, 0.0))
    seen.append(objective.gains(items, state))
    chosen, added = xp.stack(indices, axis=1), xp.stack(gains, axis=1)
    values = xp.cumulative_sum(added, axis=1)
    return Selections(
        indices=chosen,
        gains=added,
        values=values,
        counts=xp.sum(chosen >= 0, axis=1, dtype=xp.int64),
        bounds=_least_bound(values, xp.stack(seen, axis=1), k),
    )


def _least_bound(
    values: Float[Array, "batch picks"], gains: Float[Array, "batch prefixes items"], k: int
) -> Float[Array, " batch"]:
    """The smallest bound over all prefixes of the selection, the empty one included."""
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
    """True at one index per row."""
    xp = namespace(indices)
    return xp.arange(size, device=device_of(indices))[None, :] == indices[:, None]
