"""A generated problem with a verdict: every part of a claim matters, and the truth is known.

A claim consists of a few facets. The sentences of its page each express one facet and take a side,
yes or no. A claim is true if the page says yes to all of its facets; it is false if the page says
no to one of them. The page contains

    statements    for each facet of the claim, one or more sentences on the right side,
    mere talk     on a facet of the claim, in more words than the statements, but the side it takes
                  means nothing. A few further inputs, its manner, tell it from a statement.
    other         sentences on facets that the claim does not have; they take sides at random.

Half of the claims are true, and nothing in the claim says which, so that whoever reads no statement
of some facet can only guess about it. The evidence of a claim is a statement for each of its
facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dgn.learn.networks import FeatureEncoder, FeedForward, LearnedWeights
from dgn.learn.outcomes import EvidenceReader, Outcomes
from experiments.outcomes.methods import Split

FACETS, DIMENSIONS, MANNER = 24, 64, 4
FEWEST, MOST = 2, 4
_MOST_REPETITIONS, _MOST_TALK, _OTHER = 3, 2, 4
_NOISE, _SIDE_NOISE = 0.2, 0.3
SENTENCES = MOST * (1 + _MOST_REPETITIONS + _MOST_TALK) + _OTHER


@dataclass(frozen=True, eq=False)
class Claims:
    """Claims with their pages.

    Attributes:
        data: What the selector and the reader see, and the verdict: 1 for true.
        facet: [claims, sentences], which facet of the claim a sentence states, from 0; −1 for a
            sentence that states none.
        facets: [claims], the number of facets of each claim.
    """

    data: Outcomes
    facet: NDArray[np.int64]
    facets: NDArray[np.int64]

    def recall(self, selected: NDArray[np.int64]) -> float:
        """The share of a claim's facets that some selected sentence states, a mean over claims.

        Args:
            selected: [claims, k], sentences; −1 for none.
        """
        shares = np.zeros(len(self.facets))
        for row, (own, count) in enumerate(zip(selected, self.facets, strict=True)):
            stated = {int(f) for f in self.facet[row, own[own >= 0]]} - {-1}
            shares[row] = len(stated) / count
        return float(shares.mean())


class GeneratedProblem:
    """The problem as the methods are compared on it.

    Args:
        train: The number of claims to learn from.
        noise: The share of wrong verdicts among them and among those that choose.
    """

    name, k, ks = "generated", MOST, (1, 2, MOST)
    temperature, epochs, batch_size = 4.0, 10, 64

    def __init__(self, train: int = 2000, noise: float = 0.0) -> None:
        self._counts, self._noise = (train, max(200, train // 3), 1000), noise
        self._made: dict[int, tuple[Split, Split, Split]] = {}

    def splits(self, seed: int) -> tuple[Split, Split, Split]:
        """What learns, what chooses and what is reported; another seed has other facets."""
        if seed not in self._made:
            made = make_claims(seed, self._counts, noise=self._noise)
            train, choose, report = (Split(claims.data, claims.recall) for claims in made)
            self._made[seed] = train, choose, report
        return self._made[seed]

    def encoder(self, seed: int) -> nn.Module:
        """Coverage of claim ⊙ sentence; at its start, the manner of a sentence counts nothing."""
        torch.manual_seed(seed)
        layers = FeedForward((DIMENSIONS + MANNER, 96, DIMENSIONS))
        encoder = FeatureEncoder(layers, LearnedWeights(DIMENSIONS))
        encoder.start_as_identity()
        return encoder

    def reader(self, seed: int) -> nn.Module:
        """A reader of what is selected."""
        torch.manual_seed(seed + 1)
        return EvidenceReader(DIMENSIONS + MANNER + 1)


def make_claims(seed: int, counts: tuple[int, ...], *, noise: float = 0.0) -> tuple[Claims, ...]:
    """Sets of claims about the same facets, without a common page.

    Args:
        seed: The seed.
        counts: The number of claims of each set.
        noise: The share of verdicts of the first two sets, which learn and choose, that are wrong.
    """
    random = np.random.default_rng(seed)
    directions = random.standard_normal((FACETS, DIMENSIONS))
    talk = random.standard_normal(MANNER)
    return tuple(
        _claims(random, directions, talk, count, noise if number < 2 else 0.0)
        for number, count in enumerate(counts)
    )


def _claims(
    random: np.random.Generator,
    directions: NDArray[np.float64],
    talk: NDArray[np.float64],
    count: int,
    noise: float,
) -> Claims:
    shape = (count, SENTENCES)
    x = np.zeros((*shape, DIMENSIONS + MANNER), np.float32)
    side = np.zeros((*shape, 1), np.float32)
    mask, gold = np.zeros(shape, bool), np.zeros(shape, bool)
    facet = np.full(shape, -1)
    facets = random.integers(FEWEST, MOST + 1, count)
    verdict = random.integers(0, 2, count)
    for row in range(count):
        own = np.asarray(random.choice(FACETS, int(facets[row]), replace=False))
        denied = -1 if verdict[row] else int(random.integers(int(facets[row])))
        page = _page(random, own, denied)
        order: list[int] = random.permutation(len(page)).tolist()
        page = [page[place] for place in order]
        size = len(page)
        columns: list[NDArray[Any]] = [np.array(column) for column in zip(*page, strict=True)]
        topic, strength, says, number, is_talk, is_gold = columns
        sentences = strength[:, None] * directions[topic]
        sentences += _NOISE * random.standard_normal(sentences.shape)
        manner = is_talk[:, None] * talk + 0.3 * random.standard_normal((size, MANNER))
        x[row, :size, :DIMENSIONS] = directions[own].sum(axis=0) * sentences
        x[row, :size, DIMENSIONS:] = manner
        side[row, :size, 0] = says + _SIDE_NOISE * random.standard_normal(size)
        mask[row, :size], gold[row, :size], facet[row, :size] = True, is_gold, number
    wrong = random.random(count) < noise
    data = Outcomes(
        x=torch.from_numpy(x),
        passages=torch.from_numpy(np.concatenate([x, side], axis=2)),
        query=torch.zeros(count, 0),
        mask=torch.from_numpy(mask),
        outcome=torch.from_numpy(np.where(wrong, 1 - verdict, verdict)),
        gold=torch.from_numpy(gold),  # the clearest statement of each facet
    )
    return Claims(data, facet, facets)


_Sentence = tuple[int, float, int, int, bool, bool]
"""Topic, strength, side, the facet of the claim that it states, and whether it is talk or gold."""


def _page(random: np.random.Generator, own: NDArray[np.int64], denied: int) -> list[_Sentence]:
    page: list[_Sentence] = []
    for number, topic in enumerate(own.tolist()):
        says = -1 if number == denied else 1
        strength = _strength(random)
        page.append((topic, strength, says, number, False, True))
        for _ in range(random.integers(0, _MOST_REPETITIONS + 1)):
            weaker = strength * random.uniform(0.6, 0.9)
            page.append((topic, weaker, says, number, False, False))
        for _ in range(random.integers(0, _MOST_TALK + 1)):
            louder = strength * random.uniform(1.0, 1.5)
            page.append((topic, louder, _any_side(random), -1, True, False))
    others = [topic for topic in range(FACETS) if topic not in own]
    for topic in random.choice(others, _OTHER).tolist():
        page.append((topic, _strength(random), _any_side(random), -1, False, False))
    return page


def _strength(random: np.random.Generator) -> float:
    return float(2.0 ** random.uniform(-1.0, 1.0))


def _any_side(random: np.random.Generator) -> int:
    return int(random.choice([-1, 1]))
