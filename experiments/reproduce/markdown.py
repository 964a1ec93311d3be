"""Tables and shares in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """A Markdown table and a blank line after it; all columns but the first are numbers."""
    yield "| " + " | ".join(header) + " |"
    yield "| --- |" + " --: |" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


def percent(share: float) -> str:
    """A share as a percentage; a dash if there is none."""
    return "–" if math.isnan(share) else f"{share:.0%}"
