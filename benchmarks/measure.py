"""How the benchmarks measure, and how they write down what they found."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch


def seconds(work: Callable[[], object], *, repeats: int = 7) -> float:
    """The median time of a call, after one that warms up."""
    work()
    times: list[float] = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def print_table(title: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """A Markdown table."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("| " + " | ".join("---" for _ in header) + " |")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def machine() -> str:
    """What this was measured on."""
    return (
        f"{os.cpu_count()} cores of {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__}"
    )
