"""Many small sets on a GPU: all k steps in one kernel, against eager and compiled torch.

65,536 queries, 32 passages of 256 features, k = 7. What must be spent: the features are read once
(1.07 GB in bfloat16), and 8 · 65,536 · 32 · 256 = 4.3 · 10⁹ logarithms are computed: k steps, and
the gains after the last one for the certificate.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.measure import print_table
from dgn.core.functions import FeatureCoverage
from dgn.core import greedy

QUERIES, ITEMS, WIDTH, K = 65_536, 32, 256, 7


def run() -> None:
    if not torch.cuda.is_available():
        print("\nSearching on a GPU: there is none.")
        return
    rows: list[tuple[object, ...]] = []
    compiled = torch.compile(plain_greedy)
    for dtype in (torch.bfloat16, torch.float32):
        torch.manual_seed(0)
        features = torch.rand(QUERIES, ITEMS, WIDTH, device="cuda").to(dtype)
        weights = torch.rand(WIDTH, device="cuda")
        contenders: dict[str, Callable[[], Tensor]] = {
            "dgn": lambda f=features, w=weights: greedy(FeatureCoverage(w), f, K).indices,
            "torch, eager": lambda f=features, w=weights: plain_greedy(f, w),
            "torch, compiled": lambda f=features, w=weights: compiled(f, w),
        }
        wanted = plain_greedy(features[:4096].float(), weights)
        ours = 0.0
        for name, search in contenders.items():
            same = (search()[:4096] == wanted).all(dim=1).float().mean().item()
            took = gpu_milliseconds(search)
            ours = ours or took
            rows.append((dtype, name, f"{took:.2f}", f"{took / ours:.1f}×", f"{same:.2%}"))
        del features, contenders
        torch.cuda.empty_cache()
    print_table(
        f"{QUERIES:,} queries, {ITEMS} passages, {WIDTH} features, k = {K}, on "
        f"{torch.cuda.get_device_name()}",
        ("features", "search", "ms", "of dgn's time", "same picks as float32"),
        rows,
    )


def plain_greedy(features: Tensor, weights: Tensor) -> Tensor:
    """Greedy as one writes it in torch."""
    level = torch.zeros_like(features[:, 0], dtype=torch.float32)
    taken = torch.zeros_like(features[..., 0], dtype=torch.bool)
    picks: list[Tensor] = []
    for _ in range(K):
        gains = torch.log1p(features / (1 + level[:, None, :])) @ weights
        best = gains.masked_fill(taken, -1.0).argmax(dim=1)
        taken = taken.scatter(1, best[:, None], True)
        level = level + features[torch.arange(len(features), device=features.device), best]
        picks.append(best)
    return torch.stack(picks, dim=1)


def gpu_milliseconds(work: Callable[[], object], repeats: int = 10) -> float:
    for _ in range(3):
        work()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeats
