"""The networks: their two modes, their losses and their selections."""

import numpy as np
import pytest
import torch
from torch import nn

from dgn.core import Selections, greedy, top_k
from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Items,
    Log1p,
    Mixture,
    Power,
    ProbabilisticCoverage,
)
from dgn.errors import InvalidInput
from dgn.learn.layers import Unfolded, UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.networks import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    LearnedWeights,
    PointwiseNetwork,
    PointwiseScorer,
)


def small_dgn(inputs: int = 6, **options: object) -> DifferentiableGreedyNetwork:
    torch.manual_seed(0)
    encoder = FeatureEncoder(FeedForward((inputs, inputs, inputs)), LearnedWeights(inputs))
    return DifferentiableGreedyNetwork(encoder, UnfoldedGreedy(3, 1.0), **options)


def pointwise(*widths: int, **options: object) -> PointwiseNetwork:
    torch.manual_seed(0)
    return PointwiseNetwork(PointwiseScorer(FeedForward(widths)), **options)


@pytest.fixture
def pages() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """X, mask and gold of eight pages."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 9, 6, generator=generator)
    mask = torch.rand(8, 9, generator=generator) < 0.7
    mask[:, :2] = True
    gold = (torch.rand(8, 9, generator=generator) < 0.3) & mask
    return x, mask, gold


def test_training_mode_is_soft_and_evaluation_mode_is_greedy(pages: tuple) -> None:
    x, mask, _ = pages
    network = small_dgn()
    assert isinstance(network.train()(x, mask), Unfolded)
    found = network.eval()(x, mask)
    assert isinstance(found, Selections)
    assert found.indices.shape == (8, 3)
    assert network(x, mask, k=5).indices.shape == (8, 5)
    with torch.no_grad():
        expected = greedy(*network.encode(x, mask), 5)
    assert torch.equal(network(x, mask, k=5).indices, expected.indices)
    assert not found.gains.requires_grad
    with pytest.raises(InvalidInput, match="k must be an integer of at least 1; got 0"):
        network(x, mask, k=0)


@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_gradients_through_the_whole_network(assignment: str) -> None:
    network = small_dgn(inputs=3, criterion=LayerwiseCrossEntropy(assignment)).double()
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, True, False]])
    gold = torch.tensor([[True, False, True, False], [False, True, False, False]])
    names = [name for name, _ in network.named_parameters()]

    def loss(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(
            _Loss(network),
            {f"network.{n}": v for n, v in zip(names, values, strict=True)},
            (x, gold, mask),
        )

    values = [p.detach().clone().requires_grad_() for p in network.parameters()]
    assert torch.autograd.gradcheck(loss, (x.requires_grad_(), *values))


class _Loss(nn.Module):
    def __init__(self, network: DifferentiableGreedyNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.network.loss(*inputs)


@pytest.mark.parametrize(
    "network",
    [small_dgn(), pointwise(6, 8, 8), pointwise(6, 8, 8, 8)],
    ids=["dgn", "encoder", "deep-encoder"],
)
def test_padding_changes_neither_loss_nor_selection(network: nn.Module, pages: tuple) -> None:
    x, mask, gold = pages
    garbage = x.clone()
    garbage[~mask] = torch.nan
    torch.testing.assert_close(
        network.loss(x, gold, mask), network.loss(garbage, gold | ~mask, mask)
    )
    assert torch.equal(network.select(x, mask, 3).indices, network.select(garbage, mask, 3).indices)
    wider = torch.cat([x, garbage], dim=1)
    more = torch.cat([mask, torch.zeros_like(mask)], dim=1)
    assert torch.equal(network.select(x, mask, 3).indices, network.select(wider, more, 3).indices)


@pytest.mark.parametrize("network", [small_dgn(), pointwise(6, 8, 8)], ids=["dgn", "encoder"])
def test_nan_in_the_padding_does_not_reach_the_gradients(network: nn.Module, pages: tuple) -> None:
    x, mask, gold = pages
    garbage = x.clone()
    garbage[~mask] = torch.nan
    network.zero_grad()
    network.loss(garbage, gold, mask).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


def test_weights_that_do_not_fit_the_features_are_refused() -> None:
    encoder = FeatureEncoder(FeedForward((6, 8)), LearnedWeights(6))
    network = DifferentiableGreedyNetwork(encoder)
    with pytest.raises(
        InvalidInput, match=r"weights must be an array of shape \(8,\).*; got shape \(6,\)"
    ):
        network(torch.ones(1, 3, 6))


def test_k_in_training_mode_is_refused() -> None:
    with pytest.raises(InvalidInput, match="k cannot be chosen in training mode"):
        small_dgn().train()(torch.ones(1, 3, 6), k=5)


def test_pointwise_network_selects_its_best_scores(pages: tuple) -> None:
    x, mask, gold = pages
    network = pointwise(6, 8, 8, positive_weight=1.0)
    scores = network.train()(x, mask)
    assert scores.shape == (8, 9)
    assert torch.equal(network.eval()(x, mask, 4).indices, top_k(scores.detach(), 4, mask).indices)
    light = network.loss(x, gold, mask).item()
    network.positive_weight = 10.0
    assert network.loss(x, gold, mask).item() > light
    with pytest.raises(InvalidInput, match="positive_weight must be greater than 0; got 0"):
        pointwise(6, 8, 8, positive_weight=0.0)


def test_nan_in_the_weights_is_reported_before_a_selection() -> None:
    network = small_dgn().eval()
    with torch.no_grad():
        network.encoder.features.layers[0].weight[0, 0] = np.nan
    with pytest.raises(InvalidInput, match=r"features must be .*; got nan"):
        network(torch.ones(1, 3, 6))


def test_loss_terms_are_what_the_loss_is_a_mean_of(pages: tuple) -> None:
    x, mask, gold = pages
    gold[3] = False
    for network in (small_dgn(), pointwise(6, 8, 8)):
        halves = [slice(0, 3), slice(3, 8)]
        terms = [network.loss_terms(gold[h], mask[h]) for h in halves]
        losses = [network.loss(x[h], gold[h], mask[h]) for h in halves]
        mean = sum(loss * n for loss, n in zip(losses, terms, strict=True)) / sum(terms)
        torch.testing.assert_close(mean, network.loss(x, gold, mask))


def test_set_temperature_changes_the_layers() -> None:
    network = small_dgn()
    network.set_temperature(0.25)
    assert network.greedy.temperature == 0.25
    pointwise(6, 8, 8).set_temperature(0.25)
    listwise = pointwise(6, 8, 8, greedy=UnfoldedGreedy(3, 1.0))
    listwise.set_temperature(0.25)
    assert listwise.greedy is not None
    assert listwise.greedy.temperature == 0.25


def test_listwise_encoder_has_the_loss_of_a_modular_dgn(pages: tuple) -> None:
    x, mask, gold = pages
    network = pointwise(6, 8, 8, greedy=UnfoldedGreedy(2, 1.0))
    scores = nn.functional.softplus(network.scores(x, mask))
    # By hand: the first layer is a softmax of the scores; the second one without what was chosen.
    loss = torch.zeros(())
    for row in range(len(x)):
        own, is_gold = scores[row][mask[row]], gold[row][mask[row]]
        outside = torch.ones_like(own)
        left = is_gold.clone()
        for _ in range(min(2, int(is_gold.sum()))):
            p = torch.softmax(outside * own + outside.log(), dim=0)
            label = int(torch.where(left, p, -1.0).argmax())
            others = torch.ones_like(left)
            others[label] = False
            loss = loss - p[label].log() - (1 - p[others]).log().sum()
            left[label] = False
            outside = outside * (1 - p)
    expected = loss / gold.any(dim=1).sum()
    torch.testing.assert_close(network.loss(x, gold, mask), expected)
    order = network.select(x, mask, 3).indices
    torch.testing.assert_close(order, top_k(network.scores(x, mask), 3, mask).indices)
    assert network.loss_terms(gold, mask) == gold.any(dim=1).sum()


def test_any_encoder_with_a_function_and_items_can_be_trained(pages: tuple) -> None:
    x, mask, gold = pages

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[FacilityLocation, Items]:
            return FacilityLocation(), Items(torch.relu(self.scale * x), mask)

    network = DifferentiableGreedyNetwork(Own(), UnfoldedGreedy(2, 1.0))
    network.loss(x, gold, mask).backward()
    assert network.encoder.scale.grad.abs() > 0
    assert network.select(x, mask, 2).indices.shape == (8, 2)


@pytest.fixture
def pages_encoders() -> tuple[torch.Tensor, torch.Tensor]:
    """X and mask of eight pages_encoders."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 9, 6, generator=generator)
    mask = torch.rand(8, 9, generator=generator) < 0.7
    mask[:, :2] = True
    return x, mask


@pytest.mark.parametrize("widths", [(6, 6, 6), (6, 11, 6), (6, 6), (6, 8, 8, 6)])
@pytest.mark.parametrize("scale", [0.5, 1.0, 7.0])
def test_start_as_identity_is_exactly_the_untrained_greedy(
    pages_encoders: tuple, widths: tuple[int, ...], scale: float
) -> None:
    x, mask = pages_encoders
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


@pytest.mark.parametrize("concave", [Log1p(), Power(0.5), Power(0.7)])
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


def test_encoder_returns_the_function_and_the_items(pages_encoders: tuple) -> None:
    x, mask = pages_encoders
    encoder = FeatureEncoder(FeedForward((6, 4)), LearnedWeights(4))
    objective, items = encoder(x, mask)
    assert isinstance(objective, FeatureCoverage)
    assert torch.equal(items.mask, mask)
    assert (items.features[~mask] == 0).all()
    with torch.autocast("cpu", torch.bfloat16):
        assert encoder(x, mask)[1].features.dtype == torch.float32
