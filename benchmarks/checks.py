"""The cost of checking the input, as a share of a batched call."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.measure import print_table, seconds
from dgn.core.functions import FeatureCoverage, Items
from dgn.core import greedy
from dgn.core.search._checks import checked_items

SHAPES = ((256, 30, 254), (256, 11, 254), (1024, 30, 16))


def run() -> None:
    rows: list[tuple[object, ...]] = []
    for shape in SHAPES:
        features = np.random.default_rng(0).gamma(0.5, size=shape).astype(np.float32)
        for library, convert in (("NumPy", np.asarray), ("torch", torch.from_numpy)):
            objective = FeatureCoverage(convert(np.ones(shape[2], dtype=np.float32)))
            items = Items(convert(features))
            whole = seconds(lambda f=objective, i=items: greedy(f, i, 7))
            checks = seconds(lambda f=objective, i=items: checked_items(f, i, None))
            rows.append(
                (
                    library,
                    " × ".join(map(str, shape)),
                    f"{1e6 * whole / shape[0]:.0f}",
                    f"{100 * checks / whole:.1f}%",
                )
            )
    print_table(
        "Checks of the input, greedy with k = 7, float32",
        ("library", "batch × items × features", "µs per query", "share of the checks"),
        rows,
    )
