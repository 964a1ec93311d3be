"""The relaxations: how a layer chooses one item softly."""

import math

import pytest
import torch

from dgn.core.functions import FeatureCoverage, Items
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.relaxations import Gumbel, Relaxation, Softmax, StraightThrough

ALL = (Softmax(), StraightThrough(), Gumbel(), StraightThrough(Gumbel()))


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


@pytest.mark.parametrize("relaxation", ALL, ids=str)
@pytest.mark.parametrize("temperature", [1e-4, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
def test_loss_and_gradient_are_finite(
    relaxation: Relaxation, temperature: float, assignment: str
) -> None:
    torch.manual_seed(0)
    features = (5 * torch.rand(12, 6, 5)).requires_grad_()
    mask = torch.arange(6) < torch.tensor([6, 6, 6, 6, 5, 5, 4, 4, 3, 2, 2, 1])[:, None]
    gold = (torch.rand(12, 6) < 0.6) & mask
    gold[:2] = mask[:2]  # everything is gold
    layers = UnfoldedGreedy(7, temperature, relaxation)
    unfolded = layers(FeatureCoverage(), Items(features, mask))
    loss = LayerwiseCrossEntropy(assignment)(unfolded, gold)
    assert math.isfinite(loss.item())
    assert loss.item() < 1e6
    (loss + unfolded.value.sum() + unfolded.membership.sum()).backward()
    assert features.grad is not None
    assert torch.isfinite(features.grad).all()
    assert (features.grad[~mask] == 0).all()
    assert (unfolded.membership[~mask] == 0).all()
    assert torch.isfinite(unfolded.chosen).all()


@pytest.mark.parametrize("relaxation", [Softmax(), StraightThrough()], ids=str)
def test_order_and_batch_change_nothing(relaxation: Relaxation) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(3, 6, 5, dtype=torch.float64, generator=generator)
    sizes = (6, 4, 3)
    mask = torch.arange(6) < torch.tensor(sizes)[:, None]
    gold = mask & (torch.rand(3, 6, generator=generator) < 0.5)
    gold[:, 0] = True
    criterion = LayerwiseCrossEntropy("matched", "none")
    layers = UnfoldedGreedy(3, 0.5, relaxation)
    together = layers(FeatureCoverage(), Items(features, mask))
    losses = criterion(together, gold)
    for row, size in enumerate(sizes):
        order = torch.randperm(size, generator=generator)
        own = gold[row : row + 1, order]
        alone = layers(FeatureCoverage(), Items(features[row : row + 1, order]))
        torch.testing.assert_close(criterion(alone, own)[0], losses[row])
        torch.testing.assert_close(alone.membership[0], together.membership[row, order])


def test_a_choice_never_falls_on_what_is_already_in_the_set() -> None:
    scores = torch.tensor([[5.0, 1.0, 0.0]]).expand(500, -1)
    prior = torch.tensor([[lowest_log(scores), 0.0, 0.0]]).expand(500, -1)
    for relaxation in ALL:
        member = relaxation.choose(scores, prior, 1.0).member
        assert (member[:, 0] == 0).all(), relaxation
        torch.testing.assert_close(member.sum(dim=1), torch.ones(500))


def test_choices_sum_to_the_number_of_layers() -> None:
    features = torch.rand(3, 12, 5, generator=torch.Generator().manual_seed(0))
    for relaxation in ALL:
        soft = UnfoldedGreedy(4, 1.0, relaxation)(FeatureCoverage(), features)
        torch.testing.assert_close(soft.chosen.sum(dim=1), torch.full((3,), 4.0))
