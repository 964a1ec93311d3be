"""What the facets learn: the weights, how many there are, and where training starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array

WORD_FACTS = 4
"""What is known about a word besides its vector: its IDF, and the flags of WordTokens."""

STATISTICS = 7 + 2 * 11
"""What the small network sees of a passage: its own statistics, and the distance to the best."""

MATCH_FACTS = 6
"""What the comparison of a word with its match sees besides the two vectors."""


@dataclass(frozen=True)
class FacetSizes:
    """How large the encoder is.

    Args:
        dimension: The dimension of the word vectors.
        rank: The rank of the learned part of their similarity; 0 for cosines alone.
        comparison_units: The number of units that compare a word with its match.
        extra_features: The number of features besides the words.
        hidden: The number of hidden units of the network that computes them.
    """

    dimension: int = 256
    rank: int = 32
    comparison_units: int = 32
    extra_features: int = 16
    hidden: int = 64


@dataclass(frozen=True, eq=False)
class FacetWeights:
    """Everything that is learned; the names are those in the file of a model.

    Attributes:
        word_weight: [dimension + facts + 1, 1], how much a word weighs.
        word_correction: [dimension + facts + 1, 2], how its threshold and scale differ.
        threshold: [1], the similarity from which a word begins to be covered.
        log_scale: [1], how fast coverage grows with the similarity.
        bonus: [3], for the same spelling, for the same pair with the word before, and with the
            word after.
        title: [1], how much of a word is covered if the title contains it.
        neighbours: [2], the share of the coverage of the passages before and after.
        query_space: [dimension, rank], the learned part of the similarity, query side.
        passage_space: [dimension, rank], the same, passage side.
        compare: [3 · rank + facts, comparison_units].
        compare_bias: [comparison_units].
        hidden: [statistics + comparison_units, hidden].
        hidden_bias: [hidden].
        output: [hidden, extra_features].
        output_bias: [extra_features].
        output_weight: [extra_features], how much the extra features weigh.
    """

    word_weight: Array
    word_correction: Array
    threshold: Array
    log_scale: Array
    bonus: Array
    title: Array
    neighbours: Array
    query_space: Array
    passage_space: Array
    compare: Array
    compare_bias: Array
    hidden: Array
    hidden_bias: Array
    output: Array
    output_bias: Array
    output_weight: Array

    def equals(self, other: FacetWeights) -> bool:
        """Whether all weights are the same."""
        return all(np.array_equal(w, getattr(other, name)) for name, w in vars(self).items())

    @property
    def sizes(self) -> FacetSizes:
        """The sizes of an encoder with these weights."""
        dimension, rank = self.query_space.shape
        hidden, extra = self.output.shape
        return FacetSizes(dimension, rank, self.compare_bias.shape[0], extra, hidden)


def start_weights(sizes: FacetSizes, seed: int) -> FacetWeights:
    """Where training starts: cosines, IDF and titles; the network treats all passages alike."""
    random = np.random.default_rng(seed)
    facts = sizes.dimension + WORD_FACTS
    word_weight = np.zeros((facts + 1, 1))
    word_weight[sizes.dimension] = 0.7  # rarer words weigh more
    word_weight[-1] = 1.0
    compare_in = 3 * sizes.rank + MATCH_FACTS
    hidden_in = STATISTICS + sizes.comparison_units
    weights: dict[str, Any] = {
        "word_weight": word_weight,
        "word_correction": np.zeros((facts + 1, 2)),
        "threshold": np.array([0.4]),
        "log_scale": np.array([3.2]),
        "bonus": np.array([0.0, 0.0, 0.0]),
        "title": np.array([2.5]),
        "neighbours": np.array([-3.0, -3.0]),
        "query_space": _random(random, sizes.dimension, sizes.rank),
        # Zero at the start, so that the similarity is the cosine alone.
        "passage_space": np.zeros((sizes.dimension, sizes.rank)),
        "compare": _random(random, compare_in, sizes.comparison_units),
        "compare_bias": np.zeros(sizes.comparison_units),
        "hidden": _random(random, hidden_in, sizes.hidden),
        "hidden_bias": np.zeros(sizes.hidden),
        # The same for all passages, and above zero: a ReLU at or below zero would never learn.
        "output": np.zeros((sizes.hidden, sizes.extra_features)),
        "output_bias": np.full(sizes.extra_features, 0.1),
        "output_weight": np.zeros(sizes.extra_features),
    }
    return FacetWeights(**{name: np.asarray(w, np.float32) for name, w in weights.items()})


def untrained_weights(dimension: int = 256) -> FacetWeights:
    """The best weights that we know without training.

    There is no network; a few numbers were chosen in a small search on half of fever-eraser's
    training claims. Training starts elsewhere: a larger scale covers more at once, which selects
    slightly worse by itself and learns to select better.
    """
    start = start_weights(FacetSizes(dimension, 0, 0, 0, 0), seed=0)
    word_weight = start.word_weight.copy()
    word_weight[dimension] = 0.5
    chosen = {"threshold": [0.2], "log_scale": [1.0], "bonus": [-2, 0, 0], "neighbours": [-4, -4]}
    return replace(
        start,
        word_weight=word_weight,
        **{name: np.array(value, np.float32) for name, value in chosen.items()},
    )


def shapes_of(sizes: FacetSizes) -> dict[str, tuple[int, ...]]:
    """The shape of each of the weights."""
    start = start_weights(sizes, seed=0)
    return {one.name: tuple(getattr(start, one.name).shape) for one in fields(start)}


def _random(random: np.random.Generator, inputs: int, outputs: int) -> NDArray[Any]:
    return random.normal(size=(inputs, outputs)) / math.sqrt(max(inputs, 1))
