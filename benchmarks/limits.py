"""What the machine can do at most: copying memory, and logarithms. Other results stand next to it."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.measure import print_table, seconds
from dgn import kernels

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
    """Logarithms per second: the first gains of 64 rows of a set that fits into the cache."""
    features = np.ones((1, 64, 1024), np.float32)
    coverage = kernels.Coverage("log1p")
    # A second selection computes the gains of 63 rows again; the difference is nothing but gains.
    large = kernels.LargeSet(coverage, features[0], None, np.zeros(1024, np.float32))
    many = np.tile(np.arange(64), 64)
    return len(many) * 1024 / seconds(lambda: large.gains(many))


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
