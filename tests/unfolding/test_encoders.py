"""The trainable encoders: their layers, their weights, and where training starts."""

import pytest
import torch
from torch import nn

from dgn.errors import InvalidInput
from dgn.maximizers import greedy
from dgn.objectives import (
    Concave,
    FeatureCoverage,
    Items,
    Log1p,
    Mixture,
    Power,
    ProbabilisticCoverage,
    Sqrt,
)
from dgn.unfolding import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
    UnfoldedGreedy,
)


@pytest.fixture
def pages() -> tuple[torch.Tensor, torch.Tensor]:
    """X and mask of eight pages."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 9, 6, generator=generator)
    mask = torch.rand(8, 9, generator=generator) < 0.7
    mask[:, :2] = True
    return x, mask


@pytest.mark.parametrize("widths", [(6, 6, 6), (6, 11, 6), (6, 6), (6, 8, 8, 6)])
@pytest.mark.parametrize("scale", [0.5, 1.0, 7.0])
def test_start_as_identity_is_exactly_the_untrained_greedy(
    pages: tuple, widths: tuple[int, ...], scale: float
) -> None:
    x, mask = pages
    features = FeedForward(widths)
    encoder = FeatureEncoder(features, LearnedWeights(6))
    encoder.start_as_identity(scale)
    assert torch.equal(features(x), torch.relu(scale * x))
    network = DifferentiableGreedyNetwork(encoder).eval()
    untrained = greedy(FeatureCoverage(), Items(torch.relu(scale * x), mask), 7)
    assert torch.equal(network(x, mask).indices, untrained.indices)


def test_start_as_identity_with_a_narrow_last_layer_keeps_the_first_features() -> None:
    encoder = FeatureEncoder(FeedForward((300, 300, 254)), LearnedWeights(254))
    encoder.start_as_identity()
    x = torch.randn(4, 11, 300, generator=torch.Generator().manual_seed(0))
    untrained = greedy(FeatureCoverage(), torch.relu(x[..., :254]), 7)
    network = DifferentiableGreedyNetwork(encoder).eval()
    assert torch.equal(network(x).indices, untrained.indices)


def test_start_as_identity_can_learn() -> None:
    features = FeedForward((6, 11, 6))
    features.start_as_identity()
    features(torch.randn(4, 6, 6)).sum().backward()
    unused = features.layers[1].weight.grad[:, 6:]
    assert unused.abs().sum() > 0


@pytest.mark.parametrize("widths", [(6, 4, 6), (6, 6, 9)])
def test_start_as_identity_needs_wide_layers(widths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="cannot start as the identity: hidden layers need"):
        FeedForward(widths).start_as_identity()


def test_start_as_identity_needs_feed_forward_features() -> None:
    encoder = FeatureEncoder(torch.nn.Identity(), LearnedWeights(6))
    with pytest.raises(InvalidInput, match=r"features must be a FeedForward.*; got a Identity"):
        encoder.start_as_identity()


def test_start_with_scale_multiplies_the_first_layer() -> None:
    torch.manual_seed(0)
    features = FeedForward((6, 4))
    before = features.layers[0].weight.detach().clone()
    features.start_with_scale(3.0)
    assert torch.equal(features.layers[0].weight, 3.0 * before)


@pytest.mark.parametrize("concave", [Log1p(), Sqrt(), Power(0.7)])
def test_a_dead_encoder_recovers(concave: Concave) -> None:
    torch.manual_seed(0)
    x, gold = torch.rand(16, 6, 4), torch.zeros(16, 6, dtype=torch.bool)
    gold[:, 0] = True
    x[:, 0] += 1
    features = FeedForward((4, 8, 8))
    last = features.layers[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.bias.fill_(-5.0)
    weights = LearnedWeights(8, lambda alpha: FeatureCoverage(alpha, concave))
    network = DifferentiableGreedyNetwork(FeatureEncoder(features, weights), UnfoldedGreedy(1, 1.0))
    assert features.eval()(x).max() == 0
    optimizer = torch.optim.Adam(network.parameters(), 0.05)
    network.train()
    for _ in range(300):
        optimizer.zero_grad()
        network.loss(x, gold).backward()
        optimizer.step()
    assert features.eval()(x).max() > 0
    picks = network.eval().select(x, k=1).indices
    assert (picks == 0).float().mean() > 0.8


def test_dropout_leaves_out_hidden_units_in_training_only() -> None:
    torch.manual_seed(0)
    features = FeedForward((6, 8, 8), dropout=0.5)
    x = torch.ones(1, 3, 6)
    assert not torch.equal(features.train()(x), features(x))
    assert torch.equal(features.eval()(x), features(x))


@pytest.mark.parametrize("widths", [(3,), (3, 0)])
def test_encoders_without_layers_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="widths must be the number of inputs and at least one"):
        FeedForward(widths)


def test_dropout_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"dropout must be at least 0 and below 1; got 1\.0"):
        FeedForward((3, 3), dropout=1.0)


def test_learned_weights_have_an_initial_value_and_stay_positive() -> None:
    torch.testing.assert_close(LearnedWeights(3).weights, torch.ones(3))
    small = LearnedWeights(2, initial=0.01)
    torch.testing.assert_close(small.weights, torch.full((2,), 0.01))
    with torch.no_grad():
        small.raw -= 1000
    assert (small.weights >= 0).all()
    with pytest.raises(InvalidInput, match="initial must be greater than 0; got 0"):
        LearnedWeights(2, initial=0)


def test_learned_weights_train_a_mixture() -> None:
    mixed = LearnedWeights(
        2, lambda weights: Mixture((FeatureCoverage(), ProbabilisticCoverage()), weights)
    )
    items = Items(torch.rand(2, 5, 4, generator=torch.Generator().manual_seed(0)))
    (-UnfoldedGreedy(2, 1.0)(mixed(), items).value.sum()).backward()
    assert (mixed.raw.grad.abs() > 0).all()
    with torch.no_grad():
        mixed.raw -= 1000
    assert (mixed.weights >= 0).all()


def test_encoder_returns_the_function_and_the_items(pages: tuple) -> None:
    x, mask = pages
    encoder = FeatureEncoder(FeedForward((6, 4)), LearnedWeights(4))
    objective, items = encoder(x, mask)
    assert isinstance(objective, FeatureCoverage)
    assert torch.equal(items.mask, mask)
    assert (items.features[~mask] == 0).all()
    with torch.autocast("cpu", torch.bfloat16):
        assert encoder(x, mask)[1].features.dtype == torch.float32
