"""The formula of the facets, for NumPy at run time and for torch in training.

    h[a, t] = scale · (relu(sim[a, t] − θ) / (1 − θ) + bonuses)    how well passage a covers word t
    α_t     = softplus(…), with Σ_t α_t = 1                       how much word t weighs

Under FeatureCoverage this is coverage of the query, word by word: a second passage is worth what
the first did not say. Words of the title of its document count as covered by each passage. Two more
features stand next to the words: how like the query the passage is as a whole, and how relevant it
is. They are under the same concave function, so that the words decide late selections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dgn.arrays import Array, Float, device_of, namespace
from dgn.encoders.facets.matching import Matches
from dgn.encoders.facets.weights import FacetWeights
from dgn.objectives import FeatureCoverage, Items

WHOLE_SCALE = 3.0
"""The scale of the features of a passage as a whole; log(1 + scale) makes their best value 1."""

LONGEST_QUERY = 40.0


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


def encode(
    weights: FacetWeights, matches: Matches, drop: Callable[[Array], Array] = lambda x: x
) -> tuple[FeatureCoverage, Items]:
    """The set function of each query, and its passages as items.

    Args:
        weights: What was learned.
        matches: The queries and their passages.
        drop: Leaves out some units of the network, in training.
    """
    facets = compute_facets(weights, matches, drop)
    objective = FeatureCoverage(facets.weights, target=facets.target)
    return objective, Items(facets.features, matches.mask)


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
            said = _Said(alpha, own, titled, above, below, best)
            logits = _network(weights, matches, said, mask, drop)
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
class _Said:
    """What the passages say of each word, [batch, items, tokens] each but alpha and best.

    Attributes:
        alpha: [batch, tokens], how much each word weighs.
        own: What the passage says by itself.
        titled: The same with what its title says.
        above: What the passage before says.
        below: What the passage after says.
        best: log(1 + what a passage with the word itself says).
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
    vectors, facts = matches.words.vectors, matches.words.facts
    known = xp.concat([vectors, facts, xp.ones_like(facts[:, :1])], axis=-1)
    alpha = _softplus(_take(known @ weights.word_weight, matches.query)[..., 0]) * real
    return alpha / xp.clip(xp.sum(alpha, axis=-1, keepdims=True), min=1e-9)


def _network(
    weights: FacetWeights,
    matches: Matches,
    said: _Said,
    mask: Array,
    drop: Callable[[Array], Array],
) -> Array:
    """[batch, items], the logits of the relevance."""
    xp = namespace(mask)
    query = (matches.about @ weights.projection)[:, None, :]
    passages = matches.passages @ weights.projection
    query = xp.broadcast_to(query, passages.shape)
    wholes = drop(xp.concat([query, passages, 4 * query * passages], axis=-1))
    seen = xp.concat([_statistics(matches, said, mask), wholes], axis=-1)
    hidden = drop(_relu(seen @ weights.hidden + weights.hidden_bias))
    return ((hidden @ weights.output)[..., 0] + weights.output_bias) * mask


def _statistics(matches: Matches, said: _Said, mask: Array) -> Array:
    """[batch, items, STATISTICS], each of about the size of 1."""
    xp = namespace(mask)
    alpha = said.alpha[:, None, :]
    untold = alpha * (1 - matches.title)
    left = xp.clip(xp.sum(untold, axis=-1), min=0.05)
    number, question = (matches.words.facts[:, place : place + 1] for place in (1, 4))
    number = alpha * _take(number, matches.query)[:, None, :, 0]
    asks = xp.max(_take(question, matches.query)[..., 0] * (alpha[:, 0] > 0), axis=-1)

    def share(level: Array) -> Array:
        return xp.sum(xp.log1p(level) / said.best * alpha, axis=-1)

    relative = xp.stack(
        [
            share(said.titled),
            xp.sum(matches.exact * alpha, axis=-1),
            xp.sum(xp.log1p(said.own) / said.best * untold, axis=-1) / left,
            xp.sum(matches.exact * untold, axis=-1) / left,
            xp.sum(matches.pair * alpha, axis=-1),
            matches.likeness,
            matches.precision,
            matches.numbers,
        ],
        axis=-1,
    )
    best = xp.max(relative * mask[..., None], axis=1, keepdims=True)
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
        share(said.above),
        share(said.below),
        like * 0 + asks[:, None],
        like * 0 + xp.clip(words, max=LONGEST_QUERY)[:, None] / 20,
        like * 0 + xp.max(xp.sum(matches.title * alpha, axis=-1), axis=1, keepdims=True),
    ]
    basic = xp.stack(basic, axis=-1)
    return xp.concat([basic, relative, relative - best], axis=-1) * mask[..., None]


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


def _take(table: Array, places: Array) -> Array:
    """table[places], for places of any shape."""
    xp = namespace(table)
    flat = xp.take(table, xp.reshape(places, (-1,)), axis=0)
    return xp.reshape(flat, (*places.shape, table.shape[-1]))


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
