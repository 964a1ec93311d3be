"""What the machine can do at most: copying memory, and logarithms."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.measure import print_table, seconds
from dgn.core import native as kernels

NUMBERS = 1 << 26


def run() -> None:
    source, target = np.ones(NUMBERS, np.float32), np.zeros(NUMBERS, np.float32)
    copied = seconds(lambda: np.copyto(target, source))
    log = seconds(lambda: np.log1p(source, out=target))
    rows: list[tuple[object, ...]] = [
        ("one core: copy (read and write)", f"{8 * NUMBERS / copied / 1e9:,.1f} GB/s"),
        ("one core: log1p of NumPy", f"{NUMBERS / log / 1e9:,.2f} 10⁹/s"),
    ]
    if kernels.is_available():
        rows.append(("one core: log1p of the kernels", f"{kernel_logs() / 1e9:,.2f} 10⁹/s"))
    if torch.cuda.is_available():
        rows += on_gpu()
    print_table("Limits", ("", "rate"), rows)


def kernel_logs() -> float:
    """Logarithms per second: gains of rows that stay in the cache, in one thread."""
    rows = np.ones((16, 1024), np.float32)
    large = kernels.LargeSet(kernels.Coverage("log1p"), rows, None, np.zeros(1024, np.float32))
    many = np.tile(np.arange(16), 64)
    return many.size * 1024 / seconds(lambda: large.gains(many), repeats=51)


def on_gpu() -> list[tuple[object, ...]]:
    x = torch.ones(1 << 28, device="cuda")
    y = torch.empty_like(x)
    half = x.to(torch.bfloat16)

    def gpu_seconds(work: object, repeats: int = 20) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        work()
        torch.cuda.synchronize()
        start.record()
        for _ in range(repeats):
            work()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3 / repeats

    copied = gpu_seconds(lambda: y.copy_(x))
    read = gpu_seconds(lambda: half.sum())
    rows: list[tuple[object, ...]] = [
        ("GPU: copy (read and write)", f"{8 * x.numel() / copied / 1e12:,.2f} TB/s"),
        ("GPU: read bfloat16 (a sum)", f"{2 * x.numel() / read / 1e12:,.2f} TB/s"),
    ]
    from benchmarks.gpu_logs import logs_per_second

    for name, rate in logs_per_second(gpu_seconds).items():
        rows.append((f"GPU: {name}", f"{rate / 1e12:,.2f} 10¹²/s"))
    return rows
