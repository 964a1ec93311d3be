"""The facets' forward: one formula for NumPy and torch, blind to padding, differentiable."""

import dataclasses

import numpy as np
import pytest
import torch

from dgn.encoders import (
    FacetSizes,
    FacetWeights,
    Matcher,
    Matches,
    Query,
    as_batch,
    encode,
    start_weights,
    untrained_weights,
    word_table,
)
from dgn.encoders.facet_weights import shapes_of
from dgn.maximizers import greedy
from dgn.objectives import FeatureCoverage, Items
from dgn.text.rarity import default_rarity
from dgn.text.word_tokens import WordReader
from dgn.text.wordllama import WordLlamaVectors

SIZES = FacetSizes(rank=4, compared=5, features=3, hidden=7)
QUERIES = [
    Query.of_page(
        "The ship sank twice in 1901.", ["It sank in 1901.", "", "It sank twice."], "Ship"
    ),
    Query.of_page("Bees see colour", ["They see blue."]),
    Query.of_page("Bees do not fly", ["Bees fly.", "Cows moo.", "Flying bees hum.", "Hm."], "Bees"),
]


GRADIENTS = Query.of_page("The ship sank twice", ["The ship sank.", "It sank twice."], "The ship")


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(WordReader(WordLlamaVectors(), default_rarity()))


def learned(seed: int = 0, sizes: FacetSizes = SIZES) -> FacetWeights:
    """Weights that have left the start, all of them at work."""
    random = np.random.default_rng(seed)
    start = start_weights(sizes, seed)
    return FacetWeights(
        **{
            name: (w + 0.2 * random.standard_normal(w.shape)).astype(np.float32)
            for name, w in vars(start).items()
        }
    )


def batch_of(matcher: Matcher, queries: list[Query]) -> Matches:
    claims, words = matcher.match(queries)
    return as_batch(claims, word_table(words))


def in_torch(weights: FacetWeights, dtype: torch.dtype = torch.float32) -> FacetWeights:
    return FacetWeights(**{n: torch.from_numpy(w).to(dtype) for n, w in vars(weights).items()})


def test_features_are_finite_and_not_negative(matcher: Matcher) -> None:
    batch = batch_of(matcher, QUERIES)
    facets = encode(learned(), batch)
    assert facets.features.dtype == facets.weights.dtype == np.float32
    assert np.isfinite(facets.features).all()
    assert (facets.features >= 0).all()
    assert (facets.weights >= 0).all()
    assert not facets.features[0, 1].any(), "a sentence without a word offers nothing"


def test_numpy_and_torch_see_the_same(matcher: Matcher) -> None:
    batch = batch_of(matcher, QUERIES)
    ours = encode(learned(), batch)
    theirs = encode(in_torch(learned()), batch.placed(torch.from_numpy))
    assert np.allclose(ours.features, theirs.features.numpy(), atol=1e-5)
    assert np.allclose(ours.weights, theirs.weights.numpy(), atol=1e-6)
    assert np.allclose(ours.full, theirs.full.numpy(), atol=1e-5)


def test_a_query_in_a_batch_gives_what_it_gives_alone(matcher: Matcher) -> None:
    together, batch = encode(learned(), batch_of(matcher, QUERIES)), batch_of(matcher, QUERIES)
    tokens = batch.claim.shape[1]
    for row, query in enumerate(QUERIES):
        own = batch_of(matcher, [query])
        alone = encode(learned(), own)
        items, own_tokens = len(query.sentences), own.claim.shape[1]
        kept = [*range(own_tokens), *range(tokens, tokens + SIZES.features)]
        assert np.allclose(together.features[row, :items][:, kept], alone.features[0], atol=1e-5)
        assert np.allclose(together.weights[row][kept], alone.weights[0], atol=1e-6)
        assert not together.weights[row][own_tokens:tokens].any()


def test_what_stands_in_padding_changes_nothing(matcher: Matcher) -> None:
    batch = batch_of(matcher, QUERIES)
    hidden = ~(batch.mask[..., None] & batch.real[:, None, :])
    dirty = dataclasses.replace(
        batch,
        cosine=np.where(hidden, 0.9, batch.cosine).astype(np.float32),
        exact=np.where(hidden, 1, batch.exact).astype(np.float32),
        length=np.where(batch.mask, batch.length, 7).astype(np.float32),
        likeness=np.where(batch.mask, batch.likeness, 3).astype(np.float32),
    )
    assert np.allclose(
        encode(learned(), batch).features, encode(learned(), dirty).features, atol=1e-6
    )


def test_the_start_picks_alike_whatever_its_size(matcher: Matcher) -> None:
    batch = batch_of(matcher, QUERIES)
    plain = encode(start_weights(FacetSizes(256, 0, 0, 0, 0), 0), batch)
    sized = encode(start_weights(SIZES, 3), batch)
    picks = [
        greedy(FeatureCoverage(f.weights), Items(f.features, batch.mask), 4).indices
        for f in (plain, sized)
    ]
    assert np.array_equal(*picks)


def test_what_the_title_says_is_no_news(matcher: Matcher) -> None:
    page = ["The bridge is a bridge.", "It opened in 1890."]
    start = untrained_weights()
    shares = []
    for title in ("", "The bridge"):
        facets = encode(start, batch_of(matcher, [Query.of_page("The bridge opened", page, title)]))
        worth = (np.log1p(facets.features[0]) * facets.weights[0]).sum(axis=1)
        shares.append(worth[1] / worth[0])
    assert shares[1] > 1 > shares[0]


@pytest.mark.parametrize("name", list(shapes_of(SIZES)))
def test_every_weight_has_a_right_gradient(matcher: Matcher, name: str) -> None:
    """By finite differences, in float64, through the features and their weights."""
    batch = batch_of(matcher, [GRADIENTS]).placed(
        lambda a: torch.from_numpy(a).double() if a.dtype.kind == "f" else torch.from_numpy(a)
    )
    weights = in_torch(learned(1), torch.float64)
    value = getattr(weights, name).reshape(-1)

    def worth(whole: torch.Tensor) -> torch.Tensor:
        shaped = whole.reshape(getattr(weights, name).shape)
        facets = encode(dataclasses.replace(weights, **{name: shaped}), batch)
        return (torch.log1p(facets.features.sum(1)) * facets.weights).sum()

    whole = value.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(worth(whole), whole)
    steepest = gradient.abs().argsort(descending=True)[:3]
    assert gradient[steepest[0]] != 0
    for place in steepest:
        step = torch.zeros_like(value)
        step[place] = 1e-6
        slope = (worth(value + step) - worth(value - step)) / 2e-6
        assert slope.item() == pytest.approx(gradient[place].item(), rel=1e-4, abs=1e-7)
