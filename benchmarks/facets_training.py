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
from dgn.encoders.facets.matching import BY_ITEM, BY_PAIR
from dgn.encoders.facets.table import MatchBatches, MatchTable
from dgn.training import FitConfig, RunConfig, Trainer, build_network, placed_on

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
    batches = MatchBatches(_table(), batch_size, 0, placed_on(device))
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
    by_pair = {n: random.random(pairs) < 0.2 if n in flags else share(pairs) for n in BY_PAIR}
    by_item = {n: random.random(passages) < 0.9 if n in flags else share(passages) for n in BY_ITEM}
    return MatchTable(
        vectors=random.standard_normal((WORDS, DIMENSION), np.float32).astype(np.float16),
        facts=random.random((WORDS, 5), np.float32),
        ids=np.arange(CLAIMS).astype(str),
        tokens=tokens,
        items=items,
        query=random.integers(0, WORDS, int(tokens.sum())).astype(np.int32),
        gold=random.random(passages) < 0.15,
        about=share(CLAIMS * DIMENSION).reshape(CLAIMS, DIMENSION),
        passages=share(passages * DIMENSION).reshape(passages, DIMENSION),
        by_pair=by_pair,
        by_item=by_item,
        negative_weight=np.ones(passages, np.float32),
        teacher_logits=np.full(passages, np.nan, np.float32),
    )


if __name__ == "__main__":
    run()
