"""What an item adds to a feature, and its derivatives, inside a Triton kernel.

The formulas are those of `dgn.core.functions.concave`; their C form is in `core/native/c/unfold.c`.
"""

# Triton compiles these functions from their text; its types are not Python's.
# pyright: basic
# ruff: noqa: N803

import triton
import triton.language as tl

LOG1P, SQRT, LINEAR, SATURATED = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
ONE_MINUS_EXP, POWER = tl.constexpr(6), tl.constexpr(7)


@triton.jit
def log1p(x):
    """log(1 + x) for x ≥ −0.5, with a relative error below 2 eps, as in vector.h."""
    bits = (x + 1.0).to(tl.int32, bitcast=True)
    e = (bits - 0x3F3504F3) >> 23
    f = tl.where(e == 0, x, (bits - (e << 23)).to(tl.float32, bitcast=True) - 1.0)
    q = f * 0.08734811097383499 - 0.14307507872581482
    q = q * f + 0.14917978644371033
    q = q * f - 0.1657050997018814
    q = q * f + 0.19962072372436523
    q = q * f - 0.25001755356788635
    q = q * f + 0.33333951234817505
    q = q * f - 0.49999991059303284
    return e.to(tl.float32) * 0.693147180559945 + (q * (f * f) + f)


@triton.jit
def unit_log1p(x):
    """log(1 + x) for x from 0 to 1, with a relative error below 2 eps."""
    q = x * 0.005232686642557383 - 0.029505206272006035
    q = q * x + 0.07822589576244354
    q = q * x - 0.13663241267204285
    q = q * x + 0.19106005132198334
    q = q * x - 0.2484298199415207
    q = q * x + 0.3331909775733948
    q = q * x - 0.4999949336051941
    return (q * x + 0.9999999403953552) * x


@triton.jit
def expm1(x):
    """exp(x) − 1 for x ≤ 0."""
    small = x * (1.0 + x * (0.5 + x * (0.16666667 + x * (0.041666668 + x * 0.008333334))))
    return tl.where(x > -0.15, small, tl.exp(x) - 1.0)


@triton.jit
def power(x, exponent):
    """x to some power, for x ≥ 0."""
    return tl.where(x > 0, tl.exp(exponent * tl.log(tl.where(x > 0, x, 1.0))), 0.0)


@triton.jit
def power_slope(x, exponent):
    return exponent * tl.exp((exponent - 1) * tl.log(tl.where(x > 0, x, 1.0)))


@triton.jit
def prepare(level, parameter, FORM: tl.constexpr):
    """What the gains of all items have in common, feature by feature."""
    ready = level
    if FORM == LOG1P:
        ready = 1.0 / (1.0 + level)
    elif FORM == SQRT:
        ready = tl.sqrt(level)
    elif FORM == SATURATED:
        ready = parameter - level
    elif FORM == ONE_MINUS_EXP:
        ready = tl.exp(-level)
    elif FORM == POWER:
        ready = power(level, parameter)
    return ready


@triton.jit
def increase(step, level, ready, parameter, FORM: tl.constexpr):
    """φ(level + step) − φ(level)."""
    found = step
    if FORM == LOG1P:
        found = log1p(step * ready)
    elif FORM == SQRT:
        roots = tl.sqrt(level + step) + ready
        found = tl.where(roots > 0, step / tl.where(roots > 0, roots, 1.0), 0.0)
    elif FORM == SATURATED:
        found = tl.minimum(step, tl.maximum(ready, 0.0))
    elif FORM == ONE_MINUS_EXP:
        found = -ready * expm1(-step)
    elif FORM == POWER:
        is_small = (1e-3 * step <= level) & (level > 0)
        base = tl.where(level > 0, level, 1.0)
        exponent = parameter * log1p(tl.where(is_small, step, 0.0) / base)
        by_ratio = ready * tl.where(
            exponent < 0.15, -expm1(-exponent) * tl.exp(exponent), tl.exp(exponent) - 1.0
        )
        found = tl.where(is_small, by_ratio, power(level + step, parameter) - ready)
    return found


@triton.jit
def slopes(step, level, ready, parameter, FORM: tl.constexpr):
    """The derivatives of `increase` by the step and by the level."""
    by_step = tl.zeros_like(step) + 1.0
    by_level = tl.zeros_like(step) + level * 0.0
    if FORM == LOG1P:
        t = step * ready
        by_step = ready / (1.0 + t)
        by_level = -t * by_step
    elif FORM == SQRT:
        root = tl.sqrt(level + step)
        roots = root + ready
        some = tl.where(roots > 0, roots, 1.0)
        by_step = 0.5 / tl.where(root > 0, root, 1.0)
        at_level = 0.5 / tl.where(ready > 0, ready, 1.0)
        by_level = tl.where(roots > 0, -step / some / some * (by_step + at_level), 0.0)
    elif FORM == SATURATED:
        room = tl.maximum(ready, 0.0)
        by_step = tl.where(step < room, 1.0, tl.where(step > room, 0.0, 0.5))
        by_room = tl.where(ready > 0, 1.0, tl.where(ready < 0, 0.0, 0.5))
        by_level = (by_step - 1.0) * by_room
    elif FORM == ONE_MINUS_EXP:
        by_level = ready * expm1(-step)
        by_step = ready + by_level
    elif FORM == POWER:
        by_step = power_slope(level + step, parameter)
        by_level = by_step - power_slope(level, parameter)
    return by_step, by_level
