"""The layers as one operation agree with the layers one by one, values and gradients."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dgn import InvalidInput
from dgn.core import native as kernels
from dgn.core.functions import (
    Concave,
    FeatureCoverage,
    Items,
    Log1p,
    OneMinusExp,
    Power,
    Saturated,
    Sqrt,
)
from dgn.core.native import ISAS, SoftSets, compiled, highest_isa
from dgn.learn import fused
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.losses import LayerwiseCrossEntropy
from dgn.learn.relaxations import Gumbel, Relaxation, Softmax, StraightThrough

pytestmark = pytest.mark.skipif(
    not kernels.is_available(), reason=f"the search is {kernels.describe()}"
)
CONCAVE = [Log1p(), Sqrt(), Power(1.0), Power(0.7), Saturated(0.8), OneMinusExp()]
RELAXATIONS = [Softmax(), Gumbel(), StraightThrough(), StraightThrough(Gumbel(0.5))]
WIDTH = 37


def instance(items: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(items)
    features = torch.rand(5, items, WIDTH) * (torch.rand(5, items, WIDTH) > 0.3)
    mask = torch.rand(5, items) > 0.2
    mask[:, 0] = True
    return features, mask, torch.rand(WIDTH), torch.rand(5, items)


def results(
    concave: Concave,
    relaxation: Relaxation,
    items: int,
    temperature: float,
    *,
    is_fused: bool,
    assignment: str = "matched",
) -> list[Tensor]:
    features, mask, weights, prior = instance(items)
    x, w, p = (one.clone().requires_grad_() for one in (features, weights, prior))
    torch.manual_seed(1)
    layers = UnfoldedGreedy(4, temperature, relaxation, fused=is_fused)
    f, own = FeatureCoverage(w, concave), Items(x, mask)
    given = f.add(own, f.empty(own), torch.full((5, items), 0.1))
    unfolded = layers(f, own, context=given, prior=p)
    gold = (torch.arange(items) < 2).expand(5, items) & mask
    loss = LayerwiseCrossEntropy(assignment)(unfolded, gold)
    loss = loss + unfolded.value.sum() + (unfolded.membership * prior).sum()
    loss.backward()
    return [
        part.detach()
        for part in (loss, unfolded.membership, unfolded.value, x.grad, w.grad, p.grad)
        if part is not None
    ]


@pytest.mark.parametrize("relaxation", RELAXATIONS, ids=str)
@pytest.mark.parametrize("concave", CONCAVE, ids=str)
@pytest.mark.parametrize("items", [1, 2, 9, 40])
def test_agrees_with_the_layers_one_by_one(
    concave: Concave, relaxation: Relaxation, items: int
) -> None:
    plain = results(concave, relaxation, items, 1.0, is_fused=False)
    together = results(concave, relaxation, items, 1.0, is_fused=True)
    for wanted, found in zip(plain, together, strict=True):
        torch.testing.assert_close(found, wanted, rtol=2e-4, atol=3e-5)


@pytest.mark.parametrize("assignment", ["ordered", "matched", "set"])
@pytest.mark.parametrize("temperature", [0.05, 4.0, 100.0])
def test_every_loss_at_every_temperature(assignment: str, temperature: float) -> None:
    settings = {"assignment": assignment, "items": 9, "temperature": temperature}
    plain = results(Log1p(), Softmax(), **settings, is_fused=False)
    together = results(Log1p(), Softmax(), **settings, is_fused=True)
    for wanted, found in zip(plain, together, strict=True):
        scale = 1 + wanted.abs().max().item()
        torch.testing.assert_close(found / scale, wanted / scale, rtol=1e-3, atol=1e-3)


def test_gradients_are_those_of_float64() -> None:
    """The plain form in float64, which gradcheck checks, is the measure of both."""
    features, mask, weights, _ = instance(12)
    found: list[Tensor] = []
    for dtype, is_fused in ((torch.float64, False), (torch.float32, False), (torch.float32, True)):
        x = features.clone().to(dtype).requires_grad_()
        layers = UnfoldedGreedy(7, 0.5, fused=is_fused)
        unfolded = layers(FeatureCoverage(weights.to(dtype)), Items(x, mask))
        gold = (torch.arange(12) < 3).expand(5, 12) & mask
        LayerwiseCrossEntropy()(unfolded, gold).backward()
        assert x.grad is not None
        found.append(x.grad.to(torch.float64))
    exact, plain, together = found
    error = (together - exact).abs().max()
    assert error < 1e-5 * exact.abs().max()
    assert error < 10 * (plain - exact).abs().max() + 1e-7


def test_memory_does_not_grow_with_the_layers() -> None:
    kept: list[int] = []
    for layers in (1, 20):
        features = torch.rand(4, 16, 64, requires_grad=True)
        sizes: list[int] = []

        def keep(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            UnfoldedGreedy(layers)(FeatureCoverage(torch.rand(64)), Items(features))
        kept.append(sum(size for size in sizes if size >= features.numel()))
    assert kept[0] == kept[1]


@pytest.mark.parametrize("level", range(len(ISAS)))
def test_every_level_of_the_processor(level: int) -> None:
    if level > highest_isa():
        pytest.skip(f"the processor has no {ISAS[level]}")
    random = np.random.default_rng(0)
    for form, parameter in (("log1p", 0.0), ("sqrt", 0.0), ("power", 0.6), ("saturated", 0.7)):
        sets = [
            SoftSets(
                random.random((3, 7, 21)).astype(np.float32),
                np.ones((3, 7), np.bool_),
                np.zeros((3, 7), np.float32),
                random.random((3, 21)).astype(np.float32),
                random.random((3, 21)).astype(np.float32),
                None,
                form,
                parameter,
                temperature=0.7,
                layers=4,
                is_hard=False,
                lowest=-8e37,
            )
        ]
        own = SoftSets(**{**vars(sets[0]), "isa": level})
        best = SoftSets(**{**vars(sets[0]), "isa": highest_isa()})
        for wanted, found in zip(best.unfold(1), own.unfold(2), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        chosen = best.unfold(1)
        gradients = tuple(np.ones_like(chosen[place]) for place in (0, 1, 4, 5))
        pairs = zip(
            best.slope(chosen[:4], gradients, 1), own.slope(chosen[:4], gradients, 2), strict=True
        )
        for wanted, found in pairs:
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_second_derivatives_ask_for_the_plain_form() -> None:
    features = torch.rand(2, 5, 4, requires_grad=True)
    value = UnfoldedGreedy(2)(FeatureCoverage(torch.rand(4)), Items(features)).value.sum()
    with pytest.raises(InvalidInput, match=r"fused=False"):
        torch.autograd.grad(value, features, create_graph=True)


def test_torch_func_goes_through() -> None:
    weights = torch.rand(4)

    def value(features: Tensor) -> Tensor:
        return UnfoldedGreedy(2)(FeatureCoverage(weights), Items(features)).value.sum()

    features = torch.rand(2, 5, 4)
    expected = torch.func.grad(value)(features)
    own = features.clone().requires_grad_()
    value(own).backward()
    torch.testing.assert_close(own.grad, expected)


def test_negative_features_are_refused() -> None:
    with pytest.raises(InvalidInput, match="apply ReLU"):
        UnfoldedGreedy(2)(FeatureCoverage(), Items(-torch.ones(1, 3, 2)))


def test_the_plain_form_where_the_operation_does_not_apply() -> None:
    class Own(Log1p):  # pyright: ignore[reportGeneralTypeIssues]
        pass

    features = torch.rand(2, 5, 4)
    f = FeatureCoverage(torch.rand(4))
    assert fused.can_fuse(compiled(f), features, Softmax())
    assert not fused.can_fuse(compiled(f), features.double(), Softmax())
    assert not fused.can_fuse(compiled(FeatureCoverage(concave=Own())), features, Softmax())
