"""The same selection by dgn and by apricot, an independent library: the time of each."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.measure import print_table, seconds
from dgn.core.functions import FeatureCoverage
from dgn.core import greedy, lazy_greedy

K = 7


def run() -> None:
    warnings.simplefilter("ignore")
    from apricot import FeatureBasedSelection

    rows: list[tuple[object, ...]] = []
    for items, features, k in ((30, 16, K), (30, 254, K), (20_000, 64, K), (100_000, 256, 100)):
        values = np.random.default_rng(0).gamma(0.5, size=(items, features))

        def by_apricot(optimizer: str, values: np.ndarray = values, k: int = k) -> list[int]:
            selection = FeatureBasedSelection(k, concave_func="log", optimizer=optimizer)
            return selection.fit(values).ranking.tolist()

        is_large = items > 1000
        ours = lazy_greedy if is_large else greedy
        optimizers = ("lazy",) if is_large else ("naive", "lazy")
        assert list(ours(FeatureCoverage(), values, k).indices) == by_apricot("lazy")
        repeats = 1 if items * k > 1_000_000 else 5
        theirs = min(seconds(lambda o=o: by_apricot(o), repeats=repeats) for o in optimizers)
        mine = seconds(lambda v=values, o=ours, k=k: o(FeatureCoverage(), v, k))
        times = (f"{1e3 * mine:.2f}", f"{1e3 * theirs:.2f}", f"{theirs / mine:.1f}×")
        rows.append((items, features, k, *times))
    many = np.random.default_rng(0).gamma(0.5, size=(256, 30, 16))
    batched = seconds(lambda: greedy(FeatureCoverage(), many, K)) / len(many)
    alone = seconds(lambda: [by_apricot("naive", one, K) for one in many[:16]], repeats=3) / 16
    rows.append(
        (
            "30, in a batch of 256",
            16,
            K,
            f"{1e3 * batched:.3f}",
            f"{1e3 * alone:.2f}",
            f"{alone / batched:.0f}×",
        )
    )
    print("\napricot compiles its loops with numba at every fit: most of its time on small sets.")
    print_table(
        "dgn and apricot (the faster of its naive and lazy), the same selection, float64",
        ("items", "features", "k", "dgn, ms per set", "apricot, ms per set", "apricot / dgn"),
        rows,
    )
