"""What is selected from: pools of items, and what a benchmark must say about them.

A pool is to this experiment what a query is elsewhere. A benchmark has three parts: pools of
`learn` train, pools of `choose` decide about settings, and pools of `report`, which chose nothing,
are reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dgn.learn.layers import Unfolded

Numbers = NDArray[np.float32]
PARTS: tuple[str, ...] = ("learn", "choose", "report")
_DENSITIES = (2.0, 8.0)


@dataclass(frozen=True, eq=False)
class Pool:
    """The items of one choice.

    Attributes:
        vectors: [items, inputs].
        worth: [items], greater than 0, what an item seems worth by itself: likeness to a query,
            information about a label; how dense its neighbourhood is where nothing else is known.
        facts: [items, facts], further numbers of each item.
        target: What the measure and the loss need; no method sees it when it selects.
        signed: Whether opposite vectors are far apart; features that are opposite say the same.
    """

    vectors: Numbers
    worth: Numbers
    facts: Numbers
    target: Any
    signed: bool = True

    @property
    def size(self) -> int:
        """The number of items."""
        return len(self.vectors)

    @cached_property
    def apart(self) -> Numbers:
        """[items, items], squared distances, 1 on average."""
        return distances(self.vectors, self.vectors, signed=self.signed)

    @cached_property
    def profiles(self) -> Numbers:
        """[items, _], vectors whose Euclidean distance means something, for k-means."""
        return self.vectors if self.signed else np.abs(self.vectors @ self.vectors.T)


@dataclass(frozen=True, eq=False)
class PoolBatch:
    """Several pools as tensors; padding is 0."""

    vectors: Tensor
    worth: Tensor
    facts: Tensor
    mask: Tensor
    signed: bool


def stack(pools: Sequence[Pool]) -> PoolBatch:
    """Pools of different sizes as one batch."""
    longest = max(pool.size for pool in pools)

    def padded(name: str) -> Tensor:
        arrays = [getattr(pool, name) for pool in pools]
        found = np.zeros((len(pools), longest, *arrays[0].shape[1:]), np.float32)
        for row, array in enumerate(arrays):
            found[row, : len(array)] = array
        return torch.from_numpy(found)

    sizes = torch.tensor([pool.size for pool in pools])
    mask = torch.arange(longest) < sizes[:, None]
    return PoolBatch(padded("vectors"), padded("worth"), padded("facts"), mask, pools[0].signed)


class Benchmark(ABC):
    """Draws pools, and says how good a choice from one of them is.

    Attributes:
        name: Its name in tables.
        measure: What `score` is, in words.
        ks: How many items are selected.
        counts: How many pools are drawn of each part.
        facts: The names of the facts of an item.
    """

    name: str
    measure: str
    ks: tuple[int, ...]
    counts: dict[str, int]
    facts: tuple[str, ...]
    learns_metric: bool = True

    @abstractmethod
    def pools(self, part: str) -> list[Pool]:
        """The pools of a part, always the same."""

    @abstractmethod
    def score(self, pool: Pool, chosen: Sequence[int]) -> float:
        """How good a choice is; more is better."""

    @abstractmethod
    def loss(self, pools: Sequence[Pool], unfolded: Unfolded, ks: Sequence[int]) -> Tensor:
        """What a training step minimizes: the outcome of the soft choices, or the labels."""


def distances(rows: Numbers, columns: Numbers, *, signed: bool = True) -> Numbers:
    """[rows, columns], squared Euclidean distances, divided by their mean."""
    products = rows @ columns.T
    products = products if signed else np.abs(products)
    squared = (rows**2).sum(1)[:, None] + (columns**2).sum(1) - 2 * products
    squared = squared.clip(min=0)
    return (squared / max(float(squared.mean()), 1e-9)).astype(np.float32)


def ridge_accuracy(
    rows: Numbers, labels: NDArray[Any], others: Numbers, wanted: NDArray[Any], ridge: float
) -> float:
    """The accuracy on other rows of least squares to the classes, with a penalty and an intercept.

    What scikit-learn's RidgeClassifier computes, without its tenfold overhead for so few rows.
    """
    known: Any
    numbers: Any
    known, numbers = np.unique(labels, return_inverse=True)
    mean = rows.mean(axis=0)
    centered, aims = (rows - mean).astype(np.float64), np.eye(len(known))[numbers]
    inner = centered @ centered.T + ridge * np.eye(len(rows))
    solve: Any = np.linalg.solve
    weights = np.matmul(centered.T, solve(inner, aims - aims.mean(axis=0)))
    scores = np.matmul(others - mean, weights) + aims.mean(axis=0)
    return float((known[scores.argmax(axis=1)] == wanted).mean())


def densities(apart: Numbers) -> list[Numbers]:
    """Of each item: its neighbours at a wide and at a narrow scale; how near the next one is."""
    nearest = np.sort(apart, axis=1)[:, 1] if len(apart) > 1 else np.zeros(len(apart), np.float32)
    return [*(np.exp(-sharpness * apart).mean(axis=1) for sharpness in _DENSITIES), nearest]


DENSITY_FACTS = ("wide density", "narrow density", "nearest")


def standardized(columns: Sequence[NDArray[Any]]) -> Numbers:
    """[items, facts], each with mean 0 and deviation 1 in its pool."""
    facts = np.stack([np.asarray(column, np.float32) for column in columns], axis=1)
    spread = facts.std(axis=0)
    return (facts - facts.mean(axis=0)) / np.where(spread > 1e-9, spread, 1)


def memberships(unfolded: Unfolded, k: int) -> tuple[Tensor, Tensor]:
    """[batch, items] each: how far an item is in the soft set after k layers, and log(1 − that)."""
    log_left = unfolded.log_others[:, :k].sum(dim=1)
    return -torch.expm1(log_left), log_left
