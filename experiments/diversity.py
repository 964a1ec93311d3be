"""Does diversity pay where it is the label? `python -m experiments.diversity --out FOLDER`.

Three benchmarks that are not sentences for claims: training examples, images of a collection, and
features of a table. From top to bottom: what is selected from, the benchmarks, the function that is
learned, the peers, the study from the search of settings to corrected p-values, and the tables.
Writes diversity.json and diversity.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import pyversity
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.feature_selection import f_classif  # pyright: ignore[reportUnknownVariableType]
from sklearn.metrics import mutual_info_score  # pyright: ignore[reportUnknownVariableType]
from torch import Tensor, nn

from dgn.core import Selection, Selections, greedy, top_k
from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Log1p,
    Power,
    SetFunction,
)
from dgn.evaluation.comparison import format_difference, format_score, with_holm
from dgn.evaluation.metrics import PairedComparison, bootstrap_interval, paired_comparison
from dgn.files import write_atomically
from dgn.learn import Unfolded, UnfoldedGreedy
from experiments.made import made_by

# What is selected from: pools of items, and what a benchmark must say about them.
#
# A pool is to this experiment what a query is elsewhere. A benchmark has three parts: pools of
# `learn` train, pools of `choose` decide about settings, and pools of `report`, which chose
# nothing, are reported.

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


# Choosing training examples before anybody has labelled them, and images of a collection.
#
# A pool has a few frequent classes and some rare ones, as a stream of unlabelled data has. The
# chosen examples are labelled, a ridge classifier learns from them, and its accuracy on balanced
# test examples is the measure. The classes of the reported pools occur in no other part.

_SHARPNESS = 8.0
_UNLABELLED = 1e-3
_RIDGE = 0.1
_POOL, _VALIDATION, _TEST_PER_CLASS = 60, 60, 40


@dataclass(frozen=True, eq=False)
class Examples:
    """Vectors with their classes."""

    vectors: Numbers
    labels: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Learnt:
    """What is known about a pool after the choice.

    Attributes:
        labels: [items].
        near: [validation examples, items], how near they are to the items.
        same: [validation examples, items], 1 where the class is the same.
        test: The examples that measure the classifier.
    """

    labels: NDArray[np.int64]
    near: Numbers
    same: Numbers
    test: Examples


def digits(part: str) -> Examples:
    """Images of digits: half of the odd ones learn, half choose; the even ones are reported."""
    load: Any = load_digits
    data = load()
    vectors, labels = data.data.astype(np.float32) / 16, data.target.astype(np.int64)
    vectors -= vectors[labels % 2 == 1].mean(axis=0)
    order = np.random.default_rng(0).permutation(len(labels))
    half = np.zeros(len(labels), bool)
    half[order[: len(labels) // 2]] = True
    wanted = (
        labels % 2 == 0 if part == "report" else (labels % 2 == 1) & (half == (part == "learn"))
    )
    return Examples(vectors[wanted], labels[wanted])


@final
class Coresets(Benchmark):
    """Training examples out of a pool; see the module."""

    ks = (5, 10, 20)
    counts = {"learn": 300, "choose": 40, "report": 120}  # noqa: RUF012
    facts = DENSITY_FACTS
    measure = "accuracy of a ridge classifier that learned from the k selected examples"

    def __init__(self, name: str, classes: int) -> None:
        self.name, self._classes = name, classes

    def pools(self, part: str) -> list[Pool]:
        examples = digits(part)
        random = np.random.default_rng([2, PARTS.index(part)])
        return [self._draw(examples, random) for _ in range(self.counts[part])]

    def _draw(self, examples: Examples, random: np.random.Generator) -> Pool:
        labels, members = _shares(examples, self._classes, random)
        items, validation, test = (np.empty(0, np.int64),) * 3
        counts = random.multinomial(_POOL - len(labels), random.dirichlet([0.7] * len(labels))) + 1
        for own, count in zip(members, counts, strict=True):
            shuffled = random.permutation(own)
            # A rare class has enough examples for the test; a frequent one is cut to what is there.
            held_out = min(_TEST_PER_CLASS, len(own) // 3)
            share = _VALIDATION // len(labels)
            test = np.concatenate([test, shuffled[:held_out]])
            validation = np.concatenate([validation, shuffled[held_out : held_out + share]])
            rest = shuffled[held_out + share :]
            items = np.concatenate([items, rest[:count]])
        items = random.permutation(items)
        vectors = examples.vectors[items]
        near = np.exp(-_SHARPNESS * distances(examples.vectors[validation], vectors))
        same = examples.labels[validation][:, None] == examples.labels[items]
        held_out = Examples(examples.vectors[test], examples.labels[test])
        target = _Learnt(examples.labels[items], near, same.astype(np.float32), held_out)
        return _without_query(vectors, target)

    def score(self, pool: Pool, chosen: Sequence[int]) -> float:
        target: _Learnt = pool.target
        own, labels = pool.vectors[list(chosen)], target.labels[list(chosen)]
        return ridge_accuracy(own, labels, target.test.vectors, target.test.labels, _RIDGE)

    def loss(self, pools: Sequence[Pool], unfolded: Unfolded, ks: Sequence[int]) -> Tensor:
        """−log of the share that the right class has among the soft neighbours of an example."""
        size = unfolded.log_probs.shape[2]
        near = _stacked([pool.target.near for pool in pools], size)
        same = _stacked([pool.target.same for pool in pools], size)
        losses: list[Tensor] = []
        for k in ks:
            pull = near * memberships(unfolded, k)[0][:, None, :]
            right = (pull * same).sum(dim=2) + _UNLABELLED
            losses.append(-torch.log(right / (pull.sum(dim=2) + 5 * _UNLABELLED)).mean())
        return torch.stack(losses).mean()


@final
class Collections(Benchmark):
    """A few images out of a collection with motifs, copies of popular ones, and failed shots.

    The motifs are classes of digits that the other parts do not have. Of what is popular there are
    many slightly different copies; a failed shot is an image whose pixels are shuffled.
    """

    name = "images of a collection (digits)"
    measure = "share of the motifs that are among the k selected images"
    ks = (3, 5, 8)
    counts = {"learn": 300, "choose": 60, "report": 150}  # noqa: RUF012
    facts = DENSITY_FACTS

    def pools(self, part: str) -> list[Pool]:
        examples = digits(part)
        random = np.random.default_rng([3, PARTS.index(part)])
        return [self._draw(examples, random) for _ in range(self.counts[part])]

    def _draw(self, examples: Examples, random: np.random.Generator) -> Pool:
        labels, members = _shares(examples, 5, random)
        weights = random.dirichlet([0.7] * len(labels))
        counts = random.multinomial(40 - 2 * len(labels), weights) + 2
        items = [
            examples.vectors[random.choice(own, n)] for own, n in zip(members, counts, strict=True)
        ]
        motif = np.repeat(np.arange(len(labels)), counts)
        images = np.concatenate(items)
        images = images + 0.05 * random.standard_normal(images.shape)
        failed = random.permuted(images[random.choice(len(images), 12)], axis=1)
        vectors = np.concatenate([images, failed]).astype(np.float32)
        shown = np.zeros((len(vectors), len(labels)), np.float32)
        shown[np.arange(len(images)), motif] = 1
        order = random.permutation(len(vectors))
        return _without_query(vectors[order], shown[order])

    def score(self, pool: Pool, chosen: Sequence[int]) -> float:
        return float(pool.target[list(chosen)].max(axis=0).mean())

    def loss(self, pools: Sequence[Pool], unfolded: Unfolded, ks: Sequence[int]) -> Tensor:
        """The probability that a motif is not shown, if every image is chosen independently."""
        shown = torch.from_numpy(np.stack([pool.target for pool in pools]))
        missed = [
            torch.exp(torch.einsum("bi,bim->bm", memberships(unfolded, k)[1], shown)) for k in ks
        ]
        return torch.stack(missed).mean()


def _shares(
    examples: Examples, most: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Some classes, and the numbers of their examples."""
    known = np.unique(examples.labels)
    labels = random.choice(known, min(most, len(known)), replace=False)
    return labels, [np.flatnonzero(examples.labels == label) for label in labels]


def _without_query(vectors: Numbers, target: Any) -> Pool:
    apart = distances(vectors, vectors)
    facts = densities(apart)
    return Pool(
        vectors, (facts[0] / facts[0].mean()).astype(np.float32), standardized(facts), target
    )


def _stacked(matrices: Sequence[Numbers], size: int) -> Tensor:
    """[batch, validation examples, items]; examples that are missing are near nothing."""
    longest = max(len(matrix) for matrix in matrices)
    found = np.zeros((len(matrices), longest, size), np.float32)
    for row, matrix in enumerate(matrices):
        found[row, : len(matrix), : matrix.shape[1]] = matrix
    return torch.from_numpy(found)


# Choosing features: few columns of a table with which a classifier is nearly as good as with all.
#
# A pool is a small labelled sample; its items are the columns, their vectors the standardized
# values. A column is redundant if another one is correlated with it, with either sign. The
# measure is the accuracy, on other rows, of a ridge classifier that learned from the sample with
# the selected columns. Training sees the digits 1, 3, 5, 7 and 9; reported are the other digits,
# and two data sets from another world.

_SAMPLE, _MOST_TESTS, _TABLE_RIDGE = 60, 300, 1.0
_COLUMN_SHARPNESS = 4.0
_LEAST_WORTH = 0.02


@dataclass(frozen=True, eq=False)
class _Table:
    """The sample, standardized, and the rows that measure the classifier."""

    sample: Examples
    test: Examples


@final
class FeatureChoice(Benchmark):
    """The columns of tables; see the module."""

    name = "features of a table (digits, cancer, wine)"
    measure = "accuracy of a ridge classifier with the k selected columns"
    ks = (2, 4, 8)
    counts = {"learn": 200, "choose": 40, "report": 120}  # noqa: RUF012
    facts = (*DENSITY_FACTS, "mutual information", "F statistic")
    learns_metric = False

    def pools(self, part: str) -> list[Pool]:
        random = np.random.default_rng([5, PARTS.index(part)])
        images = digits(part)
        if part != "report":
            return [_draw(images, random) for _ in range(self.counts[part])]
        tables = [images, *(_examples(load()) for load in (load_breast_cancer, load_wine))]
        each = self.counts[part] // len(tables)
        return [_draw(table, random) for table in tables for _ in range(each)]

    def score(self, pool: Pool, chosen: Sequence[int]) -> float:
        table: _Table = pool.target
        columns = list(chosen)
        own, other = table.sample.vectors[:, columns], table.test.vectors[:, columns]
        return ridge_accuracy(own, table.sample.labels, other, table.test.labels, _TABLE_RIDGE)

    def loss(self, pools: Sequence[Pool], unfolded: Unfolded, ks: Sequence[int]) -> Tensor:
        """−log of the share that a row's own class has among its neighbours in the soft columns."""
        values = torch.from_numpy(np.stack([pool.target.sample.vectors for pool in pools]))
        labels = torch.from_numpy(np.stack([pool.target.sample.labels for pool in pools]))
        same = (labels[:, :, None] == labels[:, None, :]).to(values.dtype)
        itself = torch.eye(values.shape[1])
        losses: list[Tensor] = []
        for k in ks:
            weighted = values * memberships(unfolded, k)[0][:, None, :]
            squares = (weighted * values).sum(dim=2)
            apart = squares[:, :, None] + squares[:, None, :] - 2 * weighted @ values.mT
            pull = torch.exp(-_COLUMN_SHARPNESS * apart.clamp(min=0) / k) * (1 - itself)
            right = (pull * same).sum(dim=2) + 1e-3
            losses.append(-torch.log(right / (pull.sum(dim=2) + 5e-3)).mean())
        return torch.stack(losses).mean()


def _examples(data: Any) -> Examples:
    return Examples(data.data.astype(np.float32), data.target.astype(np.int64))


def _draw(table: Examples, random: np.random.Generator) -> Pool:
    known = np.unique(table.labels)
    labels = random.choice(known, min(len(known), int(random.integers(3, 6))), replace=False)
    rows = random.permutation(np.flatnonzero(np.isin(table.labels, labels)))
    sample, test = rows[:_SAMPLE], rows[_SAMPLE : _SAMPLE + _MOST_TESTS]
    mean, spread = table.vectors[sample].mean(axis=0), table.vectors[sample].std(axis=0)
    # A column that is always the same says nothing; it stays, as 0, so that pools have one size.
    scale = np.where(spread > 1e-6, spread, np.inf).astype(np.float32)
    values: Numbers = (table.vectors - mean) / scale
    own, kinds = values[sample], table.labels[sample]
    information = _information(own, kinds)
    vectors = (own / np.sqrt(len(own))).T.copy()
    facts = standardized(
        [
            *densities(distances(vectors, vectors, signed=False)),
            information,
            _f_statistics(own, kinds),
        ]
    )
    worth = information + _LEAST_WORTH
    found = _Table(Examples(own, kinds), Examples(values[test], table.labels[test]))
    return Pool(vectors, (worth / worth.mean()).astype(np.float32), facts, found, signed=False)


def _information(values: Numbers, labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """[columns], the mutual information of each column, in quarters, and the label."""
    quarters = (values[:, None, :] > np.quantile(values, [0.25, 0.5, 0.75], axis=0)).sum(axis=1)
    found = [mutual_info_score(labels, column) for column in quarters.T]
    return np.array(found, np.float32)


def _f_statistics(values: Numbers, labels: NDArray[np.int64]) -> NDArray[Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = np.asarray(f_classif(values, labels)[0])
    return np.log1p(np.nan_to_num(found, posinf=0.0).clip(min=0))


# The learned function: which items cover which, and what it is worth to cover an item.
#
#     coverage    f(A) = Σ_u α_u · log(1 + Σ_{a∈A} h_au)      the function of the paper
#     facility    f(A) = Σ_u α_u · max_{a∈A} h_au             facility location
#     with        h_au = scale · q_a · exp(−sharpness · |z_u − z_a|²)
#
# The columns u are the items of the pool: a set is worth much if everything important is near it.
# Nothing is tied to an item or a class, so that what is learned from some pools is used for
# others: the metric (z = x plus a low-rank map of x), the sharpness, the scale, and how the facts
# of an item decide what it is worth as a place to cover (α) and as an item that covers (q). Which
# of the two functions it is, and where it starts, is chosen before training.
#
# An encoder has the same function without diversity: each item is worth what it would cover
# alone, so that selecting is ranking. Same inputs, same weights, same loss.

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


# What selects without learning: facility location, features, k-means, k-center, MMR, top-k.
#
# Each peer has the same number of tries on the pools that choose, if it has anything to set. The
# two functions of apricot are computed by dgn: apricot compiles itself again for every pool, for
# seconds, and both select the same items (tests/experiments/test_diversity.py compares them).


class Peer(ABC):
    """A way to select; `try_one` draws other settings of it."""

    name: str
    is_random: bool = False

    @abstractmethod
    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        """k items, in order where there is one."""

    def try_one(self, random: np.random.Generator) -> Peer | None:
        """Another setting; None if there is nothing to set."""
        del random
        return None

    def settings(self) -> dict[str, Any]:
        """What was set, for the report."""
        return {}


@final
class Random(Peer):
    """Any k items."""

    name, is_random = "random", True

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        return random.permutation(pool.size)[:k].tolist()


@final
class Best(Peer):
    """The k items that seem worth most, each by itself."""

    name = "top-k by worth"

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        return np.argsort(-pool.worth, kind="stable")[:k].tolist()


@final
class First(Peer):
    """The first k sentences of a document."""

    name = "first k"

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        return list(range(min(k, pool.size)))


@final
@dataclass(frozen=True)
class Mmr(Peer):
    """Maximal marginal relevance of pyversity, on the worth of items."""

    diversity: float = 0.5
    name: str = field(default="MMR (pyversity)", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        worth = pool.worth / pool.worth.max()
        diversify: Any = pyversity.diversify
        found = diversify(
            pool.profiles, worth, k=min(k, pool.size), strategy="mmr", diversity=self.diversity
        )
        return found.indices.tolist()

    def try_one(self, random: np.random.Generator) -> Mmr:
        return Mmr(float(random.uniform()))

    def settings(self) -> dict[str, Any]:
        return {"diversity": self.diversity}


@final
@dataclass(frozen=True)
class Mrmr(Peer):
    """Minimal redundancy, maximal relevance: worth minus the mean correlation with the selected."""

    redundancy: float = 1.0
    name: str = field(default="mRMR", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        worth = (pool.worth / pool.worth.max()).astype(np.float64)
        chosen: list[int] = []
        for _ in range(min(k, pool.size)):
            score = worth - (self.redundancy * pool.profiles[:, chosen].mean(1) if chosen else 0)
            score[chosen] = -np.inf
            chosen.append(int(np.argmax(score)))
        return chosen

    def try_one(self, random: np.random.Generator) -> Mrmr:
        return Mrmr(float(random.uniform(0, 2)))

    def settings(self) -> dict[str, Any]:
        return {"redundancy": self.redundancy}


@final
@dataclass(frozen=True)
class Facilities(Peer):
    """Facility location, as in apricot, on similarities that fall with the distance."""

    sharpness: float = 4.0
    name: str = field(default="facility location (as apricot)", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        return _greedy(FacilityLocation(), self.similarity(pool), k)

    def similarity(self, pool: Pool) -> NDArray[np.float64]:
        """[items, items]."""
        return np.exp(-self.sharpness * pool.apart.astype(np.float64))

    def try_one(self, random: np.random.Generator) -> Facilities:
        return Facilities(math.exp(random.uniform(math.log(0.1), math.log(16))))

    def settings(self) -> dict[str, Any]:
        return {"sharpness": self.sharpness}


@final
@dataclass(frozen=True)
class FeatureSums(Peer):
    """The feature-based function, as in apricot, on the positive and negative parts of vectors."""

    concave: str = "sqrt"
    scale: float = 1.0
    name: str = field(default="feature-based (as apricot)", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        concave = Power(0.5) if self.concave == "sqrt" else Log1p()
        return _greedy(FeatureCoverage(None, concave), self.features(pool), k)

    def features(self, pool: Pool) -> NDArray[np.float64]:
        """[items, features]."""
        rows = pool.profiles.astype(np.float64)
        return self.scale * np.concatenate([rows.clip(min=0), (-rows).clip(min=0)], axis=1)

    def try_one(self, random: np.random.Generator) -> FeatureSums:
        concave = str(random.choice(["sqrt", "log"]))
        return FeatureSums(concave, math.exp(random.uniform(math.log(0.3), math.log(100))))

    def settings(self) -> dict[str, Any]:
        return {"concave": self.concave, "scale": self.scale}


@final
class Centers(Peer):
    """k-center: the item nearest to the middle, then each time the farthest from the selected."""

    name = "k-center (farthest first)"

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        chosen = [int(pool.apart.mean(axis=1).argmin())]
        nearest = pool.apart[chosen[0]].copy()
        for _ in range(min(k, pool.size) - 1):
            chosen.append(int(nearest.argmax()))
            nearest = np.minimum(nearest, pool.apart[chosen[-1]])
        return chosen


@final
class Means(Peer):
    """k-means: the item that is nearest to each of k centers."""

    name, is_random = "k-means (scikit-learn)", True

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        rows: Numbers = pool.profiles
        if k >= pool.size:
            return list(range(pool.size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer different items than centers
            kind: Any = KMeans
            found = kind(k, n_init=3, random_state=int(random.integers(2**31))).fit(rows)
        chosen: list[int] = []
        for center in cast("NDArray[Any]", found.cluster_centers_):
            order = ((rows - center) ** 2).sum(axis=1).argsort()
            chosen.append(next(int(i) for i in order if int(i) not in chosen))
        return chosen


def _greedy(objective: SetFunction, features: NDArray[np.float64], k: int) -> list[int]:
    found = list(cast("Selection", greedy(objective, features, min(k, len(features)))).indices)
    # Where nothing is gained any more, apricot goes on with any item.
    return found + [i for i in range(len(features)) if i not in found][: k - len(found)]


def peers_of(name: str) -> Sequence[Peer]:
    """The peers that make sense for a benchmark, by its name."""
    redundancy: Peer = Mrmr() if "features" in name else Mmr()
    first = [First()] if "sentences" in name else []
    return (Random(), *first, Best(), redundancy, Facilities(), FeatureSums(), Centers(), Means())


# One benchmark from the search of settings to corrected p-values.
#
# Settings are chosen by the mean score over all k on the pools that choose, from the same number
# of tries for every method: a trained one has `starts` tries of the function that it starts from
# and `tries` of its training, a peer has as many as both together. Trained methods are then
# trained with several seeds, and everything is scored on the reported pools.

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


# The tables of the results, from the numbers in diversity.json.

_INTRODUCTION = """# Where diversity is the label

Written by `python -m experiments.diversity`; docs/objectives.md says what to take. Means
over the reported pools, ± standard deviation over seeds where something is random. The columns on
the right say how far the DGN is ahead (behind, if negative), with the p-value of a test over seeds
and pools, corrected by Holm's method for all tests of the table; \\* below .05.
"""


def markdown(found: dict[str, Any]) -> str:
    """All benchmarks, a table each."""
    return "\n".join(
        [
            _INTRODUCTION,
            made_by("experiments/diversity.py") + "\n",
            *(_table(n, one) for n, one in found["benchmarks"].items()),
        ]
    )


def _table(name: str, one: dict[str, Any]) -> str:
    ks = [str(k) for k in one["ks"]]
    head = ["", *(f"k = {k}" for k in ks), *(f"DGN ahead, k = {k}" for k in ks)]
    lines = [
        f"## {name[0].upper()}{name[1:]}\n",
        f"{one['pools']} reported pools; {one['measure']}. `{one['command']}`; seeds "
        f"{one['seeds']}; {one['machine']}.\n",
        f"| {' | '.join(head)} |",
        f"| --- {'| --: ' * (2 * len(ks))}|",
    ]
    best = [max(method["mean"][at] for method in one["methods"].values()) for at in range(len(ks))]
    for method, numbers in one["methods"].items():
        cells = [_cell(numbers, at, best[at]) for at in range(len(ks))]
        tests = one["DGN minus"].get(method)
        cells += [_ahead(tests[k]) for k in ks] if tests else [""] * len(ks)
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(numbers: dict[str, Any], at: int, best: float) -> str:
    mean = numbers["mean"][at]
    shown = f"**{format_score(mean)}**" if mean == best else format_score(mean)
    by_seed = [row[at] for row in numbers["by seed"]]
    return shown if len(by_seed) < 2 else f"{shown} ±{format_score(statistics.stdev(by_seed))}"


def _ahead(test: dict[str, Any]) -> str:
    p = test["holm_p_value"]
    return format_difference(test["difference"]["mean"], p) + ("\\*" if p < 0.05 else "")


def benchmarks() -> dict[str, Benchmark]:
    """By the name of a command line."""
    return {
        "digits": Coresets("training examples (digits)", 5),
        "images": Collections(),
        "features": FeatureChoice(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks and write the numbers."""
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m experiments.diversity", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--only", nargs="*", choices=list(known), default=list(known))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=10, help="untrained functions to try")
    parser.add_argument("--tries", type=int, default=3, help="ways of training to try")
    parser.add_argument("--steps", type=int, default=80, help="of training")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    if os.environ.get("OMP_NUM_THREADS") != "1":
        print("tip: OMP_NUM_THREADS=1 makes the small regressions faster", file=sys.stderr)
    path = options.out / "diversity.json"
    # What was measured before stays, so that one benchmark can be repeated.
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"benchmarks": {}}
    for name in options.only:
        started = time.process_time()
        result = study(
            known[name],
            seeds=options.seeds,
            starts=options.starts,
            tries=options.tries,
            steps=options.steps,
            on_progress=lambda doing: print(doing, file=sys.stderr, flush=True),
        )
        found["benchmarks"][known[name].name] = {
            "command": f"python -m experiments.diversity --only {name} --seeds {options.seeds} "
            f"--starts {options.starts} --tries {options.tries} --steps {options.steps}",
            "seeds": f"1 to {options.seeds}; seed 0 chooses settings",
            "machine": f"{platform.machine()}, {options.threads} thread, "
            f"{time.process_time() - started:.0f} s of processor time, torch {torch.__version__}",
            **result.to_dict(),
        }
        options.out.mkdir(parents=True, exist_ok=True)
        found["made"] = made_by("experiments/diversity.py")
        write_atomically(path, json.dumps(found, indent=1) + "\n")
        write_atomically(options.out / "diversity.md", markdown(found))
        print(f"wrote {name} to {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
