"""Choosing features: few columns of a table with which a classifier is nearly as good as with all.

A pool is a small labelled sample; its items are the columns, their vectors the standardized values.
A column is redundant if another one is correlated with it, with either sign. The measure is the
accuracy, on other rows, of a ridge classifier that learned from the sample with the selected
columns. Training sees the digits 1, 3, 5, 7 and 9; reported are the other digits, and two data sets
from another world.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_selection import f_classif  # pyright: ignore[reportUnknownVariableType]
from sklearn.metrics import mutual_info_score  # pyright: ignore[reportUnknownVariableType]
from torch import Tensor

from dgn.learn.layers import Unfolded
from experiments.diversity.coresets import Examples, digits
from experiments.diversity.pools import (
    DENSITY_FACTS,
    PARTS,
    Benchmark,
    Numbers,
    Pool,
    densities,
    distances,
    memberships,
    ridge_accuracy,
    standardized,
)

_SAMPLE, _MOST_TESTS, _RIDGE = 60, 300, 1.0
_SHARPNESS = 4.0
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
        return ridge_accuracy(own, table.sample.labels, other, table.test.labels, _RIDGE)

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
            pull = torch.exp(-_SHARPNESS * apart.clamp(min=0) / k) * (1 - itself)
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
