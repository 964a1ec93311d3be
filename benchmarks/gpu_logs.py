"""How many logarithms a GPU computes per second, in registers: the special instruction and ours."""

# ruff: noqa: N803

import torch
import triton
import triton.language as tl

from dgn.core.native.triton.greedy import fast_log2
from dgn.core.native.triton.growth import log1p

SIZE, ROUNDS = 1 << 22, 64


@triton.jit
def _chain(target, rounds, IS_FAST: tl.constexpr):
    place = tl.program_id(0) * 4096 + tl.arange(0, 4096)
    x = place.to(tl.float32) * 1e-6
    total = tl.zeros_like(x)
    for number in range(rounds):
        if IS_FAST:
            total += fast_log2(x + number)
        else:
            total += log1p(x + number)
    tl.store(target + place, total)


def logs_per_second(seconds) -> dict[str, float]:
    target = torch.empty(SIZE, device="cuda")
    found = {}
    for name, fast in (
        ("log1p of the kernels, float32", False),
        ("log₂ by the special instruction, for half precision", True),
    ):
        took = seconds(lambda fast=fast: _chain[(SIZE // 4096,)](target, ROUNDS, IS_FAST=fast))
        found[name] = SIZE * ROUNDS / took
    return found
