import pytest
import torch
from torch import Tensor

from dgn.objectives import FeatureCoverage, Items, Sqrt, State
from dgn.unfolding.soft_gains import soft_gains


def inputs(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    features = (3 * draw(3, 5, 4) - 1).clamp(min=0).detach().requires_grad_()
    return features, draw(3, 4), draw(3, 5), draw(4)


def by_hand(features: Tensor, level: Tensor, outside: Tensor, weights: Tensor) -> Tensor:
    state = State(level, outside, maker="FeatureCoverage")
    return soft_gains(FeatureCoverage(weights), Items(features), state)


@pytest.mark.parametrize("seed", range(5))
def test_gains_and_gradients_are_those_of_the_objective(seed: int) -> None:
    arguments = inputs(seed)
    features, level, outside, weights = arguments
    state = State(level, outside, maker="FeatureCoverage")
    expected = FeatureCoverage(weights).gains(Items(features), state)
    found = by_hand(*arguments)
    torch.testing.assert_close(found, expected)
    direction = torch.randn_like(expected)
    ours = torch.autograd.grad(found, arguments, direction)
    theirs = torch.autograd.grad(expected, arguments, direction)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_by_finite_differences() -> None:
    features, level, outside, weights = inputs(9)
    away_from_zero = (features + 0.1).detach().requires_grad_()
    assert torch.autograd.gradcheck(by_hand, (away_from_zero, level, outside, weights))


@pytest.mark.parametrize(
    "objective",
    [FeatureCoverage(), FeatureCoverage(torch.rand(3, 4)), FeatureCoverage(concave=Sqrt())],
)
def test_every_other_objective_computes_its_own(objective: FeatureCoverage) -> None:
    items = Items(torch.rand(3, 5, 4))
    state = objective.empty(items)
    torch.testing.assert_close(
        soft_gains(objective, items, state), objective.gains(items, state), rtol=0, atol=0
    )
