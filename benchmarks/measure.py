"""How the benchmarks measure, and how they print their results."""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


def seconds(work: Callable[[], object], *, repeats: int = 7) -> float:
    """The median time of a call, after a warm-up call."""
    work()
    times: list[float] = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


@dataclass(frozen=True)
class Cost:
    """Seconds, and the most memory that a process and its workers held, in megabytes."""

    seconds: float
    megabytes: float


def cost_of(work: Callable[..., object], *arguments: object, workers: int = 0) -> Cost:
    """Run a function in a process of its own, which starts with an empty memory."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_measured, args=(queue, work, arguments, workers))
    process.start()
    cost = queue.get()
    process.join()
    return cost


def _measured(
    queue: Any, work: Callable[..., object], arguments: tuple[object, ...], workers: int
) -> None:
    started = time.perf_counter()
    work(*arguments)
    took = time.perf_counter() - started
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    largest_worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    queue.put(Cost(took, own + workers * largest_worker))


def print_table(title: str, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """A Markdown table."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("| " + " | ".join("---" for _ in header) + " |")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def machine() -> str:
    """The machine and the versions."""
    return (
        f"{os.cpu_count()} cores of {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__}"
    )
