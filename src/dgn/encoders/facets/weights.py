"""What the facets learn: the weights, how many there are, and where training starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array

WORD_FACTS = 5
"""What is known about a word besides its vector: its IDF, and the kinds of WordTokens."""

STATISTICS = 28
"""What the network sees of a passage besides its vector."""


@dataclass(frozen=True)
class FacetSizes:
    """How large the encoder is.

    Args:
        dimension: The dimension of the word vectors.
        projection: The dimension in which the network sees the query and the passage as a whole.
        hidden: The number of hidden units of the network; 0 for no network.
        relevance: 1 if the relevance of a passage is one of its features, 0 if it is not. Without a
            network, it must come with the matches.
    """

    dimension: int = 256
    projection: int = 16
    hidden: int = 64
    relevance: int = 1


@dataclass(frozen=True, eq=False)
class FacetWeights:
    """Everything that is learned; the names are those in the file of a model.

    Numbers that must be positive are stored as x and used as log(1 + eˣ).

    Attributes:
        word_weight: [dimension + facts + 1, 1], how much a word weighs.
        threshold: [1], the similarity from which a word begins to be covered.
        log_scale: [1], how fast coverage grows with the similarity.
        bonus: [3], for the same word, for the same pair with the word before, and with the word
            after.
        title: [1], how much of a word is covered if the title contains it.
        neighbours: [2], the share of the coverage of the passages before and after.
        likeness: [2], how much the likeness of query and passage as a whole weighs, and from which
            cosine it counts.
        relevance_weight: [relevance], how much the relevance weighs.
        projection: [dimension, projection], what the network sees of vectors.
        hidden: [statistics + 3 · projection, hidden].
        hidden_bias: [hidden].
        output: [hidden, 1], the logit of the relevance.
        output_bias: [1].
    """

    word_weight: Array
    threshold: Array
    log_scale: Array
    bonus: Array
    title: Array
    neighbours: Array
    likeness: Array
    relevance_weight: Array
    projection: Array
    hidden: Array
    hidden_bias: Array
    output: Array
    output_bias: Array

    def equals(self, other: FacetWeights) -> bool:
        """Whether all weights are the same."""
        return all(np.array_equal(w, getattr(other, name)) for name, w in vars(self).items())

    @property
    def sizes(self) -> FacetSizes:
        """The sizes of an encoder with these weights."""
        dimension, projection = self.projection.shape
        return FacetSizes(
            dimension, projection, self.hidden_bias.shape[0], self.relevance_weight.shape[0]
        )


def start_weights(sizes: FacetSizes, seed: int) -> FacetWeights:
    """Where training starts: the untrained facets, and a network that finds nothing relevant."""
    random = np.random.default_rng(seed)
    word_weight = np.zeros((sizes.dimension + WORD_FACTS + 1, 1))
    # IDF, number, year, function word, question word, all words.
    word_weight[sizes.dimension :, 0] = [0.6, 0.0, 0.0, -2.5, -9.0, 1.0]
    inputs = STATISTICS + 3 * sizes.projection
    weights: dict[str, Any] = {
        "word_weight": word_weight,
        "threshold": [0.3],
        "log_scale": [math.log(12.0)],
        "bonus": [positive(0.1), positive(0.5), positive(0.5)],
        "title": [positive(2.5)],
        "neighbours": [positive(0.03), positive(0.03)],
        "likeness": [positive(0.1), 0.3],
        "relevance_weight": np.full(sizes.relevance, positive(0.2)),
        "projection": _random(random, sizes.dimension, sizes.projection),
        "hidden": _random(random, inputs, sizes.hidden),
        "hidden_bias": np.zeros(sizes.hidden),
        "output": np.zeros((sizes.hidden, 1)),
        "output_bias": [-2.0],
    }
    return FacetWeights(**{name: np.asarray(w, np.float32) for name, w in weights.items()})


def untrained_weights(dimension: int = 256) -> FacetWeights:
    """The facets without training: there is no network and no relevance.

    The few numbers were chosen on the training and dev parts of ten domains, which counted alike.
    """
    return start_weights(FacetSizes(dimension, 0, 0, 0), seed=0)


def shapes_of(sizes: FacetSizes) -> dict[str, tuple[int, ...]]:
    """The shape of each of the weights."""
    start = start_weights(sizes, seed=0)
    return {one.name: tuple(getattr(start, one.name).shape) for one in fields(start)}


def positive(value: float) -> float:
    """The x with log(1 + eˣ) = value: how a positive number is stored."""
    return math.log(math.expm1(value))


def _random(random: np.random.Generator, inputs: int, outputs: int) -> NDArray[Any]:
    return random.normal(size=(inputs, outputs)) / math.sqrt(max(inputs, 1))
