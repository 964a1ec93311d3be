"""One benchmark from the search of settings to corrected p-values.

Settings are chosen by the mean score over all k on the pools that choose, from the same number of
tries for every method: a trained one has `starts` tries of the function that it starts from and
`tries` of its training, a peer has as many as both together. Trained methods are then trained with
several seeds, and everything is scored on the reported pools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.evaluation.comparison import with_holm
from dgn.evaluation.metrics import PairedComparison, bootstrap_interval, paired_comparison
from experiments.diversity.peers import Peer, peers_of
from experiments.diversity.pools import Benchmark, Pool
from experiments.diversity.selector import (
    Setting,
    choices,
    random_start,
    random_training,
    train,
    untrained,
)

DGN = "DGN"
TRAINED = {
    DGN: (False, None),
    "DGN trained with K = 1": (False, 1),
    "encoder, same loss, ranks": (True, None),
}
"""By name: whether it ranks, and the layers in training; None for the largest k."""

UNTRAINED = "DGN, untrained"
RANKED = "DGN, ranked by its first gains"


@dataclass(frozen=True, eq=False)
class MethodResult:
    """How good a method is.

    Attributes:
        name: Its name.
        scores: [seeds, pools, ks] on the reported pools; one seed if nothing is random.
        setting: What was chosen.
        tries: The mean score of every try on the pools that choose.
    """

    name: str
    scores: NDArray[np.float64]
    setting: dict[str, Any]
    tries: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Result:
    """A benchmark: every method, and the DGN against each, at each k."""

    benchmark: Benchmark
    pools: int
    methods: tuple[MethodResult, ...]
    against: dict[str, dict[int, PairedComparison]]

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        ks = self.benchmark.ks
        return {
            "measure": self.benchmark.measure,
            "ks": list(ks),
            "pools": self.pools,
            "methods": {
                one.name: {
                    "mean": _rounded(one.scores.mean(axis=(0, 1))),
                    "by seed": [_rounded(row) for row in one.scores.mean(axis=1)],
                    "interval": [
                        _rounded([found.low, found.high])
                        for found in (
                            bootstrap_interval(one.scores[:, :, at].mean(axis=0), seed=0)
                            for at in range(len(ks))
                        )
                    ],
                    "setting": one.setting,
                    "tries": _rounded(one.tries),
                }
                for one in self.methods
            },
            "DGN minus": {
                name: {str(k): asdict(one) for k, one in by_k.items()}
                for name, by_k in self.against.items()
            },
        }


def study(
    benchmark: Benchmark,
    *,
    seeds: int,
    starts: int,
    tries: int,
    steps: int,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Result:
    """Tune, train and score every method on a benchmark."""
    learn, choose, report = (benchmark.pools(part) for part in ("learn", "choose", "report"))
    most = max(benchmark.ks)
    methods: list[MethodResult] = []
    for peer in peers_of(benchmark.name):
        on_progress(f"{benchmark.name}: {peer.name}")
        best, tried = _tuned(benchmark, peer, choose, starts + tries)
        rows = [
            _scores(benchmark, report, _peer_choices(benchmark, best, report, seed))
            for seed in range(seeds if peer.is_random else 1)
        ]
        methods.append(MethodResult(peer.name, np.stack(rows), best.settings(), tried))
    for name, (ranks, layers) in TRAINED.items():
        random = np.random.default_rng(0)
        on_progress(f"{benchmark.name}: {name}, starts")
        drawn = [random_start(random) for _ in range(starts)]
        tried = [
            _mean(benchmark, choose, _start_choices(benchmark, learn, choose, one, ranks))
            for one in drawn
        ]
        start = drawn[int(np.argmax(tried))]
        if name == DGN:
            chosen = _start_choices(benchmark, learn, report, start, ranks)
            scores = _scores(benchmark, report, _prefixes(benchmark, chosen))[None]
            methods.append(MethodResult(UNTRAINED, scores, _of_start(start), tuple(tried)))
        settings = [random_training(random, start) for _ in range(tries)]
        depth = layers or most
        for number, setting in enumerate(settings):
            on_progress(f"{benchmark.name}: {name}, try {number + 1} of {tries}")
            network = train(
                benchmark, learn, setting, ranks=ranks, layers=depth, steps=steps, seed=0
            )
            tried.append(_mean(benchmark, choose, choices(network, choose, most)))
        best_one = settings[int(np.argmax(tried[-tries:]))]
        on_progress(f"{benchmark.name}: {name}, {seeds} seeds")
        # Seed 0 chose the setting; the reported networks have other seeds.
        networks = [
            train(benchmark, learn, best_one, ranks=ranks, layers=depth, steps=steps, seed=seed)
            for seed in range(1, seeds + 1)
        ]
        for by_first_gain in (False, True) if name == DGN else (False,):
            rows = [
                _scores(
                    benchmark,
                    report,
                    _prefixes(benchmark, choices(one, report, most, ranks=by_first_gain)),
                )
                for one in networks
            ]
            shown = RANKED if by_first_gain else name
            methods.append(MethodResult(shown, np.stack(rows), asdict(best_one), tuple(tried)))
    return Result(benchmark, len(report), tuple(methods), _against(benchmark, methods))


def _start_choices(
    benchmark: Benchmark, learn: Sequence[Pool], pools: Sequence[Pool], start: Setting, ranks: bool
) -> list[list[int]]:
    return choices(untrained(benchmark, learn, start, ranks=ranks), pools, max(benchmark.ks))


def _tuned(
    benchmark: Benchmark, peer: Peer, pools: Sequence[Pool], tries: int
) -> tuple[Peer, tuple[float, ...]]:
    random = np.random.default_rng(0)
    candidates = [other for _ in range(tries) if (other := peer.try_one(random)) is not None]
    if not candidates:
        return peer, ()
    tried = tuple(
        float(_scores(benchmark, pools, _peer_choices(benchmark, one, pools, 0)).mean())
        for one in candidates
    )
    return candidates[int(np.argmax(tried))], tried


def _peer_choices(
    benchmark: Benchmark, peer: Peer, pools: Sequence[Pool], seed: int
) -> list[list[list[int]]]:
    """[pools][ks], what a peer selects; k-means selects anew for every k."""
    random = np.random.default_rng([6, seed])
    most = max(benchmark.ks)
    if peer.is_random:
        return [[peer.select(pool, k, random) for k in benchmark.ks] for pool in pools]
    return _prefixes(benchmark, [peer.select(pool, most, random) for pool in pools])


def _prefixes(benchmark: Benchmark, chosen: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    return [[list(row[:k]) for k in benchmark.ks] for row in chosen]


def _scores(
    benchmark: Benchmark, pools: Sequence[Pool], chosen: Sequence[Sequence[Sequence[int]]]
) -> NDArray[np.float64]:
    """[pools, ks]."""
    return np.array(
        [
            [benchmark.score(pool, one) for one in row]
            for pool, row in zip(pools, chosen, strict=True)
        ]
    )


def _mean(benchmark: Benchmark, pools: Sequence[Pool], chosen: Sequence[Sequence[int]]) -> float:
    return float(_scores(benchmark, pools, _prefixes(benchmark, chosen)).mean())


def _against(
    benchmark: Benchmark, methods: Sequence[MethodResult]
) -> dict[str, dict[int, PairedComparison]]:
    """The DGN against every other method, over seeds and pools, corrected for all these tests."""
    (ours,) = (one for one in methods if one.name == DGN)
    others = [one for one in methods if one is not ours]
    resamples = max(2000, 100 * len(others) * len(benchmark.ks))
    found = [
        paired_comparison(
            ours.scores[:, :, at], other.scores[:, :, at], seed=0, resamples=resamples
        )
        for other in others
        for at in range(len(benchmark.ks))
    ]
    corrected = iter(with_holm(found))
    return {other.name: {k: next(corrected) for k in benchmark.ks} for other in others}


def _of_start(setting: Setting) -> dict[str, Any]:
    named = asdict(setting)
    return {name: named[name] for name in ("function", "scale", "sharpness", "worth_power")}


def _rounded(numbers: Any) -> list[float]:
    return [round(float(number), 4) for number in numbers]
