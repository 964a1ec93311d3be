"""One ground set of a million items: 256 features, and a sparse matrix. Time and memory."""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.measure import print_table
from dgn.core import lazy_greedy
from dgn.core.functions import FeatureCoverage

ITEMS, FEATURES, K = 1_000_000, 256, 50
WORDS, WORDS_PER_ITEM = 50_000, 20


def run() -> None:
    features = _features()
    size = f"{features.nbytes / 1e9:.2f} GB"
    _measure(f"{ITEMS:,} items, {FEATURES} features ({size}, float32), k = {K}", features)
    del features
    matrix = _matrix()
    size = f"{matrix.data.nbytes / 1e9:.2f} GB and its indices"
    shape = f"{ITEMS:,} items, {WORDS:,} features"
    _measure(f"{shape}, {WORDS_PER_ITEM} of them not 0 ({size}, float32), k = {K}", matrix)


def _measure(title: str, features: Any) -> None:
    baseline = _peak_gigabytes()
    started = time.perf_counter()
    picked = lazy_greedy(FeatureCoverage(), features, K)
    row = (
        "lazy_greedy",
        f"{time.perf_counter() - started:.1f}",
        f"{_peak_gigabytes() - baseline:.2f}",
        f"{picked.values[-1]:.1f}",
        f"{picked.certificate.ratio:.3f}",
    )
    header = ("search", "s", "GB besides the features", "f reached", "certificate")
    print_table(title, header, [row])


def _matrix() -> Any:
    """Rows of words that are drawn by a Zipf law, as in texts."""
    random = np.random.default_rng(0)
    count = ITEMS * WORDS_PER_ITEM
    words = np.minimum(random.zipf(1.2, count) - 1, WORDS - 1).astype(np.int32)
    start = np.arange(0, count + 1, WORDS_PER_ITEM)
    matrix = sparse.csr_array(
        (random.random(count, np.float32), words, start), shape=(ITEMS, WORDS)
    )
    matrix.sum_duplicates()
    return matrix


def _features() -> np.ndarray:
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
