"""The unfolded layers on a GPU: one program per set, its features in registers for all layers."""

# pyright: basic
# ruff: noqa: N803

import torch
import triton
import triton.language as tl
from torch import Tensor

from dgn.core.native import FORMS
from dgn.core.native.triton.growth import increase, log1p, prepare, slopes
from dgn.core.numerics import lowest_log

_LARGEST = 1 << 13
"""The most numbers of a set that fit into the registers of a program, its gradient included; beyond
them, the layers one by one are faster."""


def fits(items: int, width: int) -> bool:
    """Whether a set of this size fits into the registers of a program."""
    return _padded(items) * _padded(width) <= _LARGEST


def unfold(
    features: Tensor,
    mask: Tensor,
    log_prior: Tensor,
    weights: Tensor,
    level: Tensor,
    noise: Tensor | None,
    form: str,
    parameter: float,
    temperature: float,
    layers: int,
    is_hard: bool,
) -> tuple[Tensor, ...]:
    """What the layers choose; see `dgn.core.native.SoftSets.unfold`."""
    batch, items, width = features.shape
    by_layer = [features.new_empty(batch, layers, items) for _ in range(4)]
    after = [features.new_empty(batch, items), features.new_empty(batch, width)]
    smallest = features.new_empty(batch)
    _unfold_kernel[(batch,)](
        *(features.contiguous(), mask.contiguous(), log_prior.contiguous()),
        *(_rows(weights), _rows(level), features if noise is None else noise.contiguous()),
        *(*by_layer, *after, smallest),
        *(items, width, layers, _stride(weights), _stride(level)),
        *(1 / temperature, parameter, lowest_log(features)),
        FORM=FORMS[form],
        IS_HARD=is_hard,
        HAS_NOISE=noise is not None,
        N=_padded(items),
        U=_padded(width),
        num_warps=_warps(items, width, 1),
    )
    if features.is_cuda:
        torch._assert_async((smallest >= 0).all())  # pyright: ignore
    return (*by_layer, *after)


def slope(
    features: Tensor,
    mask: Tensor,
    log_prior: Tensor,
    weights: Tensor,
    level: Tensor,
    form: str,
    parameter: float,
    temperature: float,
    layers: int,
    is_hard: bool,
    chosen: list[Tensor],
    gradients: list[Tensor],
) -> tuple[Tensor, ...]:
    """The gradients of features, weights, level and log prior; see `SoftSets.slope`."""
    batch, items, width = features.shape
    found = (
        features.new_empty(batch, items, width),
        features.new_empty(batch, width),
        features.new_empty(batch, width),
        features.new_empty(batch, items),
    )
    _slope_kernel[(batch,)](
        *(features.contiguous(), mask.contiguous(), log_prior.contiguous()),
        *(_rows(weights), _rows(level), *chosen),
        *(*(one.contiguous() for one in gradients), *found),
        *(items, width, layers, _stride(weights), _stride(level)),
        *(1 / temperature, parameter, lowest_log(features)),
        FORM=FORMS[form],
        IS_HARD=is_hard,
        N=_padded(items),
        U=_padded(width),
        num_warps=_warps(items, width, 4),
    )
    return found


def matched_labels(log_probs: Tensor, gold: Tensor) -> tuple[Tensor, Tensor]:
    """The gold item of each layer, and those that it chose from; [batch, layers, items] each."""
    batch, layers, items = log_probs.shape
    labels, remaining = (
        torch.empty(log_probs.shape, dtype=torch.bool, device=gold.device) for _ in range(2)
    )
    _labels_kernel[(batch,)](
        *(log_probs.contiguous(), gold.contiguous(), labels, remaining, items, layers),
        N=_padded(items),
        num_warps=1,
    )
    return labels, remaining


def _padded(size: int) -> int:
    return max(8, triton.next_power_of_2(size))


def _warps(items: int, width: int, least: int) -> int:
    """Few warps wait less for each other, and have more registers each."""
    return max(least, _padded(items) * _padded(width) // 4096)


def _rows(rows: Tensor) -> Tensor:
    return rows[:1].contiguous() if _stride(rows) == 0 else rows.contiguous()


def _stride(rows: Tensor) -> int:
    """How far the rows of two sets are apart; 0 if all sets have the same row."""
    return 0 if rows.stride(0) == 0 else rows.shape[1]


@triton.jit
def _unfold_kernel(
    features,
    mask,
    log_prior,
    weights,
    level,
    noise,
    log_probs,
    log_others,
    outside_before,
    inside_before,
    outside_after,
    level_after,
    smallest,
    items,
    width,
    layers,
    weights_stride,
    level_stride,
    sharpness,
    parameter,
    lowest,
    FORM: tl.constexpr,
    IS_HARD: tl.constexpr,
    HAS_NOISE: tl.constexpr,
    N: tl.constexpr,
    U: tl.constexpr,
):
    number = tl.program_id(0).to(tl.int64)
    a, u = tl.arange(0, N), tl.arange(0, U)
    is_item, is_feature = a < items, u < width
    place = number * items * width + a[:, None] * width + u[None, :]
    h = tl.load(features + place, mask=is_item[:, None] & is_feature[None, :], other=0.0)
    tl.store(smallest + number, tl.min(tl.min(h, axis=1), axis=0))
    real = tl.load(mask + number * items + a, mask=is_item, other=0) != 0
    w = tl.load(weights + number * weights_stride + u, mask=is_feature, other=0.0)
    start = tl.load(level + number * level_stride + u, mask=is_feature, other=0.0)
    log_outside = tl.load(log_prior + number * items + a, mask=is_item, other=0.0)
    outside = tl.full([N], 1.0, tl.float32)
    inside = tl.zeros([N], tl.float32)
    now = start
    for layer in range(layers):
        at = (number * layers + layer) * items + a
        tl.store(outside_before + at, outside, mask=is_item)
        tl.store(inside_before + at, inside, mask=is_item)
        ready = prepare(now, parameter, FORM)
        added = increase(outside[:, None] * h, now[None, :], ready[None, :], parameter, FORM)
        gains = tl.sum(w[None, :] * added, axis=1)
        if HAS_NOISE:
            gains += tl.load(noise + at, mask=is_item, other=0.0)
        # Places that are no item at all stay below every item, exhausted ones included.
        scores = gains * sharpness + tl.where(real, log_outside, lowest)
        scores = tl.where(is_item, scores, 2 * lowest)
        best = tl.argmax(scores, axis=0, tie_break_left=True)
        shifted = scores - tl.max(scores, axis=0)
        log_p = shifted - tl.log(tl.sum(tl.exp(shifted), axis=0))
        others = tl.where(a == best, lowest, log_p)
        others = tl.where(is_item, others, 2 * lowest)
        top = tl.max(others, axis=0)
        rest = top + tl.log(tl.sum(tl.exp(others - top), axis=0))
        log_other = tl.where(a == best, rest, log1p(-tl.exp(tl.minimum(log_p, -0.69))))
        tl.store(log_probs + at, log_p, mask=is_item)
        tl.store(log_others + at, log_other, mask=is_item)
        if IS_HARD:
            member = tl.where(a == best, 1.0, 0.0)
            log_left = tl.where(a == best, lowest, 0.0)
        else:
            member = tl.exp(log_p)
            log_left = log_other
        inside += outside * member
        outside *= 1.0 - member
        log_outside = tl.maximum(log_outside + log_left, lowest)
        now = start + tl.sum(inside[:, None] * h, axis=0)
    tl.store(outside_after + number * items + a, outside, mask=is_item)
    tl.store(level_after + number * width + u, now, mask=is_feature)


@triton.jit
def _slope_kernel(
    features,
    mask,
    log_prior,
    weights,
    level,
    log_probs,
    log_others,
    outside_before,
    inside_before,
    by_log_probs,
    by_log_others,
    by_outside_after,
    by_level_after,
    by_features,
    by_weights,
    by_level,
    by_log_prior,
    items,
    width,
    layers,
    weights_stride,
    level_stride,
    sharpness,
    parameter,
    lowest,
    FORM: tl.constexpr,
    IS_HARD: tl.constexpr,
    N: tl.constexpr,
    U: tl.constexpr,
):
    number = tl.program_id(0).to(tl.int64)
    a, u = tl.arange(0, N), tl.arange(0, U)
    is_item, is_feature = a < items, u < width
    place = number * items * width + a[:, None] * width + u[None, :]
    is_real_place = is_item[:, None] & is_feature[None, :]
    h = tl.load(features + place, mask=is_real_place, other=0.0)
    real = tl.load(mask + number * items + a, mask=is_item, other=0) != 0
    w = tl.load(weights + number * weights_stride + u, mask=is_feature, other=0.0)
    start = tl.load(level + number * level_stride + u, mask=is_feature, other=0.0)
    prior = tl.load(log_prior + number * items + a, mask=is_item, other=0.0)
    d_outside = tl.load(by_outside_after + number * items + a, mask=is_item, other=0.0)
    d_level = tl.load(by_level_after + number * width + u, mask=is_feature, other=0.0)
    d_log = tl.zeros([N], tl.float32)
    d_weights = tl.zeros([U], tl.float32)
    d_features = tl.zeros([N, U], tl.float32)
    for step in range(layers):
        layer = layers - 1 - step
        at = (number * layers + layer) * items + a
        log_p = tl.load(log_probs + at, mask=is_item, other=2 * lowest)
        log_other = tl.load(log_others + at, mask=is_item, other=0.0)
        outside = tl.load(outside_before + at, mask=is_item, other=1.0)
        inside = tl.load(inside_before + at, mask=is_item, other=0.0)
        d_log_p = tl.load(by_log_probs + at, mask=is_item, other=0.0)
        d_log_other = tl.load(by_log_others + at, mask=is_item, other=0.0)
        best = tl.argmax(log_p, axis=0, tie_break_left=True)
        p = tl.exp(log_p)
        # Where log(1 − membership) was cut off, nothing comes back through it.
        log_outside = prior
        for before in range(layer):
            then = (number * layers + before) * items + a
            if IS_HARD:
                chosen = tl.load(log_probs + then, mask=is_item, other=2 * lowest)
                picked = tl.argmax(chosen, axis=0, tie_break_left=True)
                left = tl.where(a == picked, lowest, 0.0)
            else:
                left = tl.load(log_others + then, mask=is_item, other=0.0)
            log_outside = tl.maximum(log_outside + left, lowest)
        if IS_HARD:
            member = tl.where(a == best, 1.0, 0.0)
            left = tl.where(a == best, lowest, 0.0)
        else:
            member = p
            left = log_other
        d_log = tl.where(log_outside + left >= lowest, d_log, 0.0)
        if not IS_HARD:
            d_log_other += d_log
        # What joined the set.
        d_joining = tl.where(real, tl.sum(d_level[None, :] * h, axis=1), 0.0)
        joining = tl.where(real, outside * member, 0.0)
        d_features += joining[:, None] * d_level[None, :]
        d_log_p += (d_joining - d_outside) * outside * p
        d_outside = d_joining * member + d_outside * (1.0 - member)
        # The choice. Only the largest p may be near 1; its log(1 − p) is that of the others' sum.
        is_best = a == best
        of_best = tl.sum(tl.where(is_best, d_log_other, 0.0), axis=0)
        log_rest = tl.sum(tl.where(is_best, log_other, 0.0), axis=0)
        small_p = tl.where(is_best, 0.0, p)
        share = tl.where(is_best, 0.0, tl.exp(tl.minimum(log_p - log_rest, 0.0)))
        d_log_p += of_best * share - d_log_other * small_p / (1.0 - small_p)
        d_scores = tl.where(
            is_item, d_log_p - p * tl.sum(tl.where(is_item, d_log_p, 0.0), axis=0), 0.0
        )
        d_log += tl.where(real, d_scores, 0.0)
        # The gains.
        d_gains = tl.where(real, d_scores * sharpness, 0.0)
        now = start + tl.sum(inside[:, None] * h, axis=0)
        ready = prepare(now, parameter, FORM)
        grown = outside[:, None] * h
        added = increase(grown, now[None, :], ready[None, :], parameter, FORM)
        d_weights += tl.sum(d_gains[:, None] * added, axis=0)
        by_step, by_now = slopes(grown, now[None, :], ready[None, :], parameter, FORM)
        d_added = d_gains[:, None] * w[None, :]
        d_features += d_added * by_step * outside[:, None]
        d_outside += tl.sum(d_added * by_step * h, axis=1)
        d_level += tl.sum(d_added * by_now, axis=0)
    tl.store(by_features + place, d_features, mask=is_real_place)
    tl.store(by_weights + number * width + u, d_weights, mask=is_feature)
    tl.store(by_level + number * width + u, d_level, mask=is_feature)
    tl.store(by_log_prior + number * items + a, d_log, mask=is_item)


@triton.jit
def _labels_kernel(log_probs, gold, labels, remaining, items, layers, N: tl.constexpr):
    number = tl.program_id(0).to(tl.int64)
    a = tl.arange(0, N)
    is_item = a < items
    left = tl.load(gold + number * items + a, mask=is_item, other=0) != 0
    for layer in range(layers):
        at = (number * layers + layer) * items + a
        tl.store(remaining + at, left, mask=is_item)
        log_p = tl.load(log_probs + at, mask=is_item, other=0.0)
        best = tl.argmax(tl.where(left, log_p, -float("inf")), axis=0, tie_break_left=True)
        label = left & (a == best)
        tl.store(labels + at, label, mask=is_item)
        left = left & (a != best)
