"""The relaxations: how a layer chooses one item softly."""

import pytest
import torch

from dgn.errors import InvalidInput
from dgn.learn.relaxations import Gumbel, Softmax, StraightThrough


def test_softmax_divides_by_the_temperature_and_multiplies_with_the_prior() -> None:
    scores, prior = torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[1.0, 0.5, 0.25]])
    choice = Softmax().choose(scores, prior.log(), 2.0)
    weighted = prior * torch.exp(scores / 2.0)
    torch.testing.assert_close(choice.member, weighted / weighted.sum())
    torch.testing.assert_close(choice.log_probs.exp(), choice.member)
    torch.testing.assert_close(choice.log_others.exp(), 1 - choice.member)
    assert torch.equal(choice.log_left, choice.log_others)


def test_gumbel_samples_by_the_softmax_of_the_scores() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.tensor([[0.0, 1.0, 2.0]]).repeat(20_000, 1)
    relaxation = StraightThrough(Gumbel(generator=generator))
    share = relaxation.choose(scores, torch.zeros_like(scores), 1.0).member.detach().mean(dim=0)
    assert share.tolist() == pytest.approx(torch.softmax(scores[0], 0).tolist(), abs=0.015)


def test_straight_through_is_one_hot_with_the_gradient_of_the_softmax() -> None:
    scores = torch.tensor([[0.0, 1.0, 0.5]], requires_grad=True)
    member = StraightThrough().choose(scores, torch.zeros(1, 3), 1.0).member
    assert member.tolist() == [[0.0, 1.0, 0.0]]
    soft = torch.softmax(scores, dim=1)
    for item in range(3):
        (hard_gradient,) = torch.autograd.grad(member[0, item], scores, retain_graph=True)
        (soft_gradient,) = torch.autograd.grad(soft[0, item], scores, retain_graph=True)
        torch.testing.assert_close(hard_gradient, soft_gradient)


def test_noise_must_have_a_scale() -> None:
    with pytest.raises(InvalidInput, match=r"scale must be greater than 0; got 0\.0"):
        Gumbel(scale=0.0)
