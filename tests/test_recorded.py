"""What was selected once is still selected: on a thousand instances, and for forty claims.

The sets were recorded at d973326, before there was breadth; its "exact" and "stochastic_greedy" are
not in the library any more.
"""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.core import Selection
from dgn.data import read_rows
from instances import KINDS, random_instance
from models import shipped

RECORDED = Path(__file__).parent / "recorded"
SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
RECORDED_KINDS = list(KINDS)[:9]
"""The functions that there were when the sets were recorded."""
RECORDED_NAMES = {
    "greedy": "greedy",
    "lazy_greedy": "lazy_greedy",
    "budgeted_greedy": "greedy, budget",
    "top_k": "top_k",
}
EQUAL = {(41, "greedy, budget")}
"""One item is worth what greedy's two are, up to the last digit: either of them may be selected."""


def search(seed: int) -> dict[str, Selection]:
    kind, size, k = RECORDED_KINDS[seed % 9], 3 + seed % 10, 1 + seed % 5
    instance = random_instance(kind, seed, size)
    f, features = instance.objective, instance.features
    random = np.random.default_rng(seed)
    costs, budget = random.uniform(0.5, 2, size), float(random.uniform(1, 4))
    return {
        "greedy": dgn.greedy(f, features, k),
        "lazy_greedy": dgn.lazy_greedy(f, features, k),
        "greedy, budget": dgn.greedy(f, features, costs=costs, budget=budget),
        "top_k": dgn.top_k(features.sum(1), k),
    }


def test_every_maximizer_finds_the_recorded_sets() -> None:
    recorded = np.load(RECORDED / "maximizers.npz")
    for seed in range(0, 1000, 6):  # all of them take half a minute
        found = search(seed)
        for place, recorded_name in enumerate(recorded["names"].tolist()):
            name = RECORDED_NAMES.get(recorded_name)
            if name is None:
                continue
            indices = recorded["indices"][seed, place]
            selection, count = found[name], int((indices >= 0).sum())
            if (seed, name) not in EQUAL:
                assert selection.indices == tuple(indices[:count].tolist()), (seed, name)
                gains = recorded["gains"][seed, place, :count]
                assert selection.gains == pytest.approx(gains.tolist(), rel=1e-9), (seed, name)
            value, bound = recorded["certificates"][seed, place]
            assert selection.certificate.value == pytest.approx(value, rel=1e-9), (seed, name)
            if name == "lazy_greedy":  # the kernel evaluates the last prefix, which proves more
                assert selection.certificate.bound <= bound * (1 + 1e-9), (seed, name)
            else:
                assert selection.certificate.bound == pytest.approx(bound, rel=1e-9), (seed, name)


def test_every_limit_selects_the_recorded_passages() -> None:
    """What the shipped model selected when it was shipped, for claims of our own."""
    queries = [one.query for one in itertools.islice(read_rows(SAMPLES), 40)]
    random = np.random.default_rng(0)
    scored = [
        replace(
            query,
            passages=tuple(
                replace(passage, score=float(score))
                for passage, score in zip(
                    query.passages, random.random(len(query.passages)), strict=True
                )
            ),
        )
        for query in queries
    ]
    for recorded in json.loads((RECORDED / "selections.json").read_text()):
        limits = dgn.Limits(**recorded["limits"], breadth=0)
        found = shipped().select_queries(scored if recorded["scores"] else queries, limits)
        for one, (indices, gains, coverage) in zip(found, recorded["selections"], strict=True):
            assert list(one.indices) == indices, limits
            assert one.gains == pytest.approx(gains, abs=2e-5), limits
            assert one.coverage == pytest.approx(coverage, abs=2e-5), limits
