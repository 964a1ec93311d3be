"""Concave functions φ with φ(0) = 0: they make the second item worth less than the first.

Each computes φ(x) and, separately, the increase φ(x + step) − φ(x): subtracting two nearly equal
values would lose the small increases, which decide between the last items.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from dgn.core.arrays import Array, Float, namespace
from dgn.core.numerics import safe_divide, safe_power
from dgn.errors import InvalidInput


class Concave(ABC):
    """A non-decreasing concave function of x ≥ 0 with φ(0) = 0."""

    @abstractmethod
    def of(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """φ(x)."""

    @abstractmethod
    def increase(self, x: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ(x + step) − φ(x) for step ≥ 0; x and step broadcast."""


@final
@dataclass(frozen=True)
class Log1p(Concave):
    """φ(x) = log(1 + x), the paper's."""

    def of(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return namespace(x).log1p(x)

    def increase(self, x: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
        # log(1+x+step) − log(1+x) = log1p(step / (1+x)): one logarithm, and exact for small steps.
        # x is the smaller array: one division per set, and one product per item.
        return namespace(x).log1p(step * (1 / (1 + x)))


@final
@dataclass(frozen=True)
class Power(Concave):
    """φ(x) = x**exponent, with .01 ≤ exponent ≤ 1: ½ is the square root, and 1 makes f modular.

    Smaller exponents give functions that hardly grow, whose increases are lost to rounding.

    The slope at 0, which is infinite for exponents below 1, counts as `exponent` in gradients.
    """

    exponent: float

    def __post_init__(self) -> None:
        if not 0.01 <= self.exponent <= 1:
            raise InvalidInput("exponent", found=f"{self.exponent:g}", allowed="from 0.01 to 1")

    def of(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return safe_power(x, self.exponent)

    def increase(self, x: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
        xp = namespace(x)
        if self.exponent == 0.5:
            # √(x+step) − √x = step / (√(x+step) + √x), which does not cancel.
            roots = safe_power(x + step, 0.5) + safe_power(x, 0.5)
            # At 0 the slope is that of safe_power: features that are all zero still get a gradient.
            return xp.where(roots == 0, 0.5 * step, safe_divide(step, roots, at_zero=0.0))
        # Most steps as x^e · ((1 + step/x)^e − 1), which does not cancel; very large steps have
        # nothing to cancel, and for them step/x might overflow.
        small = (1e-3 * step <= x) & (x > 0)
        base = xp.where(x > 0, x, 1.0)
        growth = xp.where(small, step, 0.0) / base
        by_ratio = safe_power(base, self.exponent) * xp.expm1(self.exponent * xp.log1p(growth))
        difference = safe_power(x + step, self.exponent) - safe_power(x, self.exponent)
        return xp.where(small, by_ratio, difference)


@final
@dataclass(frozen=True)
class OneMinusExp(Concave):
    """φ(x) = 1 − exp(−x), which never exceeds 1."""

    def of(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return -namespace(x).expm1(-x)

    def increase(self, x: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
        xp = namespace(x)
        return -xp.exp(-x) * xp.expm1(-step)


@final
@dataclass(frozen=True)
class Saturated(Concave):
    """φ(x) = min(x, cap): linear up to the cap, then constant."""

    cap: float = 1.0

    def __post_init__(self) -> None:
        if not self.cap > 0:
            raise InvalidInput("cap", found=f"{self.cap:g}", allowed="greater than 0")

    def of(self, x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        xp = namespace(x)
        return xp.minimum(x, xp.full_like(x, self.cap))

    def increase(self, x: Float[Array, "..."], step: Float[Array, "..."]) -> Float[Array, "..."]:
        xp = namespace(x)
        room = xp.maximum(self.cap - x, xp.zeros_like(x))
        return xp.minimum(step, room)


INCREASING = (Log1p, Power, OneMinusExp, Saturated)
"""Functions that are known never to decrease."""
