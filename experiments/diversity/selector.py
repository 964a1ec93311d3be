"""The learned function: which items cover which, and what it is worth to cover an item.

    coverage    f(A) = Σ_u α_u · log(1 + Σ_{a∈A} h_au)      the function of the paper
    facility    f(A) = Σ_u α_u · max_{a∈A} h_au             facility location
    with        h_au = scale · q_a · exp(−sharpness · |z_u − z_a|²)

The columns u are the items of the pool: a set is worth much if everything important is near it.
Nothing is tied to an item or a class, so that what is learned from some pools is used for others:
the metric (z = x plus a low-rank map of x), the sharpness, the scale, and how the facts of an item
decide what it is worth as a place to cover (α) and as an item that covers (q). Which of the two
functions it is, and where it starts, is chosen before training.

An encoder has the same function without diversity: each item is worth what it would cover alone, so
that selecting is ranking. Same inputs, same weights, same loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from dgn.core import Selections, greedy, top_k
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, Power, SetFunction
from dgn.learn.layers import UnfoldedGreedy
from experiments.diversity.pools import Benchmark, Pool, PoolBatch, stack

_RANK = 16
_TOTAL_WEIGHT = 10.0
_BATCH = 8


@dataclass(frozen=True)
class Setting:
    """Where training starts, and how it goes on; untrained selectors use the first four.

    Attributes:
        function: "coverage" or "facility".
        scale: How soon a place counts as covered; it does not matter to "facility".
        sharpness: How near an item must be to cover it.
        worth_power: 1 if places count by what they seem worth, 0 if all count the same.
        rate: The learning rate.
        temperature: τ.
        learns_metric: Whether the metric is learned, where a benchmark allows it.
    """

    function: str = "coverage"
    scale: float = 3.0
    sharpness: float = 4.0
    worth_power: float = 0.0
    rate: float = 0.01
    temperature: float = 0.1
    learns_metric: bool = True


def random_start(random: np.random.Generator) -> Setting:
    """A function to start from."""
    return Setting(
        function=str(random.choice(["coverage", "facility"])),
        scale=_log_uniform(random, 0.3, 100),
        sharpness=_log_uniform(random, 0.1, 16),
        worth_power=float(random.integers(2)),
    )


def random_training(random: np.random.Generator, start: Setting) -> Setting:
    """A way to train from a start."""
    return replace(
        start,
        rate=_log_uniform(random, 0.003, 0.05),
        temperature=_log_uniform(random, 0.01, 0.3),
        learns_metric=bool(random.integers(2)),
    )


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return math.exp(random.uniform(math.log(low), math.log(high)))


class PoolCoverage(nn.Module):
    """The learned function of a pool; before training, that of its setting."""

    def __init__(
        self, inputs: int, facts: int, setting: Setting, *, ranks: bool, learns_metric: bool
    ) -> None:
        super().__init__()
        self.function, self.worth_power = setting.function, setting.worth_power
        self.ranks = ranks
        self.log_scale = nn.Parameter(torch.tensor(math.log(setting.scale)))
        self.log_sharpness = nn.Parameter(torch.tensor(math.log(setting.sharpness)))
        self.place, self.item = nn.Linear(facts, 1), nn.Linear(facts, 1, bias=False)
        for layer in (self.place, self.item):
            nn.init.zeros_(layer.weight)
        self.down = nn.Linear(inputs, _RANK, bias=False) if learns_metric else None
        self.up = nn.Linear(_RANK, inputs, bias=False) if learns_metric else None
        if self.up is not None:
            nn.init.zeros_(self.up.weight)

    def forward(self, pools: PoolBatch) -> tuple[SetFunction, Items]:
        """The set function, and the items of each pool."""
        real = pools.mask.to(pools.vectors.dtype)
        pairs = real[:, :, None] * real[:, None, :]
        near = torch.exp(-self.log_sharpness.exp() * self._apart(pools, pairs)) * pairs
        quality = torch.exp(self.item(pools.facts)[..., 0].clamp(-4, 4))
        features = self.log_scale.exp() * quality[..., None] * near
        worth = pools.worth.clamp(min=1e-6) ** self.worth_power
        alpha = worth * torch.exp(self.place(pools.facts)[..., 0].clamp(-4, 4)) * real
        alpha = _TOTAL_WEIGHT * alpha / alpha.sum(dim=1, keepdim=True)
        is_facility = self.function == "facility"
        objective = FacilityLocation(alpha) if is_facility else FeatureCoverage(alpha)
        items = Items(features, pools.mask)
        if self.ranks:
            alone = objective.gains(items, objective.empty(items))
            return FeatureCoverage(None, Power(1.0)), Items(alone[..., None], pools.mask)
        return objective, items

    def _apart(self, pools: PoolBatch, pairs: Tensor) -> Tensor:
        """[batch, items, items], squared distances in the learned metric, 1 on average."""
        z = pools.vectors
        if self.down is not None and self.up is not None:
            z = z + self.up(self.down(z))
        products = z @ z.mT
        products = products if pools.signed else products.abs()
        squares = (z**2).sum(dim=2)
        apart = (squares[:, :, None] + squares[:, None, :] - 2 * products).clamp(min=0) * pairs
        mean = apart.sum(dim=(1, 2)) / pairs.sum(dim=(1, 2))
        return apart / mean.clamp(min=1e-9)[:, None, None]


def untrained(
    benchmark: Benchmark, pools: Sequence[Pool], setting: Setting, *, ranks: bool = False
) -> PoolCoverage:
    """The function before training."""
    inputs, facts = pools[0].vectors.shape[1], pools[0].facts.shape[1]
    learns = benchmark.learns_metric and setting.learns_metric
    return PoolCoverage(inputs, facts, setting, ranks=ranks, learns_metric=learns)


def train(
    benchmark: Benchmark,
    pools: Sequence[Pool],
    setting: Setting,
    *,
    ranks: bool = False,
    layers: int,
    steps: int,
    seed: int,
) -> PoolCoverage:
    """Train through greedy layers on the pools, for every k of the benchmark that they reach."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    network = untrained(benchmark, pools, setting, ranks=ranks)
    ks = [k for k in benchmark.ks if k <= layers] or [layers]
    unfold = UnfoldedGreedy(layers, setting.temperature)
    optimizer = torch.optim.Adam(network.parameters(), setting.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        chosen = [pools[int(i)] for i in random.choice(len(pools), _BATCH, replace=False)]
        loss = benchmark.loss(chosen, unfold(*network(stack(chosen))), ks)
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return network.eval()


@torch.no_grad()
def choices(
    network: PoolCoverage, pools: Sequence[Pool], k: int, *, ranks: bool = False
) -> list[list[int]]:
    """What greedy selects from each pool, in order; or the largest gains of its first step."""
    found: list[list[int]] = []
    for start in range(0, len(pools), _BATCH):
        batch = stack(pools[start : start + _BATCH])
        objective, items = network(batch)
        alone = objective.gains(items, objective.empty(items))
        found_by = top_k(alone, k, batch.mask) if ranks else greedy(objective, items, k)
        picks = cast("Selections", found_by).indices
        found += [[i for i in row if i >= 0] for row in picks.tolist()]
    return found
