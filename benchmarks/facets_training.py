"""Training of the facets at FEVER's size: claims of 12 words, pages of 11 sentences, K = 5.

It runs with the code of any version on the path, so that two of them can be compared:

    PYTHONPATH=src:. python -m benchmarks facets_training
    PYTHONPATH=OTHER/src:. python -m benchmarks.facets_training
"""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
import torch

from benchmarks.measure import print_table
from dgn.data import Position
from dgn.learn import FitConfig, RunConfig, Trainer, build_network, to_device
from dgn.learn.families.facets_table import MatchBatches, MatchTable
from dgn.text.facets.matching import AXES

CLAIMS, WORDS, DIMENSION, SECONDS = 20_000, 8_000, 256, 10.0
CONFIG = RunConfig().with_settings({"encoder": "facets", "layers": 5, "assignment": "set"})


def run() -> None:
    rows: list[tuple[object, ...]] = []
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        for batch_size in (64, 1024):
            rows.append((device, batch_size, f"{_rate(device, batch_size):,.0f}"))
    print_table(
        f"Training the facets, {torch.get_num_threads()} threads, {SECONDS:.0f} s each",
        ("device", "batch", "claims/s"),
        rows,
    )


def _rate(device: str, batch_size: int) -> float:
    batches = MatchBatches(_table(), batch_size, 0, to_device(device))
    network = build_network(CONFIG, DIMENSION).to(device)
    network.set_temperature(0.1)
    network.train()
    can_record = "records" in inspect.signature(Trainer).parameters
    options: dict[str, Any] = {"records": True} if can_record else {}
    trainer = Trainer(network, batches, batches, FitConfig(epochs=1), **options)
    order = [rows for _, rows in batches.rows_from(Position())]
    # Twice: the first step of a shape compiles, the second one records.
    for rows in [*order[:40], *order[:40]]:
        trainer._step(rows)
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        for rows in order[:40]:
            trainer._step(rows)
            done += len(rows)
        if device == "cuda":
            torch.cuda.synchronize()
    return done / (time.perf_counter() - started)


def _table() -> MatchTable:
    """Sizes of FEVER with random numbers: the speed does not depend on their values."""
    random = np.random.default_rng(0)
    tokens = np.clip(random.poisson(9, CLAIMS), 3, 30).astype(np.int64)
    items = np.clip(random.geometric(1 / 11, CLAIMS), 1, 60).astype(np.int64)
    pairs, passages = int((items * tokens).sum()), int(items.sum())

    def share(size: int) -> np.ndarray:
        return random.random(size, np.float32).astype(np.float16)

    flags = {"exact", "pair", "is_ordered", "follows"}
    sizes = {("items", "tokens"): pairs, ("items",): passages}
    arrays = {
        name: random.random(sizes[axes]) < 0.5 if name in flags else share(sizes[axes])
        for name, axes in AXES.items()
        if axes in sizes
    }
    arrays["query"] = random.integers(0, WORDS, int(tokens.sum())).astype(np.int32)
    arrays["about"] = share(CLAIMS * DIMENSION).reshape(CLAIMS, DIMENSION)
    arrays["passages"] = share(passages * DIMENSION).reshape(passages, DIMENSION)
    return MatchTable(
        vectors=random.standard_normal((WORDS, DIMENSION), np.float32).astype(np.float16),
        facts=random.random((WORDS, 5), np.float32),
        ids=np.arange(CLAIMS).astype(str),
        tokens=tokens,
        items=items,
        gold=random.random(passages) < 0.15,
        arrays=arrays,
        negative_weight=np.ones(passages, np.float32),
        teacher_logits=np.full(passages, np.nan, np.float32),
    )


if __name__ == "__main__":
    run()
