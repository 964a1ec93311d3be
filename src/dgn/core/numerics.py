"""Numerical functions that took thought, each with its reason. All work on NumPy and torch."""

from __future__ import annotations

from dgn.core.arrays import Array, Float, device_of, namespace, requires_gradient

_LANES = 16
"""Partial sums of a row."""


def safe_power(x: Float[Array, "*shape"], exponent: float) -> Float[Array, "*shape"]:
    """x**exponent for x ≥ 0, with a finite gradient at 0.

    A root has an infinite slope at zero, and zeros are common (ReLU produces them): one of them
    would turn the whole gradient into NaN. The slope at exactly zero is taken as that at 1, so that
    features that are zero can still learn to be something else.
    """
    xp = namespace(x)
    positive = x > 0
    # The inner `where` keeps the infinity out of the backward pass.
    root = _power(xp.where(positive, x, xp.ones_like(x)), exponent)
    at_zero = exponent * x if requires_gradient(x) else xp.zeros_like(x)
    return xp.where(positive, root, at_zero)


def _power(base: Float[Array, "*shape"], exponent: float) -> Float[Array, "*shape"]:
    """base**exponent for base > 0; equal numbers give equal results wherever they stand."""
    xp = namespace(base)
    if exponent == 1:
        return base
    if exponent == 0.5:
        return xp.sqrt(base)
    if hasattr(xp, "log_softmax"):
        # torch's own power rounds the last numbers of a row differently from the others.
        wide = xp.astype(base, xp.float64)
        return xp.astype(xp.exp(exponent * xp.log(wide)), base.dtype)
    return base**exponent


def safe_divide(
    numerator: Float[Array, "*shape"], denominator: Float[Array, "*shape"], *, at_zero: float
) -> Float[Array, "*shape"]:
    """Divide; where the denominator is 0 the result is `at_zero`, and no gradient is NaN."""
    xp = namespace(numerator)
    zero = denominator == 0
    quotient = numerator / xp.where(zero, xp.ones_like(denominator), denominator)
    return xp.where(zero, xp.full_like(quotient, at_zero), quotient)


def row_dot(rows: Float[Array, "*batch width"], weights: Float[Array, "..."]) -> Array:
    """The dot product of every row with its weights, over the last axis.

    Each row is summed separately, so that the result of a row does not depend on the rows around
    it: one matrix product may round the same row differently in another batch.
    """
    xp = namespace(rows)
    if hasattr(xp, "log_softmax"):  # torch; array-api-compat's vecdot fails under torch.func.vmap
        weights = xp.broadcast_to(weights, rows.shape)
        return (rows[..., None, :] @ weights[..., None])[..., 0, 0]
    return row_sum(rows * weights)


def row_sum(rows: Float[Array, "*batch width"]) -> Float[Array, "*batch"]:
    """The sum of every row, which zeros at its end do not change.

    NumPy divides a row by its length before it adds, so that a row rounds differently when padding
    makes it longer. Here number j is always added to partial sum j modulo 16, in order.
    """
    xp = namespace(rows)
    if hasattr(xp, "log_softmax"):  # torch, which divides a sum among threads
        return xp.sum(rows, axis=-1)
    *batch, width = rows.shape
    whole = width - width % _LANES
    sums = xp.sum(xp.reshape(rows[..., :whole], (*batch, -1, _LANES)), axis=-2)
    sums[..., : width - whole] += rows[..., whole:]
    return xp.sum(sums, axis=-1)


def log_softmax_with_complement(
    logits: Float[Array, "*shape"],
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """log p and log(1 − p) for p = softmax(logits) over the last axis, for any finite logits.

    log(1 − exp(log p)) is useless where p rounds to 1. Only the largest p can exceed one half, and
    one minus it is the sum of the others, which log-sum-exp computes exactly; for the rest log1p
    is safe. At a temperature of 0.01 this is a finite −10,000 where the direct way gives log 0.
    """
    xp = namespace(logits)
    log_p = _log_softmax(logits)
    index = xp.arange(logits.shape[-1], device=device_of(logits))
    largest = index == xp.argmax(logits, axis=-1, keepdims=True)
    lowest = xp.full_like(logits, lowest_log(logits))
    log_rest = _log_sum_exp(xp.where(largest, lowest, log_p))
    small_p = xp.exp(xp.where(largest, lowest, log_p))
    return log_p, xp.where(largest, log_rest, xp.log1p(-small_p))


def lowest_log(like: Array) -> float:
    """A finite stand-in for log 0.

    A few of these can be added without reaching −inf, and NaN begins with −inf − −inf.
    """
    return float(namespace(like).finfo(like.dtype).min) / 4


def _log_softmax(logits: Float[Array, "*shape"]) -> Array:
    xp = namespace(logits)
    if hasattr(xp, "log_softmax"):  # torch's own is a single kernel, forward and backward
        return xp.log_softmax(logits, dim=-1)
    # The shift comes first: next to logits of −10³⁷ (all items exhausted) adding log n is lost.
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    return shifted - _log_sum_exp(shifted)


def _log_sum_exp(x: Float[Array, "*shape"]) -> Array:
    xp = namespace(x)
    if hasattr(xp, "logsumexp"):
        return xp.logsumexp(x, dim=-1, keepdim=True)
    top = xp.max(x, axis=-1, keepdims=True)
    return top + xp.log(xp.sum(xp.exp(x - top), axis=-1, keepdims=True))
