"""The networks: their sizes, their two modes, and where training starts."""

import numpy as np
import pytest
import torch
from torch import nn

from dgn.errors import InvalidInput
from dgn.maximizers import Selections, greedy, top_k
from dgn.objectives import FeatureCoverage, Items, Mixture, ProbabilisticCoverage
from dgn.unfolding import (
    DeepEncoderNetwork,
    DifferentiableGreedyNetwork,
    EncoderNetwork,
    FeedForwardEncoder,
    LayerwiseCrossEntropy,
    LearnedWeights,
    Unfolded,
    UnfoldedGreedy,
    paper_deep_encoder,
    paper_dgn,
    paper_encoder,
)


def size(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def small_dgn(inputs: int = 6, **options: object) -> DifferentiableGreedyNetwork:
    torch.manual_seed(0)
    encoder = FeedForwardEncoder((inputs, inputs, inputs))
    return DifferentiableGreedyNetwork(
        encoder, LearnedWeights(inputs), UnfoldedGreedy(3, 1.0), **options
    )


@pytest.fixture
def pages() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """X, mask and gold of eight pages."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 9, 6, generator=generator)
    mask = torch.rand(8, 9, generator=generator) < 0.7
    mask[:, :2] = True
    gold = (torch.rand(8, 9, generator=generator) < 0.3) & mask
    return x, mask, gold


def test_the_papers_sizes() -> None:
    assert size(paper_dgn()) == 167_008
    assert size(paper_encoder()) == 171_841
    assert size(paper_deep_encoder()) == 915_006
    assert paper_dgn().greedy.layers == 7


def test_training_mode_is_soft_and_evaluation_mode_is_greedy_with_any_k(pages: tuple) -> None:
    x, mask, _ = pages
    network = small_dgn()
    assert isinstance(network.train()(x, mask), Unfolded)
    picked = network.eval()(x, mask)
    assert isinstance(picked, Selections)
    assert picked.indices.shape == (8, 3)
    assert network(x, mask, k=5).indices.shape == (8, 5)
    with torch.no_grad():
        expected = greedy(network.set_function(), network.encode(x, mask), 5)
    assert torch.equal(network(x, mask, k=5).indices, expected.indices)
    assert not picked.gains.requires_grad
    with pytest.raises(InvalidInput, match="k: found 0"):
        network(x, mask, k=0)


@pytest.mark.parametrize("widths", [(6, 6, 6), (6, 11, 6), (6, 6), (6, 8, 8, 6)])
@pytest.mark.parametrize("scale", [0.5, 1.0, 7.0])
def test_identity_start_is_untrained_greedy_exactly(
    pages: tuple, widths: tuple[int, ...], scale: float
) -> None:
    x, mask, _ = pages
    encoder = FeedForwardEncoder(widths)
    encoder.start_as_identity(scale)
    assert torch.equal(encoder(x), torch.relu(scale * x))
    network = DifferentiableGreedyNetwork(encoder, LearnedWeights(6)).eval()
    untrained = greedy(FeatureCoverage(), Items(torch.relu(scale * x), mask), 7)
    assert torch.equal(network(x, mask).indices, untrained.indices)


def test_identity_start_at_the_papers_width_keeps_the_first_features() -> None:
    network = paper_dgn()
    network.encoder.start_as_identity()
    x = torch.randn(4, 11, 300, generator=torch.Generator().manual_seed(0))
    untrained = greedy(FeatureCoverage(), torch.relu(x[..., :254]), 7)
    assert torch.equal(network.eval()(x).indices, untrained.indices)


def test_identity_start_is_free_to_learn() -> None:
    encoder = FeedForwardEncoder((6, 11, 6))
    encoder.start_as_identity()
    encoder(torch.randn(4, 6, 6)).sum().backward()
    unused = encoder.layers[1].weight.grad[:, 6:]
    assert unused.abs().sum() > 0


@pytest.mark.parametrize("widths", [(6, 4, 6), (6, 6, 9)])
def test_identity_start_that_cannot_be_is_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="for a start as the identity"):
        FeedForwardEncoder(widths).start_as_identity()


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
    [small_dgn(), EncoderNetwork((6, 8, 8)), DeepEncoderNetwork((6, 8, 8, 8))],
    ids=lambda network: type(network).__name__,
)
def test_padding_changes_neither_loss_nor_picks(network: nn.Module, pages: tuple) -> None:
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


@pytest.mark.parametrize(
    "network", [small_dgn(), EncoderNetwork((6, 8, 8))], ids=["dgn", "encoder"]
)
def test_a_nan_in_the_padding_leaves_the_gradients_alone(network: nn.Module, pages: tuple) -> None:
    x, mask, gold = pages
    garbage = x.clone()
    garbage[~mask] = torch.nan
    network.zero_grad()
    network.loss(garbage, gold, mask).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in network.parameters())


def test_weights_that_do_not_fit_the_encoder_are_named() -> None:
    network = DifferentiableGreedyNetwork(FeedForwardEncoder((6, 8)), LearnedWeights(6))
    with pytest.raises(InvalidInput, match=r"weights: found shape \(6,\); allowed: \(8,\)"):
        network(torch.ones(1, 3, 6))


def test_k_in_training_mode_is_refused() -> None:
    with pytest.raises(InvalidInput, match="k: found 5 in training mode"):
        small_dgn().train()(torch.ones(1, 3, 6), k=5)


def test_baselines_pick_their_best_scores_and_know_their_weight(pages: tuple) -> None:
    x, mask, gold = pages
    torch.manual_seed(0)
    network = EncoderNetwork((6, 8, 8), positive_weight=1.0)
    scores = network.train()(x, mask)
    assert scores.shape == (8, 9)
    assert torch.equal(network.eval()(x, mask, 4).indices, top_k(scores.detach(), 4, mask).indices)
    light = network.loss(x, gold, mask).item()
    network.positive_weight = 10.0
    assert network.loss(x, gold, mask).item() > light
    with pytest.raises(InvalidInput, match="positive_weight: found 0"):
        EncoderNetwork((6, 8, 8), positive_weight=0.0)


def test_weights_start_where_told_stay_positive_and_train_a_mixture() -> None:
    torch.testing.assert_close(LearnedWeights(3).weights, torch.ones(3))
    torch.testing.assert_close(LearnedWeights(2, initial=0.01).weights, torch.full((2,), 0.01))
    mixed = LearnedWeights(
        2, lambda weights: Mixture((FeatureCoverage(), ProbabilisticCoverage()), weights)
    )
    items = Items(torch.rand(2, 5, 4, generator=torch.Generator().manual_seed(0)))
    (-UnfoldedGreedy(2, 1.0)(mixed(), items).value.sum()).backward()
    assert (mixed.raw.grad.abs() > 0).all()
    with torch.no_grad():
        mixed.raw -= 1000
    assert (mixed.weights >= 0).all()


def test_a_broken_encoder_is_named_before_it_picks_anything() -> None:
    network = small_dgn().eval()
    with torch.no_grad():
        network.encoder.layers[0].weight[0, 0] = np.nan
    with pytest.raises(InvalidInput, match="features: found nan"):
        network(torch.ones(1, 3, 6))


@pytest.mark.parametrize("widths", [(3,), (3, 0)])
def test_encoders_without_layers_are_refused(widths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="widths: found"):
        FeedForwardEncoder(widths)
