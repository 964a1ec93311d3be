"""Claim facets: the features are the claim's words, and a sentence offers what it says of them.

    h[a, t] = scale_t · relu(sim[a, t] − θ_t) + bonuses     how well sentence a covers word t
    α_t     = softplus(…)                                    how much word t needs to be covered

Under FeatureCoverage this is coverage of the claim, word by word: a second sentence is worth what
the first did not say. What the title of its own page says, every sentence says for nothing. Beside
the words stand a few more non-negative features, of a small network that sees how a sentence
compares with the others.

Written against the array API: NumPy selects with it, torch trains through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dgn.arrays import Array, Float, device_of, namespace
from dgn.encoders.facet_weights import FacetWeights
from dgn.encoders.matches import Matches


@dataclass(frozen=True, eq=False)
class Facets:
    """What the sentences offer. features: [batch, items, tokens + features]; weights: [batch,
    tokens + features]. The first `tokens` features are the claim's words.

    full: [batch, tokens], what a sentence with the very word would offer.
    """

    features: Float[Array, "batch items features"]
    weights: Float[Array, "batch features"]
    full: Float[Array, "batch tokens"]


def encode(
    weights: FacetWeights, matches: Matches, drop: Callable[[Array], Array] = lambda x: x
) -> Facets:
    """The features of the sentences, and how much each of them weighs.

    drop: leaves out some of the small network's units; in training only.
    """
    xp = namespace(matches.cosine)
    words = _words(weights, matches)
    real = xp.astype(matches.real, matches.cosine.dtype)
    # A sentence without a word says nothing, wherever it stands.
    mask = xp.astype(matches.mask & (matches.length > 0), matches.cosine.dtype)
    alpha = words.alpha * real
    own = _coverage(weights, matches, words) * real[:, None, :] * mask[..., None]
    above, below = _neighbours(own, matches.follows)
    share = _softplus(weights.neighbours)
    covered = (own + share[0] * above + share[1] * below) * mask[..., None]
    if not weights.output_weight.shape[0]:
        return Facets(covered, alpha, words.full)
    seen = _statistics(matches, words, alpha, covered, above, below)
    if weights.compare_bias.shape[0]:
        seen = xp.concat([seen, drop(_compared(weights, matches, words, alpha))], axis=-1)
    hidden = drop(_relu(seen @ weights.hidden + weights.hidden_bias))
    more = _relu(hidden @ weights.output + weights.output_bias) * mask[..., None]
    beside = _softplus(weights.output_weight)
    beside = xp.broadcast_to(beside, (alpha.shape[0], beside.shape[0]))
    return Facets(
        xp.concat([covered, more], axis=-1),
        xp.concat([alpha, beside], axis=-1),
        words.full,
    )


@dataclass(frozen=True, eq=False)
class _Words:
    """The claims' words, [batch, tokens] each; `ours` and `theirs` are [batch, (items,) tokens,
    rank], the learned part of the words' and of their matches' vectors. full: what a sentence with
    the very word would offer.
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
    correction = _take(known @ weights.word_correction, matches.claim)
    in_claims, in_sentences = vectors @ weights.claim_space, vectors @ weights.sentence_space
    itself = 1 + xp.sum(in_claims * in_sentences, axis=-1, keepdims=True)
    threshold = weights.threshold + 0.1 * correction[..., 0]
    scale = xp.exp(weights.log_scale + correction[..., 1])
    full = scale * _relu(_take(itself, matches.claim)[..., 0] - threshold)
    return _Words(
        alpha=_softplus(_take(known @ weights.word_weight, matches.claim)[..., 0]),
        threshold=threshold,
        scale=scale,
        facts=_take(facts, matches.claim),
        ours=_take(in_claims, matches.claim),
        theirs=_take(in_sentences, matches.matched),
        full=full + _softplus(weights.bonus)[0],
    )


def _coverage(weights: FacetWeights, matches: Matches, words: _Words) -> Array:
    """[batch, items, tokens], what each sentence says itself of each word of the claim."""
    xp = namespace(matches.cosine)
    similarity = matches.cosine
    if words.ours.shape[-1]:
        similarity = similarity + xp.sum(words.ours[:, None] * words.theirs, axis=-1)
    behind = _shifted(matches.pair, -1)
    bonus = _softplus(weights.bonus)
    covered = (
        words.scale[:, None] * _relu(similarity - words.threshold[:, None])
        + bonus[0] * matches.exact
        + bonus[1] * matches.pair
        + bonus[2] * behind
    )
    # What the title of its page says, a sentence says too, for nothing: all sentences of a page
    # alike, so that it tells pages apart, and not the sentences of one.
    kept = xp.exp(-_softplus(weights.title) * matches.title)
    return covered * kept + words.full[:, None] * (1 - kept)


def _compared(weights: FacetWeights, matches: Matches, words: _Words, alpha: Array) -> Array:
    """[batch, items, units]: each word beside its match, averaged over the claim by weight."""
    xp = namespace(matches.cosine)
    shape = (*matches.cosine.shape, words.ours.shape[-1])
    ours = xp.broadcast_to(words.ours[:, None], shape)
    rarity = xp.broadcast_to(words.facts[:, None, :, :1], (*shape[:3], 1))
    flags = (matches.cosine, matches.exact, matches.pair, _shifted(matches.pair, -1), matches.title)
    beside = [ours, words.theirs, ours * words.theirs, rarity, *(flag[..., None] for flag in flags)]
    units = _relu(xp.concat(beside, axis=-1) @ weights.compare + weights.compare_bias)
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
    first, last = matches.place == 0, matches.place >= matches.page_size - 1
    like = matches.likeness
    basic = [
        xp.astype(first, like.dtype),
        xp.astype(last, like.dtype),
        xp.log1p(matches.place) / 2,
        xp.log1p(matches.length) / 3 - 1,
        xp.log1p(matches.page_size) / 2 - 1,
        like * 0 + xp.max(number, axis=-1),
        like * 0 + xp.sum(untold, axis=-1) / xp.clip(xp.sum(alpha, axis=-1), min=1e-6),
    ]
    return xp.concat([xp.stack(basic, axis=-1), relative, best - relative], axis=-1)


def _mean(values: Array, weights: Array) -> Array:
    """[batch, items], over the words, by weight."""
    xp = namespace(values)
    return xp.sum(values * weights, axis=-1) / xp.clip(xp.sum(weights, axis=-1), min=1e-3)


def _neighbours(covered: Array, follows: Array) -> tuple[Array, Array]:
    """What the sentences right above and right below say."""
    xp = namespace(covered)
    nothing = xp.zeros_like(covered[:, :1])
    above = xp.concat([nothing, covered[:, :-1]], axis=1) * follows[..., None]
    below = xp.concat([(covered * follows[..., None])[:, 1:], nothing], axis=1)
    return above, below


def _shifted(flags: Array, by: int) -> Array:
    """The flags of the next word, for by = −1; none behind the last."""
    xp = namespace(flags)
    return xp.concat([flags[..., -by:], xp.zeros_like(flags[..., :-by])], axis=-1)


def _take(table: Array, places: Array) -> Array:
    """table[places], for places of any shape."""
    xp = namespace(table)
    flat = xp.take(table, xp.reshape(places, (-1,)), axis=0)
    return xp.reshape(flat, (*places.shape, table.shape[-1]))


def _relu(x: Array) -> Array:
    return x * (x > 0)


def _softplus(x: Array) -> Array:
    """log(1 + eˣ): above 0, and smooth."""
    xp = namespace(x)
    return xp.logaddexp(x, xp.zeros((), dtype=x.dtype, device=device_of(x)))
