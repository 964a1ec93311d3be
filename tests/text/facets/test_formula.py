"""The formula of the facets: the same in NumPy and torch, independent of padding."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

from dgn.core import greedy
from dgn.text.facets.formula import (
    FacetSizes,
    FacetWeights,
    compute_facets,
    encode,
    shapes_of,
    start_weights,
    untrained_weights,
)
from dgn.text.facets.matching import Matches
from dgn.text.query import Query
from models import matches_of

SIZES = FacetSizes(projection=3, hidden=7)
WHOLE = 2
"""The features besides the words: likeness and relevance."""


def page(query: str, sentences: list[str], title: str = "") -> Query:
    return Query.of(query, documents=[{"sentences": sentences, "title": title}])


QUERIES = [
    page("The ship sank twice in 1901.", ["It sank in 1901.", "", "It sank twice."], "Ship"),
    page("Bees see colour", ["They see blue."]),
    page("Bees do not fly", ["Bees fly.", "Cows moo.", "Flying bees hum.", "Hm."], "Bees"),
]
GRADIENTS = page("The ship sank twice", ["The ship sank.", "It sank twice."], "The ship")


def learned(seed: int = 0, sizes: FacetSizes = SIZES) -> FacetWeights:
    """Weights away from the start, so that all of them have an effect."""
    random = np.random.default_rng(seed)
    return FacetWeights(
        **{
            name: (w + 0.2 * random.standard_normal(w.shape)).astype(np.float32)
            for name, w in vars(start_weights(sizes, seed)).items()
        }
    )


def batch_of(queries: list[Query]) -> Matches:
    return matches_of(queries)


def in_torch(weights: FacetWeights, dtype: torch.dtype = torch.float32) -> FacetWeights:
    return FacetWeights(**{n: torch.from_numpy(w).to(dtype) for n, w in vars(weights).items()})


def test_features_are_finite_and_not_negative() -> None:
    facets = compute_facets(learned(), batch_of(QUERIES))
    assert facets.features.dtype == facets.weights.dtype == np.float32
    assert np.isfinite(facets.features).all()
    assert (facets.features >= 0).all()
    assert (facets.weights >= 0).all()
    assert not facets.features[0, 1].any(), "a passage without a word offers nothing"


def test_numpy_and_torch_compute_the_same() -> None:
    batch = batch_of(QUERIES)
    ours = compute_facets(learned(), batch)
    theirs = compute_facets(in_torch(learned()), batch.moved(torch.from_numpy))
    assert np.allclose(ours.features, theirs.features.numpy(), atol=1e-5)
    assert np.allclose(ours.weights, theirs.weights.numpy(), atol=1e-6)
    assert np.allclose(ours.target, theirs.target.numpy(), atol=1e-5)


def test_query_in_a_batch_gives_what_it_gives_alone() -> None:
    batch = batch_of(QUERIES)
    together = compute_facets(learned(), batch)
    tokens = batch.query.shape[1]
    for row, query in enumerate(QUERIES):
        own = batch_of([query])
        alone = compute_facets(learned(), own)
        items, own_tokens = len(query.passages), own.query.shape[1]
        kept = [*range(own_tokens), *range(tokens, tokens + WHOLE)]
        assert np.allclose(together.features[row, :items][:, kept], alone.features[0], atol=1e-5)
        assert np.allclose(together.weights[row][kept], alone.weights[0], atol=1e-6)
        assert np.allclose(together.target[row][kept], alone.target[0], atol=1e-5)
        assert not together.weights[row][own_tokens:tokens].any()


def test_content_of_padding_changes_nothing() -> None:
    batch = batch_of(QUERIES)
    hidden = ~(batch.mask[..., None] & batch.real[:, None, :])
    dirty = dataclasses.replace(
        batch,
        similarity=np.where(hidden, 0.9, batch.similarity).astype(np.float32),
        exact=np.where(hidden, 1, batch.exact).astype(np.float32),
        length=np.where(batch.mask, batch.length, 7).astype(np.float32),
        likeness=np.where(batch.mask, batch.likeness, 3).astype(np.float32),
    )
    clean, unclean = (compute_facets(learned(), one).features for one in (batch, dirty))
    assert np.allclose(clean, unclean, atol=1e-6)


def test_start_selects_the_same_whatever_its_size() -> None:
    batch = batch_of(QUERIES)
    plain = encode(start_weights(FacetSizes(256, 0, 0, 0), 0), batch)
    sized = encode(start_weights(SIZES, 3), batch)
    indices = [greedy(objective, items, 4).indices for objective, items in (plain, sized)]
    assert np.array_equal(*indices)


def test_objective_has_the_weights_and_targets_of_the_facets() -> None:
    batch = batch_of(QUERIES)
    facets = compute_facets(learned(), batch)
    objective, items = encode(learned(), batch)
    np.testing.assert_array_equal(objective.weights, facets.weights)
    np.testing.assert_array_equal(objective.target, facets.target)
    np.testing.assert_array_equal(items.mask, batch.mask)
    assert not facets.target[:, batch.query.shape[1] :].any(), "extra features do not count"
    assert (facets.target[:, : batch.query.shape[1]] > 0).tolist() == batch.real.tolist()


def test_words_of_the_title_count_as_covered() -> None:
    sentences = ["The bridge is a bridge.", "It opened in 1890."]
    shares = []
    for title in ("", "The bridge"):
        batch = batch_of([page("The bridge opened", sentences, title)])
        facets = compute_facets(untrained_weights(), batch)
        worth = (np.log1p(facets.features[0]) * facets.weights[0]).sum(axis=1)
        shares.append(worth[1] / worth[0])
    assert shares[1] > 1 > shares[0]


@pytest.mark.parametrize("name", list(shapes_of(SIZES)))
def test_every_weight_has_a_correct_gradient(name: str) -> None:
    """By finite differences, in float64, through the features and their weights."""
    batch = batch_of([GRADIENTS]).moved(
        lambda a: torch.from_numpy(a).double() if a.dtype.kind == "f" else torch.from_numpy(a)
    )
    weights = in_torch(learned(1), torch.float64)
    value = getattr(weights, name).reshape(-1)

    def worth(whole: torch.Tensor) -> torch.Tensor:
        shaped = whole.reshape(getattr(weights, name).shape)
        facets = compute_facets(dataclasses.replace(weights, **{name: shaped}), batch)
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


SIZES_WEIGHTS = FacetSizes(dimension=12, projection=2, hidden=5)


@pytest.mark.parametrize("sizes", [SIZES_WEIGHTS, FacetSizes(), FacetSizes(256, 0, 0, 0)])
def test_sizes_are_those_of_the_weights(sizes: FacetSizes) -> None:
    weights = start_weights(sizes, seed=0)
    assert weights.sizes == sizes
    assert shapes_of(sizes) == {name: w.shape for name, w in vars(weights).items()}
    assert {w.dtype for w in vars(weights).values()} == {np.dtype(np.float32)}


def same(one: FacetWeights, other: FacetWeights) -> bool:
    return all(np.array_equal(w, getattr(other, name)) for name, w in vars(one).items())


def test_start_depends_on_the_seed() -> None:
    assert same(start_weights(SIZES_WEIGHTS, 0), start_weights(SIZES_WEIGHTS, 0))
    assert not same(start_weights(SIZES_WEIGHTS, 0), start_weights(SIZES_WEIGHTS, 1))


def test_untrained_weights_have_no_network() -> None:
    weights = untrained_weights()
    assert weights.sizes == FacetSizes(256, 0, 0, 0)
    assert replace(weights).sizes == weights.sizes
    assert not weights.word_weight[:256].any(), "no word is treated by its vector"
