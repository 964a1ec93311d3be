"""Ratios that are far above 1 everywhere: a tenfold slip is noticed, and nothing smaller."""

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from dgn import kernels
from dgn.maximizers import greedy
from dgn.maximizers.greedy import _search
from dgn.objectives import FeatureCoverage, Items
from dgn.unfolding import LayerwiseCrossEntropy, UnfoldedGreedy

pytestmark = pytest.mark.skipif(
    not kernels.is_available(), reason=f"the search is {kernels.describe()}"
)


def least_seconds(work: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(7):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def test_the_kernel_is_faster_than_its_reference() -> None:
    features = np.random.default_rng(0).random((64, 20, 64)).astype(np.float32)
    f, items = FeatureCoverage(), Items(features)
    reference = least_seconds(lambda: _search(f, items, f.empty(items), 5, 0.0))
    assert least_seconds(lambda: greedy(f, features, 5)) < reference


def test_one_small_set_is_faster_than_its_reference() -> None:
    features = np.random.default_rng(0).random((30, 64)).astype(np.float32)
    f, items = FeatureCoverage(), Items(features)
    reference = least_seconds(lambda: [_search(f, items, f.empty(items), 5, 0.0) for _ in "12345"])
    assert least_seconds(lambda: [greedy(f, features, 5) for _ in "12345"]) < reference


def test_fused_layers_are_not_slower_than_the_layers_one_by_one() -> None:
    features = torch.rand(64, 12, 128)
    gold = (torch.arange(12) < 2).expand(64, 12)

    def step(layers: UnfoldedGreedy) -> None:
        x = features.clone().requires_grad_()
        LayerwiseCrossEntropy()(layers(FeatureCoverage(torch.ones(128)), Items(x)), gold).backward()

    plain = least_seconds(lambda: step(UnfoldedGreedy(7, fused=False)))
    assert least_seconds(lambda: step(UnfoldedGreedy(7))) < 2 * plain
