"""FEVER: SUPPORTS or REFUTES is all that the methods learn from; evidence labels only report.

The selector sees MiniLM's vectors of claim and sentence, multiplied, and 14 numbers about how their
words agree; at the start it is greedy coverage of the product alone. The reader sees of a sentence
what stands in it in place of the claim's word that it covers worst, and the same numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dgn.evaluation.metrics import scores_at
from dgn.learn.networks import FeatureEncoder, FeedForward, LearnedWeights
from dgn.learn.outcomes import EvidenceReader, Outcomes
from experiments.outcomes.methods import Split
from experiments.outcomes.pairs import SCALARS, Pairs, read_pairs

WIDTH, SEEN = 96, 64
"""Principal components: of sentences for the selector, of words for the reader."""

_SCALE = 30.0
_CHOOSES = 5
_ABOUT_CLAIM = (5, 8)
"""The scalars that say something about the claim alone: whether it has numbers, and denies."""

_Project = Callable[[NDArray[Any]], NDArray[np.float32]]


@final
class FeverProblem:
    """The problem as the methods are compared on it.

    A fifth of the pages of the training claims chooses; dev, on other pages, is reported.

    Args:
        splits: What learns, what chooses and what is reported.
    """

    name, k, ks = "fever", 5, (1, 3, 5)
    temperature, epochs, batch_size = 1.0, 6, 64

    def __init__(self, splits: tuple[Split, Split, Split]) -> None:
        self._splits = splits

    @classmethod
    def load(cls, data: Path, cache: Path) -> Self:
        """Read train and dev; vectors are computed once and kept in the cache."""
        train, dev = (
            read_pairs(data / f"{n}.jsonl", data / "docs", cache) for n in ("train", "dev")
        )
        chooses = np.array([zlib.crc32(page.encode()) % _CHOOSES == 0 for page in train.page])
        learns = np.repeat(~chooses, train.items)
        views = (
            principal_view(train.sentence[learns], WIDTH, centre=False),
            principal_view(train.worst[learns], SEEN),
            principal_view(train.instead[learns], SEEN),
            principal_view(train.claim[~chooses], SEEN),
        )
        everything, reported = outcomes_of(train, views), outcomes_of(dev, views)
        own, others = (torch.from_numpy(np.flatnonzero(some)) for some in (~chooses, chooses))
        return cls(
            (_split(everything.rows(own)), _split(everything.rows(others)), _split(reported))
        )

    def splits(self, seed: int) -> tuple[Split, Split, Split]:
        """The same claims for every seed."""
        del seed
        return self._splits

    def encoder(self, seed: int) -> nn.Module:
        """Coverage of claim ⊙ sentence; at its start, the further numbers count nothing."""
        torch.manual_seed(seed)
        encoder = FeatureEncoder(
            FeedForward((WIDTH + SCALARS, WIDTH + 2 * SCALARS, WIDTH)), LearnedWeights(WIDTH)
        )
        encoder.start_as_identity()
        return encoder

    def reader(self, seed: int) -> nn.Module:
        """A reader of what is selected."""
        torch.manual_seed(seed + 1)
        return EvidenceReader(4 * SEEN + SCALARS, SEEN + len(_ABOUT_CLAIM), dropout=0.2)


def _split(data: Outcomes) -> Split:
    return Split(data, partial(_recall, gold=cast("Tensor", data.gold)))


def _recall(selected: NDArray[np.int64], gold: Tensor) -> float:
    return scores_at(selected.shape[1], selected, gold.numpy()).recall


def principal_view(vectors: NDArray[np.float16], width: int, *, centre: bool = True) -> _Project:
    """Principal components of what learns; with a centre, each of them has the variance 1."""
    rows = np.random.default_rng(0).permutation(len(vectors))[:8000]
    some = vectors[rows].astype(np.float64)
    mean = some.mean(axis=0) if centre else np.zeros(some.shape[1])
    _, sizes, axes = np.linalg.svd(some - mean, full_matrices=False)
    turn = axes[:width].T
    if centre:
        turn = turn / (sizes[:width] / np.sqrt(len(some)))

    def project(vectors: NDArray[Any]) -> NDArray[np.float32]:
        return ((vectors.astype(np.float32) - mean.astype(np.float32)) @ turn).astype(np.float32)

    return project


def outcomes_of(pairs: Pairs, views: tuple[_Project, ...]) -> Outcomes:
    """The claims as tensors.

    Args:
        pairs: The claims, and the sentences of their pages.
        views: Of sentences, of the claim's words, of the sentences' words, and of claims.
    """
    sentence, worst, instead, claim = views
    row = np.repeat(np.arange(len(pairs.items)), pairs.items)
    place = np.arange(len(row)) - np.repeat(np.cumsum(pairs.items) - pairs.items, pairs.items)
    scalars = pairs.scalars.astype(np.float32)
    product = _SCALE * sentence(pairs.claim)[row] * sentence(pairs.sentence)
    one, other = worst(pairs.worst), instead(pairs.instead)
    seen = np.concatenate([one, other, one * other, np.abs(one - other), scalars], axis=1)
    first = np.cumsum(pairs.items) - pairs.items
    asked = np.concatenate([claim(pairs.claim), scalars[first][:, list(_ABOUT_CLAIM)]], axis=1)

    def padded(values: NDArray[Any]) -> Tensor:
        full = np.zeros((len(pairs.items), int(pairs.items.max()), *values.shape[1:]), values.dtype)
        full[row, place] = values
        return torch.from_numpy(full)

    return Outcomes(
        x=padded(np.concatenate([product, scalars], axis=1)),
        passages=padded(seen),
        query=torch.from_numpy(asked),
        mask=padded(np.ones(len(row), bool)),
        outcome=torch.from_numpy(pairs.true),
        gold=padded(pairs.gold),
    )
