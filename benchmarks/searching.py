"""Greedy on features in memory: dgn's kernel, its reference, and the peers, next to the limit.

Peers are used where they are installed: pyversity (`dgn[peers]`), submodlib (`pip install
submodlib-py`). They solve other problems of the same size: MMR and DPP with a relevance for each
item, facility location with the similarities of the items.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measure import print_table, seconds
from dgn import kernels
from dgn.maximizers import greedy
from dgn.objectives import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Log1p,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    Sqrt,
)
from dgn.threads import available_cores

ITEMS, FEATURES, K = 30, 256, 7
QUERIES = 4096
_FORMS: tuple[Concave, ...] = (
    Log1p(),
    Sqrt(),
    Power(1.0),
    Power(0.7),
    OneMinusExp(),
    Saturated(2.0),
)


def run() -> None:
    print(f"\nThe search is {kernels.describe()}.")
    _limits()
    random = np.random.default_rng(0)
    batch = random.random((QUERIES, ITEMS, FEATURES), dtype=np.float32)
    _queries(batch)
    _forms(batch[:512])


def _limits() -> None:
    """What this machine can do at best: copies, and logarithms in one core's cache."""
    source = np.zeros(64 << 20, np.float32)
    target = np.empty_like(source)
    copied = 2 * source.nbytes / seconds(lambda: np.copyto(target, source))
    small = np.random.default_rng(0).random(4096, dtype=np.float32)
    out = np.empty_like(small)

    def by_numpy() -> None:
        for _ in range(100):
            np.log1p(small, out=out)

    sets = np.random.default_rng(0).random((64, ITEMS, FEATURES), dtype=np.float32)
    ours = seconds(lambda: greedy(FeatureCoverage(), sets, 1), repeats=31) / (2 * sets.size)
    rows = [
        ("copy, read and written", f"{copied / 1e9:.1f} GB/s"),
        ("log1p of NumPy, one core", f"{100 * small.size / seconds(by_numpy) / 1e9:.2f} · 10⁹/s"),
        ("log1p of the kernel with everything around it", f"{1 / ours / 1e9:.2f} · 10⁹/s"),
    ]
    print_table("Limits of this machine, float32", ("", "throughput"), rows)


def _queries(batch: np.ndarray) -> None:
    f = FeatureCoverage(np.ones(FEATURES, np.float32))
    one = batch[0]

    def reference(features: np.ndarray) -> object:
        with mock.patch.object(kernels, "is_available", return_value=False):
            return greedy(f, features, K)

    contenders: dict[str, tuple[Callable[[np.ndarray], object], bool]] = {
        "dgn": (lambda features: greedy(f, features, K), True),
        "dgn without its kernel": (reference, True),
        "greedy in plain NumPy": (_plain, False),
        **_peers(),
        "dgn, facility location of the same similarities": (_by_facility_location, False),
    }
    some = batch[:128]
    single = {name: seconds(lambda w=w: w(one), repeats=101) for name, (w, _) in contenders.items()}
    many = {
        name: seconds(lambda w=w: w(batch), repeats=5) / len(batch)
        if knows_batches
        else seconds(lambda w=w: [w(features) for features in some], repeats=5) / len(some)
        for name, (w, knows_batches) in contenders.items()
    }
    rows = [
        (
            name,
            f"{1e6 * single[name]:.1f}",
            f"{single[name] / single['dgn']:.1f}×",
            f"{1e6 * many[name]:.1f}",
            f"{many[name] / many['dgn']:.1f}×",
        )
        for name in contenders
    ]
    print_table(
        f"{K} of {ITEMS} items with {FEATURES} features, float32, {available_cores()} cores",
        (
            "",
            "µs, one query",
            "time relative to dgn",
            f"µs per query of {QUERIES:,}",
            "time relative to dgn",
        ),
        rows,
    )
    logs, read = (K + 1) * ITEMS * FEATURES, ITEMS * FEATURES * 4
    print(f"\nA query is {read / 1e3:.0f} kB and {logs:,} logarithms (with its certificate).")


def _forms(batch: np.ndarray) -> None:
    functions: dict[str, SetFunction] = {
        repr(concave): FeatureCoverage(concave=concave) for concave in _FORMS
    }
    functions |= {"FacilityLocation": FacilityLocation()}
    functions |= {"ProbabilisticCoverage": ProbabilisticCoverage()}
    rows: list[tuple[object, ...]] = []
    for name, f in functions.items():
        ours = seconds(lambda f=f: greedy(f, batch, K)) / len(batch)
        with mock.patch.object(kernels, "is_available", return_value=False):
            numpy = seconds(lambda f=f: greedy(f, batch, K), repeats=3) / len(batch)
        rows.append((name, f"{1e6 * ours:.1f}", f"{1e6 * numpy:.1f}", f"{numpy / ours:.1f}×"))
    print_table(
        f"The functions, batches of {len(batch)}",
        ("", "dgn, µs per query", "dgn without its kernel", "ratio"),
        rows,
    )


def _plain(features: np.ndarray) -> list[int]:
    covered = np.zeros(features.shape[1], features.dtype)
    chosen: list[int] = []
    for _ in range(K):
        gains = np.log1p(features / (1 + covered)).sum(axis=1)
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        covered += features[chosen[-1]]
    return chosen


def _similarities(features: np.ndarray) -> np.ndarray:
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return unit @ unit.T


def _by_facility_location(features: np.ndarray) -> object:
    return greedy(FacilityLocation(), _similarities(features), K)


def _peers() -> dict[str, tuple[Callable[[np.ndarray], object], bool]]:
    found: dict[str, tuple[Callable[[np.ndarray], object], bool]] = {}
    query = np.random.default_rng(1).random(FEATURES, dtype=np.float32)
    if importlib.util.find_spec("pyversity") is not None:
        import pyversity

        diversify: Any = pyversity.diversify
        for strategy in ("mmr", "msd", "dpp"):
            found[f"pyversity, {strategy.upper()}"] = (
                lambda x, s=strategy: diversify(x, x @ query, k=K, strategy=s),
                False,
            )
    if importlib.util.find_spec("submodlib") is not None:
        submodlib: Any = importlib.import_module("submodlib")

        def by_submodlib(features: np.ndarray) -> object:
            f = submodlib.FacilityLocationFunction(
                n=len(features), mode="dense", sijs=_similarities(features), separate_rep=False
            )
            return f.maximize(
                budget=K,
                optimizer="LazyGreedy",
                stopIfZeroGain=False,
                stopIfNegativeGain=False,
                show_progress=False,
            )

        found["submodlib, facility location, lazy"] = (by_submodlib, False)
    return found
