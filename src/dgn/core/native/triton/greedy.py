"""Forward greedy on a GPU: one program per set reads its features once, for all k steps."""

# pyright: basic
# ruff: noqa: N803

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from dgn.core.native import FORMS, Coverage, Range
from dgn.core.native.triton.growth import LOG1P, increase, prepare, unit_log1p

_LARGEST = 1 << 15
"""The most numbers of a set that fit into the registers of a program."""

_MOST_ITEMS = 64

_NUMBERS_PER_WARP = 2048
"""A thread has 64 numbers of a set: more need registers that programs at the same time lack."""

_OPTIONS = {} if torch.version.hip else {"maxnreg": 128}

_FACILITY, _PROBABILISTIC = tl.constexpr(4), tl.constexpr(5)


def fits(coverage: Coverage, features: Tensor) -> bool:
    """Whether sets of this size fit into the registers of a program, with a dtype it knows.

    Triton 3.6 cannot compile powers for some sizes ("operand does not dominate this use").
    """
    items, width = features.shape[-2:]
    is_known = features.dtype in {torch.float32, torch.bfloat16, torch.float16}
    is_known = is_known and coverage.form != "power"
    # Every gain is compared with every other, for all prefixes at once.
    return is_known and items <= _MOST_ITEMS and _padded(items) * _padded(width) <= _LARGEST


def greedy(
    coverage: Coverage,
    features: Tensor,
    mask: Tensor | None,
    level: Tensor | None,
    k: int,
) -> tuple[tuple[Tensor, ...], Range]:
    """Select up to k items of every set.

    Args:
        coverage: The set function.
        features: [batch, items, features]; float32, bfloat16 or float16. Sums are float32; with
            half precision, logarithms have an error of 10⁻⁵, far below that of the features.
        mask: [batch, items], False for padding.
        level: [batch, features], what is already covered; None if nothing is.
        k: The number of items to select.
    """
    batch, items, width = features.shape
    k = min(k, items)
    features = features.contiguous()
    new: dict[str, Any] = {"device": features.device, "dtype": torch.float32}
    indices = torch.empty(batch, k, device=features.device, dtype=torch.int64)
    (gains, values), bounds = torch.empty(2, batch, k, **new), torch.empty(batch, **new)
    largest, seen = torch.empty(batch, **new), torch.empty(batch, k + 1, items, **new)
    weights, weights_stride = _rows(coverage.weights, features)
    levels, level_stride = _rows(level, features)
    _greedy_kernel[(batch,)](
        *(features, features if mask is None else mask.contiguous(), weights, levels),
        *(indices, gains, seen, largest),
        *(items, width, k, weights_stride, level_stride, coverage.parameter),
        FORM=FORMS[coverage.form],
        HAS_MASK=mask is not None,
        HAS_WEIGHTS=coverage.weights is not None,
        HAS_LEVEL=level is not None,
        IS_HALF=features.dtype != torch.float32,
        N=_padded(items),
        U=_padded(width),
        num_warps=_warps(_padded(items) * _padded(width)),
        **_OPTIONS,
    )
    _bounds_kernel[(batch,)](
        *(seen, gains, values, bounds, items, k),
        N=_padded(items),
        K=triton.next_power_of_2(k + 1),
        num_warps=1,
    )
    found_range = _range_of(largest, weights if coverage.weights is not None else None)
    return (indices, gains, values, bounds), found_range


def _range_of(largest: Tensor, weights: Tensor | None) -> Range:
    """What the features and the weights are like; this waits for the search."""
    ends = [*torch.aminmax(largest), *(() if weights is None else torch.aminmax(weights))]
    least, most, *others = torch.stack(ends).tolist()
    if least == 0:  # a set without any feature says nothing about the others
        least = torch.where(largest > 0, largest, torch.inf).min().item()
    lightest, heaviest = others or (1.0, 1.0)
    return Range(float(not most >= 0), most, least, lightest, heaviest)


def _warps(numbers: int) -> int:
    return min(16, max(1, numbers // _NUMBERS_PER_WARP))


def _padded(size: int) -> int:
    return max(8, triton.next_power_of_2(size))


def _rows(values: Any, features: Tensor) -> tuple[Tensor, int]:
    """The values in float32, and how far the rows of two sets are apart."""
    if values is None:
        return features, 0
    rows = torch.as_tensor(values, device=features.device, dtype=torch.float32)
    if rows.ndim == 2 and rows.shape[0] > 1 and rows.stride(0):
        return rows.contiguous(), rows.shape[1]
    return rows.reshape(-1, rows.shape[-1])[:1].contiguous(), 0


@triton.jit
def fast_log2(x):
    """log₂(x) by the special instruction: an error of 2⁻²² for x from 1 to 2."""
    return tl.inline_asm_elementwise(
        "lg2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def _greedy_kernel(
    features,
    mask,
    weights,
    level,
    indices,
    gains,
    seen,
    largest,
    items,
    width,
    k,
    weights_stride,
    level_stride,
    parameter,
    FORM: tl.constexpr,
    HAS_MASK: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
    HAS_LEVEL: tl.constexpr,
    IS_HALF: tl.constexpr,
    N: tl.constexpr,
    U: tl.constexpr,
):
    number = tl.program_id(0).to(tl.int64)
    a, u = tl.arange(0, N), tl.arange(0, U)
    is_item, is_feature = a < items, u < width
    first = features + number * items * width
    is_real_place = is_item[:, None] & is_feature[None, :]
    h = tl.load(first + a[:, None] * width + u[None, :], mask=is_real_place, other=0.0)
    # By their bits, numbers from 0 up are in order, and all others come after infinity.
    bits = h.to(tl.float32).to(tl.uint32, bitcast=True)
    highest_bits = tl.max(tl.max(bits, axis=1), axis=0)
    highest = highest_bits.to(tl.float32, bitcast=True)
    tl.store(largest + number, tl.where(highest_bits > 0x7F800000, float("nan"), highest))
    available = is_item
    if HAS_MASK:
        available = tl.load(mask + number * items + a, mask=is_item, other=0) != 0
    w = tl.where(is_feature, 1.0, 0.0)
    if HAS_WEIGHTS:
        w = tl.load(weights + number * weights_stride + u, mask=is_feature, other=0.0)
    if IS_HALF and FORM == LOG1P:
        w *= 0.6931471805599453  # of logarithms to the base 2
    now = tl.zeros([U], tl.float32)
    if FORM == _PROBABILISTIC:
        now += 1.0
    if HAS_LEVEL:
        now = tl.load(level + number * level_stride + u, mask=is_feature, other=0.0)
    is_running = True
    for step in range(k + 1):
        if FORM == _FACILITY:
            added = tl.maximum(h.to(tl.float32) - now[None, :], 0.0)
        elif FORM == _PROBABILISTIC:
            added = h.to(tl.float32) * now[None, :]
        else:
            ready = prepare(now, parameter, FORM)
            if IS_HALF and FORM == LOG1P:
                added = fast_log2(h.to(tl.float32) * ready[None, :] + 1.0)
            elif FORM == LOG1P:
                if highest_bits <= 0x3F800000:  # 1.0; by its bits, -0.0 is higher
                    added = unit_log1p(h * ready[None, :])
                else:
                    added = increase(h, now[None, :], ready[None, :], parameter, FORM)
            else:
                added = increase(h.to(tl.float32), now[None, :], ready[None, :], parameter, FORM)
        found = tl.sum(w[None, :] * added, axis=1)
        found = tl.where(available, found, -1.0)
        # The bounds come later: here, every step waits for the one before it.
        tl.store(seen + (number * (k + 1) + step) * items + a, found, mask=is_item)
        if step < k:
            gain, best = tl.max(found, axis=0, return_indices=True)  # the lowest index of equals
            is_running = is_running & (gain >= 0)
            tl.store(indices + number * k + step, tl.where(is_running, best, -1).to(tl.int64))
            tl.store(gains + number * k + step, tl.where(is_running, gain, 0.0))
            available = available & ((a != best) | (is_running == 0))
            # A row of registers cannot be chosen at run time; this one is in the cache.
            row = tl.load(first + best * width + u, mask=is_feature, other=0.0).to(tl.float32)
            if FORM == _FACILITY:
                after = tl.maximum(now, row)
            elif FORM == _PROBABILISTIC:
                after = now * (1.0 - row)
            else:
                after = now + row
            now = tl.where(is_running, after, now)


@triton.jit
def _bounds_kernel(seen, gains, values, bounds, items, k, N: tl.constexpr, K: tl.constexpr):
    """For each prefix, its value and the k largest gains after it; the smallest of the sums."""
    number = tl.program_id(0).to(tl.int64)
    a, step = tl.arange(0, N), tl.arange(0, K)
    is_item, is_prefix = a < items, step <= k
    place = (number * (k + 1) + step[:, None]) * items + a[None, :]
    found = tl.load(seen + place, mask=is_prefix[:, None] & is_item[None, :], other=-1.0)
    added = tl.load(gains + number * k + step, mask=step < k, other=0.0)
    after = tl.cumsum(added, axis=0)
    tl.store(values + number * k + step, after, mask=step < k)
    ranked = tl.sort(found, dim=1, descending=True)
    counts = (a[None, :] < k) & (ranked > 0)
    reachable = after - added + tl.sum(tl.where(counts, ranked, 0.0), axis=1)
    bound = tl.min(tl.where(is_prefix, reachable, float("inf")), axis=0)
    tl.store(bounds + number, bound)
