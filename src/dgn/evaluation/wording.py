"""How tables write scores: short, and the same in the terminal and in a report."""

from __future__ import annotations

from collections.abc import Iterable


def short(number: float) -> str:
    """Three places, without the leading zero: a table then fits a terminal."""
    return f"{number:.3f}".removeprefix("0")


def several(numbers: Iterable[float]) -> str:
    """Some of them in a row."""
    return " / ".join(short(number) for number in numbers)


def difference(mean: float, p_value: float) -> str:
    """A difference with its sign, and its p-value as it is usually written."""
    p = "<.001" if p_value < 0.001 else short(p_value)
    return f"{mean:+.3f}".replace("0.", ".", 1) + f" ({p})"
