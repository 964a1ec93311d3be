"""Choosing training examples before anybody has labelled them, and images of a collection.

A pool has a few frequent classes and some rare ones, as a stream of unlabelled data has. The chosen
examples are labelled, a ridge classifier learns from them, and its accuracy on balanced test
examples is the measure. The classes of the reported pools occur in no other part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import Tensor

from dgn.learn.layers import Unfolded
from dgn.text import open_vectors
from dgn.text.vectors import unit_rows
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
from experiments.domains import english_sets, read_domain

_SHARPNESS = 8.0
_UNLABELLED = 1e-3
_RIDGE = 0.1
_POOL, _VALIDATION, _TEST_PER_CLASS = 60, 60, 40
_PASSAGES_PER_KIND = 400


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


@cache
def kinds_of_text(part: str) -> Examples:
    """Passages of ../shared/data/evidence; the class is the kind of text they come from.

    Of the 32 English kinds, 12 learn, 8 choose and 12 are reported.
    """
    names = english_sets()
    order = np.random.default_rng(0).permutation(len(names))
    kinds: list[int] = np.split(order, [12, 20])[PARTS.index(part)].tolist()
    vectors = open_vectors("wordllama")
    texts: list[str] = []
    labels: list[int] = []
    for kind in kinds:
        random = np.random.default_rng([1, kind])
        domain = read_domain(names[kind])
        rows = (*domain.train, *domain.dev)
        found = sorted({p.text for row in rows for p in row.query.passages if len(p.text) > 30})
        most = min(_PASSAGES_PER_KIND, len(found))
        texts += [found[i] for i in random.choice(len(found), most, replace=False)]
        labels += [kind] * most
    return Examples(unit_rows(np.asarray(vectors.pooled(texts), np.float32)), np.array(labels))


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
        examples = digits(part) if "digits" in self.name else kinds_of_text(part)
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
