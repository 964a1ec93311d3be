"""A small generated problem: claims with several facets, on pages full of repetition.

It has the structure of the paper's problem and none of its text. Facets are random directions in
an embedding space. A claim is the sum of a few facets; a sentence expresses one facet, with some
strength. The inputs are those of the paper: the vector of the claim times that of each sentence,
element by element. A page contains

    gold          for each facet of the claim, the sentence that states it most strongly,
    redundant     further, weaker sentences on the same facets: relevant, but nothing new,
    irrelevant    sentences on facets that the claim does not have.

The repetitions of a strong facet outshine the only statement of a weak one, so that no score of a
sentence by itself can tell them apart: one has to know what was selected before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GOLD, REDUNDANT, IRRELEVANT, PADDING = "gold", "redundant", "irrelevant", "padding"


@dataclass(frozen=True)
class SyntheticConfig:
    """The parameters of the problem."""

    facets: int = 24
    dimensions: int = 64
    fewest_facets: int = 2
    most_facets: int = 5
    most_repetitions: int = 4
    irrelevant: int = 6
    noise: float = 0.2

    @property
    def longest_page(self) -> int:
        """The largest number of sentences of a page."""
        return self.most_facets * (1 + self.most_repetitions) + self.irrelevant


@dataclass(frozen=True, eq=False)
class SyntheticClaims:
    """Claims with their pages, padded.

    Attributes:
        x: [claims, sentences, dimensions], float32, claim times sentence.
        mask: [claims, sentences], False for padding.
        gold: [claims, sentences], True for gold.
        facet: [claims, sentences], the facet of each sentence; −1 for padding.
        claim_facets: For each claim, its facets.
    """

    x: NDArray[np.float32]
    mask: NDArray[np.bool_]
    gold: NDArray[np.bool_]
    facet: NDArray[np.int64]
    claim_facets: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.claim_facets)

    def role(self, claim: int, sentence: int) -> str:
        """The role of a sentence on its page: gold, redundant, irrelevant or padding."""
        if not self.mask[claim, sentence]:
            return PADDING
        if self.gold[claim, sentence]:
            return GOLD
        wanted = int(self.facet[claim, sentence]) in self.claim_facets[claim]
        return REDUNDANT if wanted else IRRELEVANT


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """One set of facets, and claims about them that share no page."""

    train: SyntheticClaims
    validation: SyntheticClaims
    test: SyntheticClaims


def make_problem(
    seed: int,
    *,
    train: int = 4000,
    validation: int = 500,
    test: int = 1000,
    config: SyntheticConfig | None = None,
) -> SyntheticProblem:
    """A problem with this many claims; the same seed gives the same problem."""
    config = config or SyntheticConfig()
    random = np.random.default_rng(seed)
    directions = random.standard_normal((config.facets, config.dimensions))
    made = [_make_claims(random, directions, count, config) for count in (train, validation, test)]
    return SyntheticProblem(*made)


class _Sentence(NamedTuple):
    facet: int
    strength: float
    is_gold: bool


def _make_claims(
    random: np.random.Generator, directions: NDArray[Any], count: int, config: SyntheticConfig
) -> SyntheticClaims:
    shape = (count, config.longest_page)
    x = np.zeros((*shape, config.dimensions), dtype=np.float32)
    mask, gold = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    facet = np.full(shape, -1)
    claim_facets: list[tuple[int, ...]] = []
    for row in range(count):
        wanted = _choose_facets(random, config)
        page = _write_page(random, wanted, config)
        facets = [sentence.facet for sentence in page]
        strengths = np.array([sentence.strength for sentence in page])
        sentences = strengths[:, None] * directions[facets]
        sentences += config.noise * random.standard_normal(sentences.shape)
        x[row, : len(page)] = directions[list(wanted)].sum(axis=0) * sentences
        mask[row, : len(page)] = True
        gold[row, : len(page)] = [sentence.is_gold for sentence in page]
        facet[row, : len(page)] = facets
        claim_facets.append(wanted)
    return SyntheticClaims(x, mask, gold, facet, tuple(claim_facets))


def _choose_facets(random: np.random.Generator, config: SyntheticConfig) -> tuple[int, ...]:
    count = random.integers(config.fewest_facets, config.most_facets + 1)
    return tuple(random.choice(config.facets, count, replace=False).tolist())


def _write_page(
    random: np.random.Generator, wanted: tuple[int, ...], config: SyntheticConfig
) -> list[_Sentence]:
    """The sentences of a page, in random order."""
    page: list[_Sentence] = []
    for facet in wanted:
        strength = _random_strength(random)
        page.append(_Sentence(facet, strength, is_gold=True))
        for _ in range(random.integers(0, config.most_repetitions + 1)):
            page.append(_Sentence(facet, strength * random.uniform(0.6, 0.9), is_gold=False))
    others = [facet for facet in range(config.facets) if facet not in wanted]
    for facet in random.choice(others, config.irrelevant).tolist():
        page.append(_Sentence(facet, _random_strength(random), is_gold=False))
    return [page[i] for i in random.permutation(len(page))]


def _random_strength(random: np.random.Generator) -> float:
    return 2.0 ** random.uniform(-1.0, 1.0)
