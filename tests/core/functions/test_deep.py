"""Deep submodular functions: layers, small gains, and what they say that a sum cannot."""

import math

import numpy as np
import pytest
import torch

from dgn.core.functions import DeepSubmodular, FeatureCoverage, Items, Log1p, Sqrt
from dgn.core import greedy
from dgn.errors import InvalidInput


def test_without_layers_it_is_feature_coverage() -> None:
    features = np.random.default_rng(0).random((20, 4))
    found = greedy(DeepSubmodular((), Log1p()), features, 5)
    plain = greedy(FeatureCoverage(), features, 5)
    assert found.indices == plain.indices
    assert found.gains == pytest.approx(plain.gains)


def test_features_of_one_unit_are_redundant() -> None:
    topics = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = greedy(DeepSubmodular((topics,)), np.eye(3), 3)
    assert found.indices == (0, 2, 1)
    assert found.gains == pytest.approx([1.0, 1.0, math.sqrt(2) - 1])


def test_small_gains_are_exact() -> None:
    f = DeepSubmodular((np.ones((1, 1)),), Log1p())
    items = Items(np.array([[1000.0], [1e-12]]))
    state = f.add(items, f.empty(items), np.array([[1.0, 0.0]]))
    inner = 1e-12 / 1001
    assert f.gains(items, state)[0, 1] == pytest.approx(
        inner / (1 + math.log1p(1000)), rel=1e-9, abs=0
    )


def test_layers_can_be_trained() -> None:
    torch.manual_seed(0)
    raw = [torch.randn(3, 4, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)]
    features = torch.rand(2, 5, 4, dtype=torch.float64, requires_grad=True)
    member = torch.rand(2, 5, dtype=torch.float64, requires_grad=True)

    def everything(first: torch.Tensor, second: torch.Tensor, *rest: torch.Tensor) -> tuple:
        layers = tuple(map(torch.nn.functional.softplus, (first, second)))
        f, items = DeepSubmodular(layers), Items(rest[0])
        state = f.add(items, f.empty(items), rest[1])
        return f.gains(items, state), f.value(state)

    parameters = [one.requires_grad_() for one in raw]
    assert torch.autograd.gradcheck(everything, (*parameters, features, member))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DeepSubmodular((np.ones(3),)), r"Layer 0 has the shape \(3,\); it needs"),
        (lambda: DeepSubmodular((np.ones((2, 3)), np.ones((1, 3)))), "Layer 1 has the shape"),
        (
            lambda: greedy(DeepSubmodular((np.ones((2, 4)),)), np.ones((2, 3)), 1),
            "The first layer has 4 inputs, and the items have 3 features",
        ),
        (
            lambda: greedy(DeepSubmodular((-np.ones((2, 3)),)), np.ones((2, 3)), 1),
            r"layers\[0\] must be finite and at least 0",
        ),
        (
            lambda: greedy(DeepSubmodular((np.full((2, 3), 1e300),)), np.full((2, 3), 1e9), 1),
            "the layers may raise sums",
        ),
        (
            lambda: greedy(DeepSubmodular((np.ones((2, 3)),), Log1p()), np.full((2, 3), 1e-310), 1),
            "The values of a set are too small for float64",
        ),
    ],
)
def test_layers_that_do_not_fit(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_context_of_other_items_counts() -> None:
    f = DeepSubmodular((np.ones((1, 2)),), Sqrt())
    before = Items(np.array([[4.0, 0.0]]))
    context = f.add(before, f.empty(before), np.ones((1, 1)))
    found = greedy(f, np.array([[4.9, 0.0], [0.0, 1.0]]), 1, context=context)
    assert found.indices == (1,)
    assert found.gains == pytest.approx([math.sqrt(3) - math.sqrt(2)])
