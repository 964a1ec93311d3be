"""The same selection by dgn and by apricot, an independent library: the time of each."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.measure import print_table, seconds
from dgn.maximizers import greedy, lazy_greedy
from dgn.objectives import FeatureCoverage

K = 7


def run() -> None:
    warnings.simplefilter("ignore")
    from apricot import FeatureBasedSelection

    rows: list[tuple[object, ...]] = []
    for items, features in ((30, 16), (30, 254), (20_000, 64)):
        values = np.random.default_rng(0).gamma(0.5, size=(items, features))

        def by_apricot(optimizer: str, values: np.ndarray = values) -> list[int]:
            selection = FeatureBasedSelection(K, concave_func="log", optimizer=optimizer)
            return selection.fit(values).ranking.tolist()

        ours = lazy_greedy if items > 1000 else greedy
        assert list(ours(FeatureCoverage(), values, K).indices) == by_apricot("naive")
        theirs = min(seconds(lambda o=o: by_apricot(o), repeats=5) for o in ("naive", "lazy"))
        mine = seconds(lambda v=values, o=ours: o(FeatureCoverage(), v, K))
        rows.append(
            (items, features, f"{1e3 * mine:.2f}", f"{1e3 * theirs:.2f}", f"{theirs / mine:.1f}×")
        )
    many = np.random.default_rng(0).gamma(0.5, size=(256, 30, 16))
    batched = seconds(lambda: greedy(FeatureCoverage(), many, K)) / len(many)
    alone = seconds(lambda: [by_apricot("naive", one) for one in many[:16]], repeats=3) / 16
    rows.append(
        (
            "30, in a batch of 256",
            16,
            f"{1e3 * batched:.3f}",
            f"{1e3 * alone:.2f}",
            f"{alone / batched:.0f}×",
        )
    )
    print("\napricot compiles its loops with numba at every fit: most of its time on small sets.")
    print_table(
        f"dgn and apricot (the faster of its naive and lazy), the same selection, k = {K}, float64",
        ("items", "features", "dgn, ms per set", "apricot, ms per set", "apricot / dgn"),
        rows,
    )
