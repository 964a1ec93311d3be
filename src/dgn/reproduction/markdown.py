"""How the report writes tables and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table and the blank line behind it; all columns but the first are numbers."""
    yield "| " + " | ".join(header) + " |"
    yield "| --- |" + " --: |" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


def short(number: float) -> str:
    """Three places, without the leading zero."""
    return f"{number:.3f}".removeprefix("0")


def several(numbers: Iterable[float]) -> str:
    """Some of them in a row."""
    return " / ".join(short(number) for number in numbers)


def percent(share: float) -> str:
    """A share; a dash where there is none."""
    return "–" if math.isnan(share) else f"{share:.0%}"


def p_value(number: float) -> str:
    """As it is usually written."""
    return "<.001" if number < 0.001 else short(number)
