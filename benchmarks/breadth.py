"""What comparing passages with each other costs: the default breadth next to breadth 0.

Small sets: the median of many calls on known text. Large ones are made up of some hundred words,
and measured in turns after a first call. Without a query, and vectors alone: one call each.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dgn
from benchmarks.measure import print_table

CLAIMS = Path(__file__).parents[1] / "samples" / "claims.jsonl"
WORDS = (
    *("tea", "bread", "book", "lamp", "hall", "door", "ship", "port", "bridge", "river", "train"),
    *("engine", "grain", "wheat", "paper", "glass", "stone", "water", "light", "green", "north"),
    *("south", "winter", "summer", "music", "voice", "garden", "letter", "copper", "silver"),
)
QUERY = "Is tea sold at the bridge in winter?"


def _made_up(count: int) -> list[str]:
    chooser = random.Random(0)  # noqa: S311
    forms = [word + end for word in WORDS for end in ("", "s", "ing", "ed", "er")]
    return [f"{' '.join(chooser.choices(forms, k=12))} number {n}." for n in range(count)]


def _milliseconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def run() -> None:
    """Print both tables."""
    selector = dgn.Selector.from_pretrained()
    rows = [json.loads(line) for line in CLAIMS.read_text(encoding="utf-8").splitlines()]
    passages = _made_up(100_000)
    index = selector.index(passages=passages)

    def claims(breadth: float | None) -> None:
        for row in rows:
            selector.select(row["claim"], documents=row["documents"], k=5, breadth=breadth)

    def some(count: int) -> Callable[[float | None], Any]:
        return lambda breadth: selector.select(QUERY, passages[:count], k=5, breadth=breadth)

    def indexed(breadth: float | None) -> None:
        index.select(QUERY, k=5, breadth=breadth)

    measured: dict[str, tuple[Callable[[float | None], Any], int, int]] = {
        "a claim with 11.5 passages": (claims, 15, len(rows)),
        "50 passages": (some(50), 200, 1),
        "20,000 passages": (some(20_000), 7, 1),
        "an index of 100,000 passages": (indexed, 7, 1),
    }
    table: list[tuple[object, ...]] = []
    for name, (call, rounds, queries) in measured.items():
        times: dict[float | None, list[float]] = {0: [], None: []}
        for breadth in times:
            call(breadth)
        for _ in range(rounds):
            for breadth, own in times.items():
                own.append(_milliseconds(partial(call, breadth)) / queries)
        zero, default = (statistics.median(own) for own in times.values())
        table.append((name, f"{zero:.2f}", f"{default:.2f}", f"{default / zero:.2f}×"))
    title = "Breadth, k = 5, known text, 2 cores, medians"
    print_table(title, ("", "breadth 0, ms", "default, ms", "default relative to 0"), table)
    vectors = np.random.default_rng(0).normal(size=(20_000, 384)).astype(np.float32)
    alone: dict[str, Callable[[], Any]] = {
        "select(None, 2,000 passages, k=20)": lambda: selector.select(None, passages[:2000], k=20),
        "select(None, 20,000 passages, k=20)": lambda: selector.select(
            None, passages[:20_000], k=20
        ),
        "lazy_greedy(*FacilityLocation.of_vectors(x), 20), 20,000 × 384": lambda: dgn.lazy_greedy(
            *dgn.FacilityLocation.of_vectors(vectors), 20
        ),
    }
    seconds = [(name, f"{_milliseconds(call) / 1000:.2f}") for name, call in alone.items()]
    print_table("Without a query, one call each", ("", "s"), [*seconds])
