"""The exact search on 30 items with k = 7, and how far greedy is from the optimum."""

from __future__ import annotations

import statistics
import time

import numpy as np

from benchmarks.measure import print_table
from dgn.core.functions import FacilityLocation, FeatureCoverage, ProbabilisticCoverage, SetFunction
from dgn.core import exact, greedy
from dgn.errors import SearchTooLarge

ITEMS, K, SEEDS = 30, 7, 10


def run() -> None:
    rows: list[tuple[object, ...]] = []
    for name, objective, features in (
        ("FeatureCoverage", FeatureCoverage(), 16),
        ("FeatureCoverage", FeatureCoverage(), 64),
        ("FeatureCoverage", FeatureCoverage(), 254),
        ("FacilityLocation", FacilityLocation(), 64),
        ("ProbabilisticCoverage", ProbabilisticCoverage(), 16),
    ):
        for kind in ("sparse", "dense"):
            rows.append((name, features, kind, *_measure(objective, features, kind)))
    print_table(
        f"Exact search, {ITEMS} items, k = {K}, {SEEDS} random sets each",
        (
            "objective",
            "features",
            "kind",
            "median s",
            "slowest s",
            "greedy / best, mean",
            "worst",
            "certificate, mean",
        ),
        rows,
    )
    print(
        "\nSparse: one feature in five is not 0, as after a ReLU. Dense: uniform in [0, 1], "
        "the hardest case, because all items are similar."
    )


def _measure(objective: SetFunction, features: int, kind: str) -> tuple[str, ...]:
    times: list[float] = []
    shares: list[float] = []
    certificates: list[float] = []
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        values = random.random((ITEMS, features))
        if kind == "sparse":
            values *= random.random(values.shape) < 0.2
        started = time.perf_counter()
        try:
            best = exact(objective, values, K)
        except SearchTooLarge:
            return ("too large",) * 5
        times.append(time.perf_counter() - started)
        by_greedy = greedy(objective, values, K)
        shares.append(by_greedy.values[-1] / best.values[-1])
        certificates.append(by_greedy.certificate.ratio)
    return (
        f"{statistics.median(times):.2f}",
        f"{max(times):.2f}",
        f"{statistics.mean(shares):.4f}",
        f"{min(shares):.4f}",
        f"{statistics.mean(certificates):.3f}",
    )
