"""One ground set of a million items with 256 features: time and memory."""

from __future__ import annotations

import resource
import time

import numpy as np

from benchmarks.measure import print_table
from dgn.maximizers import lazy_greedy, stochastic_greedy
from dgn.objectives import FeatureCoverage

ITEMS, FEATURES, K = 1_000_000, 256, 50


def run() -> None:
    features = _sparse_features()
    baseline = _peak_gigabytes()
    objective = FeatureCoverage()
    rows: list[tuple[object, ...]] = []
    for name, search in (
        ("stochastic_greedy, ε = 0.1", lambda: stochastic_greedy(objective, features, K, seed=0)),
        ("lazy_greedy", lambda: lazy_greedy(objective, features, K)),
    ):
        started = time.perf_counter()
        picked = search()
        rows.append(
            (
                name,
                f"{time.perf_counter() - started:.1f}",
                f"{_peak_gigabytes() - baseline:.2f}",
                f"{picked.values[-1]:.1f}",
                f"{picked.certificate.ratio:.3f}",
            )
        )
    size = f"{features.nbytes / 1e9:.2f} GB"
    print_table(
        f"{ITEMS:,} items, {FEATURES} features ({size}, float32), k = {K}",
        ("search", "s", "GB besides the features", "f reached", "certificate"),
        rows,
    )


def _sparse_features() -> np.ndarray:
    """One feature in ten is not 0; made in chunks, without a second copy."""
    random = np.random.default_rng(0)
    features = np.empty((ITEMS, FEATURES), dtype=np.float32)
    for start in range(0, ITEMS, 50_000):
        part = features[start : start + 50_000]
        random.random(out=part, dtype=np.float32)
        part *= random.random(part.shape, dtype=np.float32) < 0.1
    return features


def _peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
