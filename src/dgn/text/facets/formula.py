"""The formula of the facets, for NumPy and torch alike: what is learned, and what it computes.

For each word of the query, a passage offers what its nearest word, its title and its neighbours say
about it. Two further features stand for the passage as a whole: how like the query it is, and how
relevant a small network finds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Float, device_of, namespace
from dgn.core.functions import FeatureCoverage, Items
from dgn.text.facets.matching import IDF_MIDDLE, IDF_SPREAD, Matches

WORD_FACTS = 5
"""What is known about a word besides its vector: its IDF, and what kind of word it is."""

STATISTICS = 28
"""What the network sees of a passage besides its vector."""


WHOLE_SCALE = 3.0
"""The scale of the features of a passage as a whole; log(1 + scale) makes their best value 1."""

LONGEST_QUERY = 40.0


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


def spelling_weights(dimension: int = 256) -> FacetWeights:
    """The facets of languages other than English, whose vectors know the spelling of words alone.

    The threshold is the only number that differs from the untrained facets. It was chosen on the
    training parts of 17 sets in 15 languages, each language left out in turn
    (`python -m experiments.languages --choose`).
    """
    return replace(untrained_weights(dimension), threshold=np.array([0.4], np.float32))


def shapes_of(sizes: FacetSizes) -> dict[str, tuple[int, ...]]:
    """The shape of each of the weights."""
    start = start_weights(sizes, seed=0)
    return {one.name: tuple(getattr(start, one.name).shape) for one in fields(start)}


def positive(value: float) -> float:
    """The x with log(1 + eˣ) = value: how a positive number is stored."""
    return math.log(math.expm1(value))


def _random(random: np.random.Generator, inputs: int, outputs: int) -> NDArray[Any]:
    return random.normal(size=(inputs, outputs)) / math.sqrt(max(inputs, 1))


@dataclass(frozen=True, eq=False)
class Facets:
    """What the passages offer; the first `tokens` features are the words of the query.

    Attributes:
        features: [batch, items, tokens + whole].
        weights: [batch, tokens + whole].
        target: [batch, tokens + whole], what a passage with the word itself would offer; 0 for the
            other features and for padding.
        logits: [batch, items], the relevance; 0 if it is not known.
    """

    features: Float[Array, "batch items features"]
    weights: Float[Array, "batch features"]
    target: Float[Array, "batch features"]
    logits: Float[Array, "batch items"]

    def function(self, mask: Array) -> tuple[FeatureCoverage, Items]:
        """The set function of each query, and its passages as items; mask is [batch, items]."""
        return FeatureCoverage(self.weights, target=self.target), Items(self.features, mask)


def encode(
    weights: FacetWeights, matches: Matches, drop: Callable[[Array], Array] = lambda x: x
) -> tuple[FeatureCoverage, Items]:
    """The set function of each query, and its passages as items.

    Args:
        weights: What was learned.
        matches: The queries and their passages.
        drop: Leaves out some units of the network, in training.
    """
    return compute_facets(weights, matches, drop).function(matches.mask)


def compute_facets(
    weights: FacetWeights, matches: Matches, drop: Callable[[Array], Array] = lambda x: x
) -> Facets:
    """The features of the passages, and how much each feature weighs; see `encode`."""
    xp = namespace(matches.similarity)
    kind = matches.similarity.dtype
    real = xp.astype(matches.real, kind)
    # A passage without a word offers nothing, wherever it stands.
    mask = xp.astype(matches.mask & (matches.length > 0), kind)
    alpha = _word_weights(weights, matches, real)
    bonus = _softplus(weights.bonus)
    scale = xp.exp(weights.log_scale)
    full = scale * (1 + bonus[0])
    inside = real[:, None, :] * mask[..., None]
    own = (
        inside
        * scale
        * (
            _relu(matches.similarity - weights.threshold) / (1 - weights.threshold)
            + bonus[0] * matches.exact
            + bonus[1] * matches.pair
            + bonus[2] * _next(matches.pair)
        )
    )
    # All passages of a document share its title: it tells documents apart, not their passages.
    kept = xp.exp(-_softplus(weights.title) * matches.title)
    titled = inside * (own * kept + full * (1 - kept))
    above, below = _neighbours(titled, matches.follows)
    share = _softplus(weights.neighbours)
    covered = inside * (titled + share[0] * above + share[1] * below)
    best = xp.log1p(full)
    features, by_feature = [covered], [alpha / best]
    like = _softplus(weights.likeness[:1])
    near = _relu(matches.likeness - weights.likeness[1]) / (1 - weights.likeness[1])
    features.append((WHOLE_SCALE * near * mask)[..., None])
    whole_weight = xp.ones_like(alpha[:, :1]) / math.log1p(WHOLE_SCALE)
    by_feature.append(like * whole_weight)
    logits = xp.zeros_like(mask)
    if weights.relevance_weight.shape[0]:
        logits = matches.relevance * mask
        if weights.hidden_bias.shape[0]:
            levels = _Levels(alpha, own, titled, above, below, best)
            logits = _network(weights, matches, levels, mask, drop)
        features.append((WHOLE_SCALE * _sigmoid(logits) * mask)[..., None])
        by_feature.append(_softplus(weights.relevance_weight) * whole_weight)
    target = full * real
    others = len(features) - 1
    nothing = xp.zeros_like(alpha[:, :1])
    return Facets(
        xp.concat(features, axis=-1),
        xp.concat(by_feature, axis=-1),
        xp.concat([target, *[nothing] * others], axis=-1),
        logits,
    )


@dataclass(frozen=True, eq=False)
class _Levels:
    """How far the passages cover each word, [batch, items, tokens] each but alpha and best.

    Attributes:
        alpha: [batch, tokens], how much each word weighs.
        own: The passage by itself.
        titled: The passage with its title.
        above: The passage before it.
        below: The passage after it.
        best: log(1 + the level of a passage with the word itself).
    """

    alpha: Array
    own: Array
    titled: Array
    above: Array
    below: Array
    best: Array


def _word_weights(weights: FacetWeights, matches: Matches, real: Array) -> Array:
    """[batch, tokens], how much each word weighs; they sum to 1."""
    xp = namespace(real)
    facts = matches.facts
    idf = (facts[:, :1] - IDF_MIDDLE) / IDF_SPREAD
    known = [matches.vectors, idf, facts[:, 1:], xp.ones_like(idf)]
    logits = _take(xp.concat(known, axis=-1) @ weights.word_weight, matches.query)[..., 0]
    alpha = _softplus(logits) * real
    return alpha / xp.clip(xp.sum(alpha, axis=-1, keepdims=True), min=1e-9)


def _network(
    weights: FacetWeights,
    matches: Matches,
    levels: _Levels,
    mask: Array,
    drop: Callable[[Array], Array],
) -> Array:
    """[batch, items], the logits of the relevance."""
    xp = namespace(mask)
    query = (matches.about @ weights.projection)[:, None, :]
    passages = matches.passages @ weights.projection
    query = xp.broadcast_to(query, passages.shape)
    wholes = drop(xp.concat([query, passages, 4 * query * passages], axis=-1))
    seen = xp.concat([_statistics(matches, levels, mask), wholes], axis=-1)
    hidden = drop(_relu(seen @ weights.hidden + weights.hidden_bias))
    return ((hidden @ weights.output)[..., 0] + weights.output_bias) * mask


def _statistics(matches: Matches, levels: _Levels, mask: Array) -> Array:
    """[batch, items, STATISTICS], each of about the size of 1."""
    xp = namespace(mask)
    alpha = levels.alpha[:, None, :]
    untold = alpha * (1 - matches.title)
    left = xp.clip(xp.sum(untold, axis=-1), min=0.05)
    number, question = (matches.facts[:, column : column + 1] for column in (1, 4))
    number = alpha * _take(number, matches.query)[:, None, :, 0]
    asks = xp.max(_take(question, matches.query)[..., 0] * (alpha[:, 0] > 0), axis=-1)

    def share(level: Array) -> Array:
        return xp.sum(xp.log1p(level) / levels.best * alpha, axis=-1)

    relative = xp.stack(
        [
            share(levels.titled),
            xp.sum(matches.exact * alpha, axis=-1),
            xp.sum(xp.log1p(levels.own) / levels.best * untold, axis=-1) / left,
            xp.sum(matches.exact * untold, axis=-1) / left,
            xp.sum(matches.pair * alpha, axis=-1),
            matches.likeness,
            matches.precision,
            matches.numbers,
        ],
        axis=-1,
    )
    # A line of numbers alone, such as "17", says nothing about the others.
    compared = mask * xp.astype(matches.numbers < 1, mask.dtype)
    best = xp.max(relative * compared[..., None], axis=1, keepdims=True)
    like = matches.likeness
    first = xp.astype(matches.position == 0, like.dtype) * matches.is_ordered
    words = xp.sum(xp.astype(matches.real, like.dtype), axis=-1)
    basic = [
        xp.log1p(matches.length) / 3 - 1,
        first,
        matches.is_ordered,
        xp.log1p(matches.position) / 2 * matches.is_ordered,
        xp.sum(matches.similarity * number, axis=-1),
        xp.astype(matches.numbers > 0, like.dtype),
        left,
        share(levels.above),
        share(levels.below),
        like * 0 + asks[:, None],
        like * 0 + xp.clip(words, max=LONGEST_QUERY)[:, None] / 20,
        like * 0 + xp.max(xp.sum(matches.title * alpha, axis=-1), axis=1, keepdims=True),
    ]
    basic = xp.stack(basic, axis=-1)
    return xp.concat([basic, relative, -_relu(best - relative)], axis=-1) * mask[..., None]


def _neighbours(covered: Array, follows: Array) -> tuple[Array, Array]:
    """What the passages directly before and directly after cover."""
    xp = namespace(covered)
    nothing = xp.zeros_like(covered[:, :1])
    above = xp.concat([nothing, covered[:, :-1]], axis=1) * follows[..., None]
    below = xp.concat([(covered * follows[..., None])[:, 1:], nothing], axis=1)
    return above, below


def _next(flags: Array) -> Array:
    """The flags of the next word; none after the last."""
    xp = namespace(flags)
    return xp.concat([flags[..., 1:], xp.zeros_like(flags[..., :1])], axis=-1)


def _take(table: Array, indices: Array) -> Array:
    """table[indices], for indices of any shape."""
    xp = namespace(table)
    flat = xp.take(table, xp.reshape(indices, (-1,)), axis=0)
    return xp.reshape(flat, (*indices.shape, table.shape[-1]))


def _relu(x: Array) -> Array:
    return x * (x > 0)


def _softplus(x: Array) -> Array:
    """log(1 + eˣ), which is positive and smooth."""
    xp = namespace(x)
    return xp.logaddexp(x, xp.zeros((), dtype=x.dtype, device=device_of(x)))


def _sigmoid(x: Array) -> Array:
    """1 / (1 + e⁻ˣ), without overflow."""
    xp = namespace(x)
    return 0.5 * (xp.tanh(0.5 * x) + 1)
