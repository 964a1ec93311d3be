"""Greedy: each time the item with the largest gain, within k, groups and a budget.

    greedy(f, features, 5)                              five items of one set, or of every set
    greedy(f, features, 5, context=state)               f(· | context): what is already covered
    greedy(f, features, 5, groups=pages, max_per_group=2)
    greedy(f, features, costs=tokens, budget=800)       as many as 800 tokens allow

Sets with k alone are searched as one batch; a set with constraints is searched by itself.
`top_k` is the baseline: the items with the k largest scores, each scored by itself.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.arrays import Array, cast_like, device_of, is_array, namespace, requires_gradient
from dgn.core.checks import checked_count, checked_items
from dgn.core.constraints import Constraints, as_numpy
from dgn.core.functions import Mixture, SetFunction, WeightedCoverage
from dgn.core.items import Items, State
from dgn.core.plain import joined, search_batch, search_within
from dgn.core.selection import Certificate, Selection, Selections
from dgn.errors import InvalidInput

_SMALL = 1 << 20
"""Sets with at most this many numbers are searched in memory that is kept."""

_COMPILED = (np.dtype(np.float32), np.dtype(np.float64))
"""The dtypes that the kernels know."""
_COMPILED_BY_TORCH = ("torch.float32", "torch.float64")


def greedy(
    objective: SetFunction,
    items: Items | Array,
    k: int | None = None,
    *,
    context: State | Any = None,
    pinned: Any = None,
    groups: Any = None,
    max_per_group: Any = None,
    costs: Any = None,
    budget: Any = None,
    cost_exponent: Any = 1.0,
    skipped_cover: bool = False,
) -> Selection | Selections:
    """Select up to k items of every set, each time the one with the largest gain.

    For k alone, the value is at least 1 − 1/e of the best possible one (Nemhauser et al., 1978);
    the certificate says how much for this particular set. Ties go to the lowest index, no item is
    selected twice, and a set with fewer than k items returns all of them. With groups, the value
    is at least 1/2 of the best possible one (Fisher et al., 1978).

    With costs and a budget, the result is the better of two sets: greedy by gain per cost, and the
    best single item that fits. With a cost exponent of 1 and without k and groups, they reach at
    least ½·(1 − 1/e) of the best possible value (Leskovec et al., 2007). Items that do not fit any
    more are skipped, and an item without a gain is not selected.

    Args:
        objective: The set function f, monotone and submodular.
        items: Items, or an array of features: [items, features] or [batch, items, features].
            `lazy_greedy` takes sparse matrices, too.
        k: The number of items to select; at most this many within a budget, where it is optional.
        context: What is already covered: f(· | context) is maximized instead of f. A `State` of f,
            or items of the set that are there already and are never selected: for one set, their
            indices or booleans, [items]; for a batch, booleans, [batch, items], or one list of
            indices for each set.
        pinned: Items that must be selected, as indices or booleans like `context`. They come first,
            in the order of their indices as passed, and count towards k and the budget; the
            certificate compares with the best set that contains them.
        groups: An integer for each item, [items] or [batch, items]. Numbers below 0 belong to no
            group.
        max_per_group: How many items of one group may be selected: one number of at least 1, or
            one number of at least 0 for each group from 0 on.
        costs: Greater than 0; [items] or [batch, items].
        budget: What the selected items may cost together: one number, or [batch].
        cost_exponent: From 0 (by gain alone) to 1 (by gain per cost); one number, or [batch].
        skipped_cover: Whether an item that does not fit into the budget counts as covering when it
            is skipped, so that cheap items that say a part of the same are not selected in its
            place. The guarantee is then the certificate alone.

    Returns:
        One Selection for a single set, Selections for a batch.

    Examples:
        >>> import numpy as np
        >>> from dgn.core.functions import FeatureCoverage
        >>> features = np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0]])
        >>> print(greedy(FeatureCoverage(), features, k=2))
        selected 0 (+1.1), 2 (+0.693): at least 84.9% of the best possible set
    """
    if k is None and budget is None and costs is None:
        raise InvalidInput("k", message="Pass k, or costs and a budget.")
    k = None if k is None else checked_count(k)
    is_state = context is None or isinstance(context, State)
    limits = {"pinned": pinned, "groups": groups, "max_per_group": max_per_group}
    limits |= {"costs": costs, "budget": budget, "present": None if is_state else context}
    if native.is_sparse(items):
        raise InvalidInput(
            "items", message="items is a sparse matrix, which lazy_greedy searches; pass it there."
        )
    is_free = all(value is None for value in limits.values())
    if k is not None and context is None and is_free:
        selection = _search_at_once(objective, items, k)
        if selection is not None:
            return selection
    state = context if is_state else None
    items = checked_items(objective, items, state)
    if k is not None and is_free:
        return _unbatched(_search_batch(objective, items, state, k), items)
    exponents = _checked_exponents(cost_exponent, items.batch)
    sets = Constraints.of_sets(items.mask, k, single=items.single, **limits)
    found = [
        _search_set(
            objective if items.batch == 1 else objective.of_set(row),
            items if items.batch == 1 else items.of_set(row),
            _context_of(state, row, items),
            constraints,
            exponents[row],
            skipped_cover=skipped_cover,
        )
        for row, constraints in enumerate(sets)
    ]
    like = items.features
    if budget is not None:
        like = namespace(like).astype(like[:1, :1, 0], namespace(like).float64)
    return found[0] if items.single else Selections.stack(found, like)


def greedy_within(
    objective: SetFunction,
    items: Items,
    constraints: Constraints,
    context: State | None = None,
    *,
    cost_exponent: float = 1.0,
    skipped_cover: bool = False,
) -> Selection:
    """Greedy on one set, within constraints that were made before."""
    items = checked_items(objective, items, context)
    return _search_set(
        objective, items, context, constraints, cost_exponent, skipped_cover=skipped_cover
    )


def _search_set(
    objective: SetFunction,
    items: Items,
    context: State | None,
    constraints: Constraints,
    cost_exponent: float,
    *,
    skipped_cover: bool,
) -> Selection:
    """Greedy on one set within constraints; everything was checked before."""
    state = objective.empty(items, context)
    for index in constraints.present:
        _, state = joined(objective, items, state, index)
    pinned_gains: list[float] = []
    for index in constraints.pinned:
        gain, state = joined(objective, items, state, index)
        pinned_gains.append(gain)
    left = constraints.after_pinned()
    indices, gains, bound, single = _search_left(
        objective, items, state, left, cost_exponent, skipped_cover=skipped_cover
    )
    # Where skipped items cover, the point is not to take something else in their place.
    if constraints.costs is not None and not skipped_cover and single[1] > sum(gains):
        indices, gains = [single[0]], [single[1]]
    like = items.features
    if constraints.costs is not None:
        like = np.zeros(1)
    if pinned_gains:
        # From the sum as it is rounded in a selection, so that the best set is seen to be the best.
        missing, gains = bound - sum(gains), [*pinned_gains, *gains]
        bound = list(itertools.accumulate(gains))[-1] + missing
    return Selection.of([*constraints.pinned, *indices], gains, bound, like)


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
    return _unbatched(Selections.of(chosen, gains, values, values[:, -1]), items)


def _search_left(
    objective: SetFunction,
    items: Items,
    state: State,
    left: Constraints,
    cost_exponent: float,
    *,
    skipped_cover: bool,
) -> tuple[list[int], list[float], float, tuple[int, float]]:
    """The search after what is present and pinned, by a kernel or in the plain form."""
    divisors = None
    if left.costs is not None and cost_exponent > 0:
        divisors = left.costs if cost_exponent == 1 else left.costs**cost_exponent
    coverage = compiled_coverage(objective, items.features)
    if coverage is not None and type(items.features) is np.ndarray:
        found = native.constrained(
            coverage, items.features, native.level_of(state), left, divisors, skipped_cover
        )
    else:
        found = search_within(objective, items, state, left, divisors, skipped_cover=skipped_cover)
    indices, gains, bound, single = found
    if not (skipped_cover and left.costs is not None):
        return found
    rest = left
    for index in indices:
        rest = rest.after(index)
    if not rest.open().any():
        return found
    # What was skipped covers all that is left; without it, some items may still add something.
    for index in indices:
        _, state = joined(objective, items, state, index)
    more, more_gains, _, _ = _search_left(
        objective, items, state, rest, cost_exponent, skipped_cover=False
    )
    return [*indices, *more], [*gains, *more_gains], bound, single


def _search_batch(
    objective: SetFunction, items: Items, context: State | None, k: int
) -> Selections:
    """k items of every set, by a kernel or in the plain form."""
    coverage = compiled_coverage(objective, items.features)
    state = objective.empty(items, context)
    if coverage is None:
        return search_batch(objective, items, state, k, items.mask)
    level = None if context is None else native.level_of(state)
    arrays, _ = _run_kernel(coverage, items.features, items.mask, level, k)
    return Selections.of(*arrays)


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
    if is_empty or not is_usual(objective, numbers):
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
    if not is_usual(objective, extremes):
        return None
    count = k - indices.count(-1)
    gains, values = tuple(numbers[:count]), tuple(numbers[k : k + count])
    certificate = Certificate(values[-1], max(values[-1], numbers[2 * k]))
    return Selection(tuple(indices[:count]), gains, values, certificate)


def _run_kernel(
    coverage: native.Coverage, features: Any, mask: Any, level: Any, k: int
) -> tuple[tuple[Any, ...], native.Range]:
    """The search by the kernel, for NumPy arrays and for tensors on the CPU."""
    if type(features) is np.ndarray:
        return native.greedy(coverage, features, mask, level, k)
    if coverage.weights is not None:
        coverage = coverage.with_weights(as_numpy(cast_like(coverage.weights, features)))
    mask, level = (None if one is None else as_numpy(one) for one in (mask, level))
    arrays, numbers = native.greedy(coverage, as_numpy(features), mask, level, k)
    return tuple(namespace(features).asarray(one) for one in arrays), numbers


def compiled_coverage(objective: Any, features: Any) -> native.Coverage | None:
    """The function as the kernels know it; None if they cannot search these features."""
    if not isinstance(objective, SetFunction) or not native.is_available():
        return None
    if type(features) is np.ndarray:
        is_compiled = features.dtype in _COMPILED
        is_compiled = is_compiled and features.shape[-2] < 2**31  # numbered in 32 bits
    elif not hasattr(features, "is_cuda") or features.is_cuda or requires_gradient(features):
        return None
    else:
        is_compiled = str(features.dtype) in _COMPILED_BY_TORCH
    return native.compiled(objective) if is_compiled else None


def is_usual(objective: SetFunction, numbers: native.Range) -> bool:
    """Whether `check` would accept features and weights of this range, without looking at them."""
    parts = objective.functions if isinstance(objective, Mixture) else (objective,)
    return not numbers.is_bad and all(
        isinstance(part, WeightedCoverage)
        and part.surely_allows(
            least=numbers.least,
            largest=numbers.largest,
            lightest=numbers.lightest,
            heaviest=numbers.heaviest,
        )
        for part in parts
    )


def _context_of(context: State | None, row: int, items: Items) -> State | None:
    """The context of one set of the batch."""
    if context is None or context.outside.shape[0] == 1:
        return context
    xp = namespace(items.features)
    return context.rows(xp.asarray([row], device=device_of(items.features)))


def _unbatched(selections: Selections, items: Items) -> Selection | Selections:
    """One Selection for one set, Selections for a batch."""
    return selections[0] if items.single else selections


def _checked_exponents(exponent: Any, batch: int) -> NDArray[np.float64]:
    """[batch], the exponents of the costs."""
    allowed = f"a number from 0 to 1, or an array of {batch} of them"
    try:
        found = np.broadcast_to(as_numpy(exponent).astype(np.float64), (batch,))
    except (TypeError, ValueError):
        raise InvalidInput("cost_exponent", found=f"{exponent!r:.40}", allowed=allowed) from None
    if not ((found >= 0) & (found <= 1)).all():
        raise InvalidInput("cost_exponent", found=f"{exponent!r:.40}", allowed=allowed)
    return found
