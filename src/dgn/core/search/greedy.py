"""Forward greedy: k times, add the item with the largest gain; all sets of a batch at once.

`top_k` is its baseline: the items with the k largest scores, each scored by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dgn.core import native
from dgn.core.arrays import Array, Float, cast_like, device_of, is_array, namespace
from dgn.core.functions import Items, SetFunction, State
from dgn.core.search._checks import (
    check_gains,
    checked_count,
    checked_items,
    compiled_coverage,
    is_usual,
    may_fall,
    unbatched,
)
from dgn.core.search.constrained import begin, best_available, constrained_greedy, one_hot
from dgn.core.search.constraints import Constraints
from dgn.core.search.large import search_lazily
from dgn.core.search.selection import Certificate, Selection, Selections, largest_sum
from dgn.core.search.sparse import is_sparse, sparse_set
from dgn.errors import InvalidInput

_SMALL = 1 << 20
"""Sets with at most this many numbers are searched in memory that is kept."""


def greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int,
    *,
    context: State | None = None,
    given: Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
) -> Selection | Selections:
    """Select up to k items of every set, each time the one with the largest gain.

    For a monotone submodular f, the value is at least 1 − 1/e of the best possible one (Nemhauser
    et al., 1978); the certificate says how much for this particular set. Ties go to the lowest
    index, no item is selected twice, and a set with fewer than k items returns all of them. With
    groups, the value is at least 1/2 of the best possible one (Fisher et al., 1978).

    If f says that it is not monotone, the search stops where no item has a positive gain; it has no
    guarantee (`random_greedy` has), and its certificate is that of the first prefix, which needs
    submodularity alone. If f says that it is not submodular, k items are selected whatever their
    gains are, and the certificate proves nothing.

    Args:
        objective: The set function f.
        items: Items, or an array of features: [items, features] or [batch, items, features]; or a
            SciPy sparse matrix, [items, features].
        k: The number of items to select.
        context: What is already covered: f(· | context) is maximized instead of f.
        given: Items of the set that are already there: f(· | given) is maximized, and they are
            never selected. For one set, their indices or booleans, [items]; for a batch, booleans,
            [batch, items], or one list of indices for each set.
        pinned: Items that must be selected, passed like `given`. They come first, in the order of
            their indices as passed, and count towards k; the certificate compares with the best
            set that contains them.
        groups: An integer for each item, [items] or [batch, items]. Numbers below 0 belong to no
            group.
        max_per_group: How many items of one group may be selected: one number of at least 1, or
            one number of at least 0 for each group from 0 on.

    Returns:
        One Selection for a single set, Selections for a batch.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.functions import FeatureCoverage
        >>> features = np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]])
        >>> print(greedy(FeatureCoverage(), features, k=2))
        selected 0 (+1.1), 2 (+0.693): at least 84.9% of the best possible set
    """
    k = checked_count(k)
    limits = {"given": given, "pinned": pinned, "groups": groups, "max_per_group": max_per_group}
    if is_sparse(items):
        large = sparse_set(objective, items, context)
        return search_lazily(large, k, Constraints.of(large.mask, k, single=True, **limits))
    is_free = given is None and pinned is None and groups is None and max_per_group is None
    if context is None and is_free:
        selection = _search_at_once(objective, items, k)
        if selection is not None:
            return selection
    items = checked_items(objective, items, context, needs_submodular=False)
    constraints = Constraints.of(items.mask, k, single=items.single, **limits)
    return unbatched(search_sets(objective, items, context, constraints, k), items)


def search_sets(
    objective: SetFunction,
    items: Items,
    context: State | None,
    constraints: Constraints,
    k: int,
) -> Selections:
    """Greedy on items and constraints that were checked."""
    if constraints.limits_choice:
        return constrained_greedy(objective, items, context, constraints, k)
    state = begin(objective, items, context, constraints).state
    allowed = constraints.room(items.mask, k).allowed
    coverage = compiled_coverage(objective, items.features)
    if coverage is None:
        return _search(objective, items, state, k, allowed)
    level = None if context is None and constraints.given is None else state.level
    arrays, _ = _run_kernel(coverage, items.features, allowed, level, k)
    return Selections.of(*arrays)


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
        raise InvalidInput(
            "scores", found=type(scores).__name__, allowed="a NumPy array or a torch tensor"
        )
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
    indices = xp.argsort(-ranked, axis=1, stable=True)[:, :k]
    counts = xp.minimum(
        xp.sum(items.mask, axis=1, dtype=xp.int64),
        xp.full((items.batch,), k, dtype=xp.int64, device=device_of(scores)),
    )
    real = xp.arange(k, device=device_of(scores))[None, :] < counts[:, None]
    gains = xp.take_along_axis(scores, indices, axis=1)
    gains = xp.where(real, gains, xp.zeros_like(gains))
    values = xp.cumulative_sum(gains, axis=1)
    chosen = xp.where(real, indices, xp.full_like(indices, -1))
    return unbatched(Selections.of(chosen, gains, values, values[:, -1]), items)


def _search_at_once(objective: Any, items: Any, k: int) -> Selection | Selections | None:
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
        return _search_small(objective, coverage, features, min(k, shape[0]))
    batch = features if len(shape) == 3 else features[None]
    has_padding = not is_plain and items.has_padding
    arrays, numbers = _run_kernel(coverage, batch, items.mask if has_padding else None, None, k)
    is_empty = has_padding and bool((arrays[0][:, 0] < 0).any())
    if is_empty or not is_usual(objective, numbers, tuple(batch.shape)):
        return None
    is_single = len(shape) == 2 if is_plain else items.single
    selections = Selections.of(*arrays)
    return selections[0] if is_single else selections


def _search_small(
    objective: SetFunction, coverage: native.Coverage, features: Any, k: int
) -> Selection | None:
    """One small set, with as little around the search as possible."""
    items, width = features.shape
    search = native.one_set(items, width, k, features.dtype)
    indices, numbers, extremes = search.search(coverage, features)
    if not is_usual(objective, extremes, (1, items, width)):
        return None
    count = k - indices.count(-1)
    gains, values = tuple(numbers[:count]), tuple(numbers[k : k + count])
    certificate = Certificate(values[-1], max(values[-1], numbers[2 * k]))
    return Selection(tuple(indices[:count]), gains, values, certificate)


def _run_kernel(
    coverage: native.Coverage, features: Any, mask: Any, level: Any, k: int
) -> tuple[tuple[Any, ...], native.Range]:
    """The search by the kernel for the library and the device of the arrays."""
    if type(features) is np.ndarray:
        return native.greedy(coverage, features, mask, level, k)
    if features.is_cuda:
        from dgn.core.native.triton.greedy import greedy as search

        return search(coverage, features, mask, level, k)

    def array(tensor: Any) -> Any:
        return None if tensor is None else tensor.detach().numpy()

    weights = None if coverage.weights is None else array(cast_like(coverage.weights, features))
    coverage = native.Coverage(coverage.form, coverage.parameter, weights)
    arrays, numbers = native.greedy(coverage, array(features), array(mask), array(level), k)
    return tuple(namespace(features).asarray(one) for one in arrays), numbers


def _search(
    objective: SetFunction, items: Items, state: State, k: int, allowed: Array = None
) -> Selections:
    """The plain form, for every set function and every array library."""
    xp = namespace(items.features)
    available = items.mask if allowed is None else allowed
    indices: list[Array] = []
    gains: list[Array] = []
    seen: list[Array] = []
    stops = may_fall(objective)
    for _ in range(min(k, items.size)):
        seen.append(objective.gains(items, state))
        check_gains(objective, seen[-1], available, objective.value(state))
        if stops:
            available = available & (seen[-1] > 0)
        index, gain = best_available(seen[-1], available)
        running = xp.any(available, axis=1)
        selected = one_hot(index, items.size) & running[:, None]
        available = available & ~selected
        state = objective.add(items, state, xp.astype(selected, items.features.dtype))
        indices.append(xp.where(running, index, -1))
        gains.append(xp.where(running, gain, 0.0))
    chosen, added = xp.stack(indices, axis=1), xp.stack(gains, axis=1)
    values = xp.cumulative_sum(added, axis=1)
    if stops or not objective.submodular:
        positive = xp.maximum(seen[0], xp.zeros_like(seen[0]))
        bounds = largest_sum(positive, k) if stops else xp.full_like(values[:, -1], xp.inf)
        return Selections.of(chosen, added, values, bounds)
    seen.append(objective.gains(items, state))
    check_gains(objective, seen[-1], available, objective.value(state))
    return Selections.of(chosen, added, values, _least_bound(values, xp.stack(seen, axis=1), k))


def _least_bound(
    values: Float[Array, "batch picks"], gains: Float[Array, "batch prefixes items"], k: int
) -> Float[Array, " batch"]:
    """The smallest bound over all prefixes of the selection, the empty one included."""
    xp = namespace(values)
    before = xp.concat([xp.zeros_like(values[:, :1]), values], axis=1)
    return xp.min(before + largest_sum(gains, k), axis=1)
