"""The formula of the facets, for NumPy at run time and for torch in training.

    h[a, t] = scale_t · relu(sim[a, t] − θ_t) + bonuses     how well passage a covers word t
    α_t     = softplus(…)                                    how much word t weighs

Under FeatureCoverage this is coverage of the query, word by word: a second passage is worth what
the first did not say. Words of the title of its document count as covered by each passage. Next to
the words there are a few more non-negative features, from a small network that sees how a passage
compares with the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dgn.arrays import Array, Float, device_of, namespace
from dgn.encoders.facets.matching import Matches
from dgn.encoders.facets.weights import FacetWeights
from dgn.objectives import FeatureCoverage, Items

_LEAST_TARGET = 1e-3
"""A word that even its own match does not cover still has a target: it stays uncovered."""


@dataclass(frozen=True, eq=False)
class Facets:
    """What the passages offer; the first `tokens` features are the words of the query.

    Attributes:
        features: [batch, items, tokens + extra].
        weights: [batch, tokens + extra].
        target: [batch, tokens + extra], what a passage with the word itself would offer; 0 for
            the extra features and for padding.
    """

    features: Float[Array, "batch items features"]
    weights: Float[Array, "batch features"]
    target: Float[Array, "batch features"]


def encode(
    weights: FacetWeights, matches: Matches, drop: Callable[[Array], Array] = lambda x: x
) -> tuple[FeatureCoverage, Items]:
    """The set function of each query, and its passages as items.

    Args:
        weights: What was learned.
        matches: The queries and their passages.
        drop: Leaves out some units of the small network, in training.
    """
    facets = compute_facets(weights, matches, drop)
    objective = FeatureCoverage(facets.weights, target=facets.target)
    return objective, Items(facets.features, matches.mask)


def compute_facets(
    weights: FacetWeights, matches: Matches, drop: Callable[[Array], Array] = lambda x: x
) -> Facets:
    """The features of the passages, and how much each feature weighs; see `encode`."""
    xp = namespace(matches.cosine)
    words = _words(weights, matches)
    real = xp.astype(matches.real, matches.cosine.dtype)
    # A passage without a word offers nothing, wherever it stands.
    mask = xp.astype(matches.mask & (matches.length > 0), matches.cosine.dtype)
    alpha = words.alpha * real
    own = _coverage(weights, matches, words) * real[:, None, :] * mask[..., None]
    above, below = _neighbours(own, matches.follows)
    share = _softplus(weights.neighbours)
    covered = (own + share[0] * above + share[1] * below) * mask[..., None]
    target = xp.clip(words.full, min=_LEAST_TARGET) * real
    if not weights.output_weight.shape[0]:
        return Facets(covered, alpha, target)
    seen = _statistics(matches, words, alpha, covered, above, below)
    if weights.compare_bias.shape[0]:
        seen = xp.concat([seen, drop(_compared(weights, matches, words, alpha))], axis=-1)
    hidden = drop(_relu(seen @ weights.hidden + weights.hidden_bias))
    extra = _relu(hidden @ weights.output + weights.output_bias) * mask[..., None]
    extra_weight = _softplus(weights.output_weight)
    extra_weight = xp.broadcast_to(extra_weight, (alpha.shape[0], extra_weight.shape[0]))
    return Facets(
        xp.concat([covered, extra], axis=-1),
        xp.concat([alpha, extra_weight], axis=-1),
        xp.concat([target, xp.zeros_like(extra_weight)], axis=-1),
    )


@dataclass(frozen=True, eq=False)
class _Words:
    """The words of the queries, [batch, tokens] each.

    Attributes:
        ours: [batch, tokens, rank], the learned part of their vectors.
        theirs: [batch, items, tokens, rank], that of their matches' vectors.
        full: What a passage with the word itself would offer.
    """

    alpha: Array
    threshold: Array
    scale: Array
    facts: Array
    ours: Array
    theirs: Array
    full: Array


def _words(weights: FacetWeights, matches: Matches) -> _Words:
    xp = namespace(matches.cosine)
    vectors, facts = matches.words.vectors, matches.words.facts
    ones = xp.ones_like(facts[:, :1])
    known = xp.concat([vectors, facts, ones], axis=-1)
    correction = _take(known @ weights.word_correction, matches.query)
    in_queries, in_passages = vectors @ weights.query_space, vectors @ weights.passage_space
    itself = 1 + xp.sum(in_queries * in_passages, axis=-1, keepdims=True)
    threshold = weights.threshold + 0.1 * correction[..., 0]
    scale = xp.exp(weights.log_scale + correction[..., 1])
    full = scale * _relu(_take(itself, matches.query)[..., 0] - threshold)
    return _Words(
        alpha=_softplus(_take(known @ weights.word_weight, matches.query)[..., 0]),
        threshold=threshold,
        scale=scale,
        facts=_take(facts, matches.query),
        ours=_take(in_queries, matches.query),
        theirs=_take(in_passages, matches.matched),
        full=full + _softplus(weights.bonus)[0],
    )


def _coverage(weights: FacetWeights, matches: Matches, words: _Words) -> Array:
    """[batch, items, tokens], how far each passage covers each word of the query by itself."""
    xp = namespace(matches.cosine)
    similarity = matches.cosine
    if words.ours.shape[-1]:
        similarity = similarity + xp.sum(words.ours[:, None] * words.theirs, axis=-1)
    bonus = _softplus(weights.bonus)
    covered = (
        words.scale[:, None] * _relu(similarity - words.threshold[:, None])
        + bonus[0] * matches.exact
        + bonus[1] * matches.pair
        + bonus[2] * _next(matches.pair)
    )
    # All passages of a document share its title: it tells documents apart, not their passages.
    kept = xp.exp(-_softplus(weights.title) * matches.title)
    return covered * kept + words.full[:, None] * (1 - kept)


def _compared(weights: FacetWeights, matches: Matches, words: _Words, alpha: Array) -> Array:
    """[batch, items, units]: each word next to its match, averaged over the query by weight."""
    xp = namespace(matches.cosine)
    shape = (*matches.cosine.shape, words.ours.shape[-1])
    ours = xp.broadcast_to(words.ours[:, None], shape)
    idf = xp.broadcast_to(words.facts[:, None, :, :1], (*shape[:3], 1))
    flags = (matches.cosine, matches.exact, matches.pair, _next(matches.pair), matches.title)
    both = [ours, words.theirs, ours * words.theirs, idf, *(flag[..., None] for flag in flags)]
    units = _relu(xp.concat(both, axis=-1) @ weights.compare + weights.compare_bias)
    share = alpha / xp.clip(xp.sum(alpha, axis=-1, keepdims=True), min=1e-6)
    return xp.sum(units * share[:, None, :, None], axis=2)


def _statistics(
    matches: Matches, words: _Words, alpha: Array, covered: Array, above: Array, below: Array
) -> Array:
    """[batch, items, STATISTICS], each of about the size of 1."""
    xp = namespace(covered)
    alpha = alpha[:, None, :]
    untold = alpha * (1 - matches.title)
    number = words.facts[:, None, :, 2] * xp.astype(alpha > 0, alpha.dtype)
    said = xp.log1p(covered)
    relative = [
        _mean(said, alpha),
        _mean(matches.exact, alpha),
        _mean(said, untold),
        _mean(matches.exact, untold),
        _mean(matches.pair, alpha),
        _mean(_relu(matches.cosine), untold),
        _mean(matches.exact, number),
        _mean(xp.log1p(above), untold),
        _mean(xp.log1p(below), untold),
        xp.sum(said * alpha, axis=-1) / 5,
        matches.likeness,
    ]
    relative = xp.stack(relative, axis=-1)
    real = matches.mask[..., None]
    best = xp.max(xp.where(real, relative, xp.zeros_like(relative)), axis=1, keepdims=True)
    first, last = matches.position == 0, matches.position >= matches.document_size - 1
    like = matches.likeness
    basic = [
        xp.astype(first, like.dtype),
        xp.astype(last, like.dtype),
        xp.log1p(matches.position) / 2,
        xp.log1p(matches.length) / 3 - 1,
        xp.log1p(matches.document_size) / 2 - 1,
        like * 0 + xp.max(number, axis=-1),
        like * 0 + xp.sum(untold, axis=-1) / xp.clip(xp.sum(alpha, axis=-1), min=1e-6),
    ]
    return xp.concat([xp.stack(basic, axis=-1), relative, best - relative], axis=-1)


def _mean(values: Array, weights: Array) -> Array:
    """[batch, items], the weighted mean over the words."""
    xp = namespace(values)
    return xp.sum(values * weights, axis=-1) / xp.clip(xp.sum(weights, axis=-1), min=1e-3)


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
