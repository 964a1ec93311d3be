"""The relaxations: how a layer chooses one item softly."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from dgn.core.functions import FeatureCoverage, Items
from dgn.core.numerics import lowest_log
from dgn.errors import InvalidInput
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.relaxations import (
    Choice,
    GreedyLikelihood,
    Gumbel,
    ImplicitMLE,
    Perturbed,
    Relaxation,
    Softmax,
    Sparsemax,
    StraightThrough,
)

SCORES = torch.tensor([[0.3, -0.2, 0.5, 0.1]], dtype=torch.float64)
ALL = (
    *(Softmax(), StraightThrough(), Gumbel(), Perturbed(), Sparsemax(), ImplicitMLE()),
    *(GreedyLikelihood(), GreedyLikelihood("random")),
)


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


def jacobian(choose: Callable[[Tensor], Tensor], scores: Tensor) -> Tensor:
    """[items, items], the derivative of the mean over the batch."""
    found = []
    leaf = scores.clone().requires_grad_()
    mean = choose(leaf).mean(dim=0)
    for value in mean:
        (gradient,) = torch.autograd.grad(value, leaf, retain_graph=True)
        found.append(gradient.sum(dim=0))
    return torch.stack(found)


def choose_at(relaxation: Relaxation, temperature: float = 1.0) -> Callable[[Tensor], Choice]:
    return lambda scores: relaxation.choose(scores, torch.zeros_like(scores), temperature)


def test_perturbed_estimates_the_expected_winner_and_its_jacobian() -> None:
    relaxation = Perturbed(samples=200, scale=0.5, generator=torch.Generator().manual_seed(0))
    many = SCORES.expand(4000, -1)
    found = choose_at(relaxation)(many).member.mean(dim=0)

    def expected(scores: Tensor) -> Tensor:
        """P(winner) by integration: ∫ φ(z) Π Φ(…) dz."""
        normal = torch.distributions.Normal(0.0, 0.5)
        z = torch.linspace(-3, 3, 4001, dtype=torch.float64)
        parts = []
        for i in range(4):
            others = [normal.cdf(z + scores[0, i] - scores[0, j]) for j in range(4) if j != i]
            parts.append(torch.trapezoid(normal.log_prob(z).exp() * math.prod(others), z))
        return torch.stack(parts)[None]

    torch.testing.assert_close(found, expected(SCORES)[0], atol=3e-3, rtol=0)
    exact = jacobian(expected, SCORES)
    estimated = jacobian(lambda scores: choose_at(relaxation)(scores).member, many)
    torch.testing.assert_close(estimated, exact, atol=2e-2, rtol=0)


def test_gradient_of_the_fenchel_young_losses_is_p_minus_the_label() -> None:
    for relaxation in (Sparsemax(), Perturbed(generator=torch.Generator().manual_seed(1))):
        scores = SCORES.clone().requires_grad_()
        choice = choose_at(relaxation)(scores)
        assert choice.probs is not None
        for label in range(4):
            (gradient,) = torch.autograd.grad(
                -choice.log_probs[0, label], scores, retain_graph=True
            )
            wanted = choice.probs.detach() - torch.eye(4, dtype=torch.float64)[label]
            torch.testing.assert_close(gradient, wanted)
        assert (choice.log_probs <= 0).all()
        assert (choice.log_others == 0).all()


def test_sparsemax_is_the_nearest_distribution() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(50, 6, dtype=torch.float64, generator=generator)
    probs = choose_at(Sparsemax())(scores).member
    assert (probs >= 0).all()
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(50, dtype=torch.float64))
    distance = ((probs - scores) ** 2).sum(dim=1)
    others = torch.distributions.Dirichlet(torch.ones(6, dtype=torch.float64)).sample((2000,))
    assert (((others[None] - scores[:, None]) ** 2).sum(dim=2) >= distance[:, None]).all()
    assert (probs == 0).any()
    assert choose_at(Sparsemax())(torch.tensor([[3.0, 1.0]])).member.tolist() == [[1.0, 0.0]]
    # The loss is 0 where p is the label, and never below.
    loss = -choose_at(Sparsemax())(torch.tensor([[3.0, 1.0], [1.5, 1.0]])).log_probs
    assert loss[0].tolist() == [0.0, 2.0]
    assert loss[1].tolist() == pytest.approx([0.0625, 0.5625])
    assert torch.autograd.gradcheck(
        lambda x: choose_at(Sparsemax(), 0.7)(x).member, (scores.requires_grad_(),)
    )
    assert torch.autograd.gradcheck(lambda x: choose_at(Sparsemax(), 0.7)(x).log_probs, (scores,))


def test_implicit_mle_follows_the_gradient_of_the_expectation() -> None:
    generator = torch.Generator().manual_seed(0)
    relaxation = ImplicitMLE(step=0.2, generator=generator)
    many = SCORES.expand(100_000, -1).clone().requires_grad_()
    member = choose_at(relaxation)(many).member
    assert (member.sum(dim=1) == 1).all()
    probs = torch.softmax(SCORES[0], dim=0)
    torch.testing.assert_close(member.mean(dim=0), probs, atol=5e-3, rtol=0)
    cost = torch.tensor([1.0, -0.5, 0.3, 0.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad((member * cost).sum(), many)
    # With Gumbel noise the expectation is known: a difference of two softmaxes.
    wanted = (probs - torch.softmax(SCORES[0] - 0.2 * cost, dim=0)) / 0.2
    torch.testing.assert_close(gradient.mean(dim=0), wanted, atol=2e-2, rtol=0)
    slope = probs * (cost - probs @ cost)
    torch.testing.assert_close(wanted, slope, atol=2e-2, rtol=0)  # nearly that of the expectation


def likelihood_of(order: tuple[int, ...], features: Tensor, temperature: float) -> float:
    """The probability that the stochastic greedy takes these items in this order."""
    objective, items = FeatureCoverage(), Items(features)
    state, left = objective.empty(items), torch.ones(features.shape[1], dtype=torch.bool)
    probability = 1.0
    for item in order:
        gains = objective.gains(items, state)[0].where(left, -torch.inf)
        probability *= float(torch.softmax(gains / temperature, dim=0)[item])
        member = torch.zeros_like(gains).index_fill(0, torch.tensor([item]), 1.0)[None]
        state, left = objective.add(items, state, member), left & (member[0] == 0)
    return probability


@pytest.mark.parametrize("temperature", [0.004, 0.5, 4.0])
def test_greedy_likelihood_is_that_of_its_order(temperature: float) -> None:
    generator = torch.Generator().manual_seed(3)
    features = 3 * torch.rand(1, 6, 4, dtype=torch.float64, generator=generator)
    gold_items = (1, 2, 5)
    gold = torch.zeros(1, 6, dtype=torch.bool)
    gold[0, list(gold_items)] = True
    by_order = {
        order: likelihood_of(order, features, temperature)
        for order in itertools.permutations(gold_items)
    }

    def loss(relaxation: Relaxation, assignment: str = "matched") -> float:
        layers = UnfoldedGreedy(4, temperature, relaxation)
        unfolded = layers(FeatureCoverage(), Items(features), gold=gold)
        assert unfolded.labels is not None
        assert torch.equal(unfolded.labels.any(dim=1), gold)
        return float(LayerwiseCrossEntropy(assignment)(unfolded, gold))

    greedy = loss(GreedyLikelihood())
    assert greedy == pytest.approx(loss(GreedyLikelihood(), "set"))
    assert any(greedy == pytest.approx(-math.log(p)) for p in by_order.values())
    whole = sum(by_order.values())  # the likelihood of the set
    assert greedy >= -math.log(whole) - 1e-9
    if temperature == 0.004:  # one order is nearly all of it
        assert greedy == pytest.approx(-math.log(whole), abs=1e-3)
    random = GreedyLikelihood("random", torch.Generator().manual_seed(0))
    for seen in (loss(random) for _ in range(3)):
        assert any(seen == pytest.approx(-math.log(p)) for p in by_order.values())


def test_random_orders_are_uniform() -> None:
    relaxation = GreedyLikelihood("random", torch.Generator().manual_seed(0))
    gold = torch.tensor([[True, False, True, True]]).expand(20_000, -1)
    scores = SCORES.float().expand(20_000, -1)
    label = relaxation.choose_gold(scores, torch.zeros_like(scores), 1.0, gold).label
    assert label is not None
    assert label.float().mean(dim=0).tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.015)


def test_greedy_likelihood_samples_without_gold_and_goes_on_after_it() -> None:
    scores = SCORES.float().expand(20_000, -1)
    relaxation = GreedyLikelihood(generator=torch.Generator().manual_seed(0))
    share = choose_at(relaxation)(scores).member.mean(dim=0)
    assert share.tolist() == pytest.approx(torch.softmax(scores[0], 0).tolist(), abs=0.015)
    none = torch.zeros(1, 4, dtype=torch.bool)
    choice = relaxation.choose_gold(scores[:1], torch.zeros(1, 4), 1.0, none)
    assert choice.member.tolist() == [[0.0, 0.0, 1.0, 0.0]]
    assert choice.label is not None
    assert not choice.label.any()


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
    unfolded = layers(FeatureCoverage(), Items(features, mask), gold=gold)
    loss = LayerwiseCrossEntropy(assignment)(unfolded, gold)
    assert math.isfinite(loss.item())
    assert loss.item() < 1e6
    (loss + unfolded.value.sum() + unfolded.membership.sum()).backward()
    assert features.grad is not None
    assert torch.isfinite(features.grad).all()
    assert (features.grad[~mask] == 0).all()
    assert (unfolded.membership[~mask] == 0).all()
    assert torch.isfinite(unfolded.chosen).all()


@pytest.mark.parametrize(
    "relaxation", [Softmax(), StraightThrough(), Sparsemax(), GreedyLikelihood()], ids=str
)
def test_order_and_batch_change_nothing(relaxation: Relaxation) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(3, 6, 5, dtype=torch.float64, generator=generator)
    sizes = (6, 4, 3)
    mask = torch.arange(6) < torch.tensor(sizes)[:, None]
    gold = mask & (torch.rand(3, 6, generator=generator) < 0.5)
    gold[:, 0] = True
    criterion = LayerwiseCrossEntropy("matched", "none")
    layers = UnfoldedGreedy(3, 0.5, relaxation)
    together = layers(FeatureCoverage(), Items(features, mask), gold=gold)
    losses = criterion(together, gold)
    for row, size in enumerate(sizes):
        order = torch.randperm(size, generator=generator)
        own = gold[row : row + 1, order]
        alone = layers(FeatureCoverage(), Items(features[row : row + 1, order]), gold=own)
        torch.testing.assert_close(criterion(alone, own)[0], losses[row])
        torch.testing.assert_close(alone.membership[0], together.membership[row, order])


def test_a_choice_never_falls_on_what_is_already_in_the_set() -> None:
    scores = torch.tensor([[5.0, 1.0, 0.0]]).expand(500, -1)
    prior = torch.tensor([[lowest_log(scores), 0.0, 0.0]]).expand(500, -1)
    for relaxation in ALL:
        member = relaxation.choose(scores, prior, 1.0).member
        assert (member[:, 0] == 0).all(), relaxation
        torch.testing.assert_close(member.sum(dim=1), torch.ones(500))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Perturbed(samples=1), "samples must be at least 2"),
        (lambda: Perturbed(scale=0.0), "scale must be greater than 0"),
        (lambda: ImplicitMLE(step=-1.0), "step must be greater than 0"),
        (lambda: GreedyLikelihood("any"), "order must be greedy or random"),
    ],
)
def test_arguments_are_checked(make: Callable[[], Relaxation], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_choices_sum_to_the_number_of_layers() -> None:
    features = torch.rand(3, 12, 5, generator=torch.Generator().manual_seed(0))
    for relaxation in ALL:
        soft = UnfoldedGreedy(4, 1.0, relaxation)(FeatureCoverage(), features)
        torch.testing.assert_close(soft.chosen.sum(dim=1), torch.full((3,), 4.0))
        assert replace(soft, probs=None).log_probs.isfinite().all()
