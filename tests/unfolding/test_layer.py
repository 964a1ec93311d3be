"""The greedy layers: finite at any temperature, right gradients, greedy in the limit."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dgn.errors import InvalidInput
from dgn.maximizers import greedy
from dgn.objectives import FeatureCoverage, Items, SetFunction
from dgn.unfolding import Gumbel, Relaxation, Softmax, StraightThrough, UnfoldedGreedy
from instances import KINDS, random_instance

TEMPERATURES = [0.01, 0.1, 1.0, 4.0, 100.0]
RELAXATIONS = [Softmax(), StraightThrough(), Gumbel(), StraightThrough(Gumbel())]


def ragged(kind: str, dtype: torch.dtype = torch.float32) -> tuple[SetFunction, Items, Tensor]:
    """Three sets of 6, 3 and 1 items, with the features that gradients are taken in."""
    features = torch.zeros(3, 6, 5, dtype=dtype)
    mask = torch.zeros(3, 6, dtype=torch.bool)
    for row, size in enumerate((6, 3, 1)):
        features[row, :size] = torch.from_numpy(random_instance(kind, row + 1, size).features)
        mask[row, :size] = True
    weights = torch.from_numpy(random_instance(kind, 1, 1).weights).to(dtype)
    features.requires_grad_()
    return KINDS[kind].build(weights), Items(features, mask), features


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_finite_at_any_temperature(kind: str, relaxation: Relaxation, temperature: float) -> None:
    torch.manual_seed(0)
    objective, items, features = ragged(kind)
    # More layers than some sets have items: what is exhausted must stay finite too.
    unfolded = UnfoldedGreedy(5, temperature, relaxation)(objective, items)
    total = unfolded.membership.sum() + unfolded.value.sum()
    real = items.mask[:, None, :].expand_as(unfolded.log_probs)
    (total + unfolded.log_probs[:, :1][real[:, :1]].sum()).backward()
    assert torch.isfinite(unfolded.log_probs).all()
    assert torch.isfinite(unfolded.log_others).all()
    assert torch.isfinite(unfolded.membership).all()
    assert features.grad is not None
    assert torch.isfinite(features.grad).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.3, 4.0])
def test_gradients_through_all_layers(kind: str, temperature: float) -> None:
    instance = random_instance(kind, 7, 4)
    features = torch.from_numpy(np.clip(instance.features, 0.02, 0.95))[None].requires_grad_()
    weights = torch.from_numpy(instance.weights + 0.1).requires_grad_()
    layers = UnfoldedGreedy(3, temperature)

    def run(features: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
        unfolded = layers(KINDS[kind].build(weights), Items(features))
        return unfolded.log_probs, unfolded.log_others, unfolded.membership, unfolded.value

    assert torch.autograd.gradcheck(run, (features, weights))


@pytest.mark.parametrize("kind", KINDS)
def test_a_falling_temperature_converges_to_the_picks_of_greedy(kind: str) -> None:
    checked = 0
    for seed in range(1, 40):
        instance = random_instance(kind, seed, 7)
        features = torch.from_numpy(instance.features)[None]
        objective = KINDS[kind].build(torch.from_numpy(instance.weights))
        picked = greedy(objective, features, 3)[0]
        gaps = _gaps(objective, features, picked.indices)
        if min(gaps) < 1e-3:  # a tie has no limit
            continue
        distances = []
        for temperature in (0.3, 0.01, 1e-4):
            unfolded = UnfoldedGreedy(3, temperature)(objective, Items(features))
            hard = torch.zeros(7, dtype=torch.float64)
            hard[list(picked.indices)] = 1.0
            distances.append(float((unfolded.membership[0] - hard).abs().sum()))
        assert distances[-1] < 1e-3
        assert distances[-1] <= distances[0]
        assert unfolded.log_probs[0].argmax(dim=1).tolist() == list(picked.indices)
        checked += 1
    assert checked >= 10


def _gaps(objective: SetFunction, features: Tensor, picks: tuple[int, ...]) -> list[float]:
    """How far ahead each pick of greedy is of its runner-up."""
    items, gaps = Items(features), []
    state, left = objective.empty(items), torch.ones(1, features.shape[1], dtype=torch.bool)
    for pick in picks:
        gains = objective.gains(items, state).where(left, -torch.inf)
        first, second = gains[0].topk(2).values.tolist()
        gaps.append(first - second)
        member = torch.zeros_like(gains).index_fill(1, torch.tensor([pick]), 1.0)
        state, left = objective.add(items, state, member), left & (member == 0)
    return gaps


@pytest.mark.parametrize("kind", KINDS)
def test_straight_through_builds_the_very_set_of_greedy(kind: str) -> None:
    objective, items, features = ragged(kind)
    unfolded = UnfoldedGreedy(3, 1.0, StraightThrough())(objective, items)
    picked = greedy(objective, Items(features.detach(), items.mask), 3)
    for row, one in enumerate(picked):
        expected = torch.zeros(6)
        expected[list(one.indices)] = 1.0
        assert torch.equal(unfolded.membership[row].detach(), expected)
        assert unfolded.value[row].item() == pytest.approx(one.values[-1], abs=1e-6)
    unfolded.membership[0, 0].backward()
    assert features.grad is not None
    assert features.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_batching_change_nothing(kind: str) -> None:
    objective, items, features = ragged(kind, torch.float64)
    layers = UnfoldedGreedy(3, 0.7)
    together = layers(objective, items)
    for row, size in enumerate((6, 3, 1)):
        alone = layers(objective, Items(features[row, :size]))
        # A set is exhausted after as many layers as it has items.
        used = min(size, 3)
        torch.testing.assert_close(
            together.log_probs[row, :used, :size], alone.log_probs[0, :used], rtol=1e-9, atol=1e-9
        )
        torch.testing.assert_close(together.membership[row, :size], alone.membership[0])
        torch.testing.assert_close(together.value[row], alone.value[0])
    assert (together.membership[~items.mask] == 0).all()


def test_probabilities_are_those_of_the_paper_at_the_first_layer() -> None:
    instance = random_instance("log1p", 2, 5)
    features = torch.from_numpy(instance.features)
    objective = KINDS["log1p"].build(torch.from_numpy(instance.weights))
    unfolded = UnfoldedGreedy(2, 2.0)(objective, Items(features))
    gains = [instance.value((item,)) for item in range(5)]
    total = sum(math.exp(gain / 2.0) for gain in gains)
    expected = [math.exp(gain / 2.0) / total for gain in gains]
    assert unfolded.log_probs[0, 0].exp().tolist() == pytest.approx(expected)
    assert unfolded.log_others[0, 0].exp().tolist() == pytest.approx([1 - p for p in expected])


def test_gumbel_samples_by_the_softmax_of_the_scores() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.tensor([[0.0, 1.0, 2.0]]).repeat(20_000, 1)
    relaxation = StraightThrough(Gumbel(generator=generator))
    picks = relaxation.choose(scores, torch.zeros_like(scores), 1.0).member.detach().mean(dim=0)
    assert picks.tolist() == pytest.approx(torch.softmax(scores[0], 0).tolist(), abs=0.015)


def test_a_context_lowers_what_is_left_to_gain() -> None:
    features = torch.rand(1, 5, 3, generator=torch.Generator().manual_seed(0))
    objective, items = FeatureCoverage(), Items(features)
    context = objective.add(items, objective.empty(items), torch.eye(5)[:1])
    layers = UnfoldedGreedy(2, 1.0)
    assert layers(objective, items, context).value < layers(objective, items).value


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_temperatures_that_are_none_are_refused(temperature: float) -> None:
    with pytest.raises(InvalidInput, match="temperature: found"):
        UnfoldedGreedy(2, temperature)(FeatureCoverage(), Items(torch.ones(2, 2)))


def test_no_layers_and_no_noise_are_refused() -> None:
    with pytest.raises(InvalidInput, match="layers: found 0"):
        UnfoldedGreedy(0)
    with pytest.raises(InvalidInput, match="scale: found"):
        Gumbel(scale=0.0)
