"""What claim facets learn: the weights, how many there are, and where training starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array

WORD_FACTS = 4
STATISTICS = 7 + 2 * 11
"""What the small network sees of a sentence: itself, and how far it is from the page's best."""

MATCH_FACTS = 6
"""What the comparison of a word with its match sees beside the two vectors."""


@dataclass(frozen=True)
class FacetSizes:
    """How large the encoder is.

    dimension: of the word vectors. rank: of the learned part of their similarity; 0 for cosines
    alone. compared: units that compare a word with its match. features: beside the words.
    hidden: units of the network that makes them.
    """

    dimension: int = 256
    rank: int = 32
    compared: int = 32
    features: int = 16
    hidden: int = 64


@dataclass(frozen=True, eq=False)
class FacetWeights:
    """All that is learned. The names are those in a model's file.

    word_*: [dimension + facts, ·], what a word is worth before it is matched, and how its θ and
    scale differ. bonus: of a match in spelling, of a pair with the word before, with the word
    behind. title: how much of a word is given where the title says it. neighbours: what share of
    the sentences above and below is added. claim_space, sentence_space: [dimension, rank].
    """

    word_weight: Array
    word_correction: Array
    threshold: Array
    log_scale: Array
    bonus: Array
    title: Array
    neighbours: Array
    claim_space: Array
    sentence_space: Array
    compare: Array
    compare_bias: Array
    hidden: Array
    hidden_bias: Array
    output: Array
    output_bias: Array
    output_weight: Array


def start_weights(sizes: FacetSizes, seed: int) -> FacetWeights:
    """Where training starts: cosines, IDF and titles; the network gives all sentences the same."""
    random = np.random.default_rng(seed)
    facts = sizes.dimension + WORD_FACTS
    word_weight = np.zeros((facts + 1, 1))
    word_weight[sizes.dimension] = 0.7  # rarer words weigh more
    word_weight[-1] = 1.0
    compare_in = 3 * sizes.rank + MATCH_FACTS
    hidden_in = STATISTICS + sizes.compared
    weights: dict[str, Any] = {
        "word_weight": word_weight,
        "word_correction": np.zeros((facts + 1, 2)),
        "threshold": np.array([0.4]),
        "log_scale": np.array([3.2]),
        "bonus": np.array([0.0, 0.0, 0.0]),
        "title": np.array([2.5]),
        "neighbours": np.array([-3.0, -3.0]),
        "claim_space": _random(random, sizes.dimension, sizes.rank),
        # Nothing at the start, so that it is the cosine alone; learned from the claims' side.
        "sentence_space": np.zeros((sizes.dimension, sizes.rank)),
        "compare": _random(random, compare_in, sizes.compared),
        "compare_bias": np.zeros(sizes.compared),
        "hidden": _random(random, hidden_in, sizes.hidden),
        "hidden_bias": np.zeros(sizes.hidden),
        # Alike for all sentences, but not dead: a ReLU at or below zero would never learn.
        "output": np.zeros((sizes.hidden, sizes.features)),
        "output_bias": np.full(sizes.features, 0.1),
        "output_weight": np.zeros(sizes.features),
    }
    return FacetWeights(**{name: np.asarray(w, np.float32) for name, w in weights.items()})


def untrained_weights(dimension: int = 256) -> FacetWeights:
    """The best that we know without training: no network, and a few numbers chosen by a small
    search on half of fever-eraser's training claims.

    Training starts elsewhere: with a larger scale more is covered at once, which alone picks a
    little worse, but learns to pick better.
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
