"""Greedy on features in memory: dgn's kernel, its reference, and the peers, next to the limit.

Peers are used where they are installed: pyversity (`dgn[peers]`), submodlib (`pip install
submodlib-py`). They solve other problems of the same size: MMR and DPP with a relevance for each
item, facility location with the similarities of the items.
"""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measure import print_table, seconds
from dgn.core import greedy, lazy_greedy
from dgn.core import native as kernels
from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Log1p,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
)
from dgn.parallel import available_cores

ITEMS, FEATURES, K = 30, 256, 7
QUERIES = 4096
_FORMS: tuple[Concave, ...] = (
    Log1p(),
    Power(0.5),
    Power(1.0),
    Power(0.7),
    OneMinusExp(),
    Saturated(2.0),
)


@dataclass(frozen=True)
class Contender:
    """A way to select, and under which conditions it is measured."""

    work: Callable[[np.ndarray], object]
    knows_batches: bool = False
    cores: int | None = None
    compiled: bool = True

    @contextlib.contextmanager
    def conditions(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.cores is not None:
                patch = mock.patch(
                    "dgn.core.native.greedy.available_cores", return_value=self.cores
                )
                stack.enter_context(patch)
            if not self.compiled:
                stack.enter_context(mock.patch.object(kernels, "is_available", lambda: False))  # noqa: PT008
            yield


def run() -> None:
    print(f"\nThe search is {kernels.describe()}.")
    random = np.random.default_rng(0)
    batch = random.random((QUERIES, ITEMS, FEATURES), dtype=np.float32)
    _queries(batch)
    _facility_location(batch)
    _forms(batch[:512])
    _apricot()


def _queries(batch: np.ndarray) -> None:
    f = FeatureCoverage(np.ones(FEATURES, np.float32))
    one, some = batch[0], batch[:128]

    def ours(features: np.ndarray) -> object:
        return greedy(f, features, K)

    contenders = {
        "dgn": Contender(ours, knows_batches=True),
        "dgn, one thread": Contender(ours, knows_batches=True, cores=1),
        "dgn without its kernel (one thread)": Contender(ours, knows_batches=True, compiled=False),
        "greedy in plain NumPy": Contender(_plain),
        **_peers(),
    }
    single: dict[str, float] = {}
    many: dict[str, float] = {}
    for name, contender in contenders.items():
        work = contender.work
        with contender.conditions():
            single[name] = seconds(lambda w=work: w(one), repeats=1001)
            if contender.knows_batches:
                many[name] = seconds(lambda w=work: w(batch), repeats=5) / len(batch)
            else:
                many[name] = seconds(lambda w=work: [w(x) for x in some], repeats=5) / len(some)
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


def _facility_location(batch: np.ndarray) -> None:
    """The same search of the same similarities by submodlib, one core each."""
    if importlib.util.find_spec("submodlib") is None:
        print("\nsubmodlib is not installed.")
        return
    submodlib: Any = importlib.import_module("submodlib")

    def theirs(similarities: np.ndarray, k: int) -> list[int]:
        f = submodlib.FacilityLocationFunction(
            n=len(similarities), mode="dense", sijs=similarities, separate_rep=False
        )
        options = {"stopIfZeroGain": False, "stopIfNegativeGain": False, "show_progress": False}
        found = f.maximize(budget=k, optimizer="LazyGreedy", **options)
        return [index for index, _ in found]

    def ours(similarities: np.ndarray, k: int) -> Any:
        return greedy(FacilityLocation(), similarities, k)

    similarities = _similarities(batch)
    large = _similarities(np.random.default_rng(2).random((2000, 64), dtype=np.float32))
    one, some = similarities[0], similarities[:128]
    assert list(ours(one, K).indices) == theirs(one, K)
    with Contender(_plain, cores=1).conditions():
        times = {
            f"{ITEMS} items, k = {K}, one query": (
                seconds(lambda: ours(one, K), repeats=1001),
                seconds(lambda: theirs(one, K), repeats=1001),
            ),
            f"{ITEMS} items, k = {K}, per query of {len(batch):,}": (
                seconds(lambda: ours(similarities, K)) / len(similarities),
                seconds(lambda: [theirs(x, K) for x in some]) / len(some),
            ),
            f"{len(large):,} items, k = 50": (
                seconds(lambda: ours(large, 50)),
                seconds(lambda: theirs(large, 50), repeats=3),
            ),
        }
    print_table(
        "Facility location of given similarities, one core",
        ("", "dgn, µs", "submodlib (lazy), µs", "submodlib / dgn"),
        [
            (name, f"{1e6 * mine:.1f}", f"{1e6 * peer:.1f}", f"{peer / mine:.1f}×")
            for name, (mine, peer) in times.items()
        ],
    )


def _forms(batch: np.ndarray) -> None:
    functions: dict[str, SetFunction] = {
        repr(concave): FeatureCoverage(concave=concave) for concave in _FORMS
    }
    functions |= {"FacilityLocation": FacilityLocation()}
    functions |= {"ProbabilisticCoverage": ProbabilisticCoverage()}
    rows: list[tuple[object, ...]] = []
    for name, f in functions.items():
        ours = seconds(lambda f=f: greedy(f, batch, K)) / len(batch)
        with Contender(_plain, compiled=False).conditions():
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
    unit = features / np.linalg.norm(features, axis=-1, keepdims=True)
    return unit @ unit.swapaxes(-1, -2)


def _peers() -> dict[str, Contender]:
    found: dict[str, Contender] = {}
    query = np.random.default_rng(1).random(FEATURES, dtype=np.float32)
    if importlib.util.find_spec("pyversity") is not None:
        import pyversity

        diversify: Any = pyversity.diversify
        for strategy in ("mmr", "msd", "dpp"):
            found[f"pyversity, {strategy.upper()}"] = Contender(
                lambda x, s=strategy: diversify(x, x @ query, k=K, strategy=s)
            )
    return found


def _apricot() -> None:
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
