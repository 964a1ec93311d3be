"""Training speed at FEVER's size, against the unfolding as in the paper's figure, in one run.

110,000 claims of 11 sentences on average (and of 44: several pages), 300 → 300 → 254 features,
K = 7, batches of 256. The naive unfolding lists the possible next states of every layer, s ∪ {v}
for each v, evaluates f on each of them and takes softmax and logarithms one after the other;
autograd does the rest. It is batched, as ours is. One claim at a time, in a Python loop, is
measured as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measure import print_table
from experiments.paper.features import Batch, Batches, Table
from experiments.paper.networks import Settings, build_network

CLAIMS, PAGES, DIMENSION, BATCH = 110_000, 6_000, 300, 256
SECONDS, STEPS = 5.0, 20


def run() -> None:
    for sentences in (11, 44):
        table = _fever_sized_table(sentences)
        _measure(table, sentences, "cpu", BATCH)
        for batch in (256, 1024, 4096) if torch.cuda.is_available() else ():
            _measure(table, sentences, "cuda", batch)


def _measure(table: Table, sentences: int, device: str, batch_size: int) -> None:
    batches = Batches(table, batch_size, device)
    network = build_network(Settings(), DIMENSION, 0).to(device).train()
    naive = _NaiveNetwork().to(device)
    adam, naive_adam = torch.optim.Adam(network.parameters()), torch.optim.Adam(naive.parameters())

    def step(rows: np.ndarray) -> None:
        batch = batches.batch(rows)
        adam.zero_grad()
        network.loss(batch.x, batch.gold, batch.mask).backward()
        adam.step()

    def naive_step(rows: np.ndarray) -> None:
        _learn(naive, naive_adam, batches.batch(rows))

    def one_by_one(rows: np.ndarray) -> None:
        for row in rows[:32]:
            _learn(naive, naive_adam, batches.batch(np.array([row])))

    order = [batch.rows for _, batch in zip(range(STEPS), batches.shuffled(0, 0), strict=False)]
    rates = {
        "dgn, whole steps with batches and Adam": _rate(order, step),
        "naive unfolding, batched": _rate(order, naive_step),
    }
    if batch_size == BATCH:
        rates["naive unfolding, claim by claim"] = _rate(order, one_by_one, counted=32)
    naive_rate = rates["naive unfolding, batched"]
    print_table(
        f"Training on {device}: {_name(device)}; {CLAIMS:,} claims of {sentences} sentences, "
        f"K = {Settings().layers}, batches of {batch_size}, measured for {SECONDS:.0f} s each",
        ("", "claims/s", "s per epoch", "of the naive rate"),
        [
            (name, f"{rate:,.0f}", f"{CLAIMS / rate:.1f}", f"{rate / naive_rate:.1f}×")
            for name, rate in rates.items()
        ],
    )


def _rate(
    order: list[np.ndarray], step: Callable[[np.ndarray], None], counted: int | None = None
) -> float:
    """Claims per second, with batches that were seen before; the device is synchronized."""
    for rows in order if counted is None else order[:3]:
        step(rows)
    _wait()
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        for rows in order:
            step(rows)
            done += counted or len(rows)
        _wait()
    return done / (time.perf_counter() - started)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class _NaiveNetwork(nn.Module):
    """The figure of the paper, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 254), nn.ReLU())
        self.alpha = nn.Parameter(torch.zeros(254))

    def forward(self, batch: Batch) -> list[Tensor]:
        features = self.encoder(batch.x) * batch.mask[..., None]
        weights = nn.functional.softplus(self.alpha)
        sets, items, _ = features.shape
        state = torch.zeros(sets, items, device=features.device)
        one_hot = torch.eye(items, device=features.device)
        chosen: list[Tensor] = []
        for _ in range(7):
            following = state[:, None, :] + (1 - state[:, None, :]) * one_hot
            values = torch.log1p(following @ features) @ weights
            before = torch.log1p((state[:, None, :] @ features)[:, 0]) @ weights
            gains = (values - before[:, None]) * (1 - state)
            gains = gains.masked_fill(~batch.mask, -1e9)
            p = torch.softmax(gains / 4.0, dim=1)
            state = state + (1 - state) * p
            chosen.append(p)
        return chosen


def _learn(network: _NaiveNetwork, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    left = batch.gold
    loss = torch.zeros((), device=batch.x.device)
    for p in network(batch):
        best = torch.where(left, p, -1.0).argmax(dim=1, keepdim=True)
        label = torch.zeros_like(left).scatter(1, best, True) & left
        counted = left.any(dim=1, keepdim=True)
        terms = torch.where(label, torch.log(p + 1e-9), torch.log(1 - p + 1e-6))
        loss = loss - (terms * (batch.mask & counted)).sum() / len(p)
        left = left & ~label
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _fever_sized_table(sentences: int) -> Table:
    """FEVER's sizes with random vectors: the speed does not depend on their values."""
    random = np.random.default_rng(0)
    on_page = np.clip(random.geometric(1 / sentences, PAGES), 1, 6 * sentences)
    first = np.concatenate([[0], np.cumsum(on_page)])
    page = random.integers(0, PAGES, CLAIMS)
    lengths = on_page[page]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    gold = random.random(offsets[-1]) < 0.1
    gold[offsets[:-1]] |= random.random(CLAIMS) < 0.5
    return Table(
        claims=random.standard_normal((CLAIMS, DIMENSION), np.float32).astype(np.float16),
        sentences=random.standard_normal((first[-1], DIMENSION), np.float32).astype(np.float16),
        offsets=offsets,
        candidates=(np.repeat(first[page], lengths) + place),
        gold=gold,
    )


def _name(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{torch.get_num_threads()} threads"
