"""The greedy layers: finite at any temperature, correct gradients, greedy in the limit."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from dgn.core import greedy
from dgn.core.functions import FeatureCoverage, Items, SetFunction, State
from dgn.errors import InvalidInput
from dgn.learn.layers import UnfoldedGreedy
from dgn.learn.relaxations import Gumbel, Relaxation, Softmax, StraightThrough
from instances import KINDS, PAIRS, random_instance, random_matrix

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


CASES = [
    *(
        ("log1p", relaxation, temperature)
        for relaxation in RELAXATIONS
        for temperature in TEMPERATURES
    ),
    *((kind, Softmax(), temperature) for kind in KINDS for temperature in (0.01, 100.0)),
]


@pytest.mark.parametrize(("kind", "relaxation", "temperature"), CASES, ids=str)
def test_finite_at_any_temperature(kind: str, relaxation: Relaxation, temperature: float) -> None:
    torch.manual_seed(0)
    objective, items, features = ragged(kind)
    # There are more layers than items in some sets: these must stay finite too.
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
def test_low_temperature_converges_to_the_selection_of_greedy(kind: str) -> None:
    checked = 0
    for seed in range(1, 40):
        instance = random_instance(kind, seed, 7)
        features = torch.from_numpy(instance.features)[None]
        objective = KINDS[kind].build(torch.from_numpy(instance.weights))
        found = greedy(objective, features[0], 3)
        gaps = _gaps(objective, features, found.indices)
        if min(gaps) < 1e-3:  # a tie has no limit
            continue
        distances = []
        for temperature in (0.3, 0.01, 1e-4):
            unfolded = UnfoldedGreedy(3, temperature)(objective, Items(features))
            hard = torch.zeros(7, dtype=torch.float64)
            hard[list(found.indices)] = 1.0
            distances.append(float((unfolded.membership[0] - hard).abs().sum()))
        assert distances[-1] < 1e-3
        assert distances[-1] <= distances[0]
        assert unfolded.log_probs[0].argmax(dim=1).tolist() == list(found.indices)
        checked += 1
    assert checked >= 10


def _gaps(objective: SetFunction, features: Tensor, chosen: tuple[int, ...]) -> list[float]:
    """The difference between the gain of each selected item and that of its runner-up."""
    items, gaps = Items(features), []
    state, left = objective.empty(items), torch.ones(1, features.shape[1], dtype=torch.bool)
    for index in chosen:
        gains = objective.gains(items, state).where(left, -torch.inf)
        first, second = gains[0].topk(2).values.tolist()
        gaps.append(first - second)
        member = torch.zeros_like(gains).index_fill(1, torch.tensor([index]), 1.0)
        state, left = objective.add(items, state, member), left & (member == 0)
    return gaps


@pytest.mark.parametrize("kind", KINDS)
def test_straight_through_builds_the_set_of_greedy(kind: str) -> None:
    objective, items, features = ragged(kind)
    unfolded = UnfoldedGreedy(3, 1.0, StraightThrough())(objective, items)
    found = greedy(objective, Items(features.detach(), items.mask), 3)
    for row, one in enumerate(found):
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


def test_probabilities_of_the_first_layer_are_those_of_the_paper() -> None:
    instance = random_instance("log1p", 2, 5)
    features = torch.from_numpy(instance.features)
    objective = KINDS["log1p"].build(torch.from_numpy(instance.weights))
    unfolded = UnfoldedGreedy(2, 2.0)(objective, Items(features))
    gains = [instance.value((item,)) for item in range(5)]
    total = sum(math.exp(gain / 2.0) for gain in gains)
    expected = [math.exp(gain / 2.0) / total for gain in gains]
    assert unfolded.log_probs[0, 0].exp().tolist() == pytest.approx(expected)
    assert unfolded.log_others[0, 0].exp().tolist() == pytest.approx([1 - p for p in expected])


def test_choices_sum_to_the_number_of_layers_and_membership_to_less() -> None:
    features = torch.rand(3, 12, 5, generator=torch.Generator().manual_seed(0))
    soft = UnfoldedGreedy(7, 4.0)(FeatureCoverage(torch.ones(5)), features)
    torch.testing.assert_close(soft.chosen.sum(dim=1), torch.full((3,), 7.0))
    assert (soft.membership.sum(dim=1) < 7).all()
    hard = UnfoldedGreedy(7, 1e-4)(FeatureCoverage(torch.ones(5)), features)
    torch.testing.assert_close(hard.membership, hard.chosen, atol=1e-4, rtol=0)


def test_context_lowers_the_value() -> None:
    features = torch.rand(1, 5, 3, generator=torch.Generator().manual_seed(0))
    objective, items = FeatureCoverage(), Items(features)
    context = objective.add(items, objective.empty(items), torch.eye(5)[:1])
    layers = UnfoldedGreedy(2, 1.0)
    assert layers(objective, items, context).value < layers(objective, items).value


def test_prior_multiplies_the_probability_of_every_layer() -> None:
    features = torch.rand(1, 5, 3, generator=torch.Generator().manual_seed(0))
    prior = torch.tensor([[1.0, 0.5, 1.0, 0.0, 1.0]])
    layers, items = UnfoldedGreedy(1, 1.0), Items(features)
    plain = layers(FeatureCoverage(), items).log_probs[:, 0].exp() * prior
    found = layers(FeatureCoverage(), items, prior=prior).log_probs[:, 0].exp()
    torch.testing.assert_close(found, plain / plain.sum())


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_temperatures_that_are_not_allowed(temperature: float) -> None:
    with pytest.raises(InvalidInput, match="temperature must be greater than 0; got"):
        UnfoldedGreedy(2, temperature)(FeatureCoverage(), Items(torch.ones(2, 2)))


@pytest.mark.parametrize("kind", PAIRS)
def test_layers_train_through_functions_of_a_matrix(kind: str) -> None:
    objective = PAIRS[kind].function
    matrix = torch.from_numpy(random_matrix(2, 5))[None].requires_grad_()
    for relaxation in (Softmax(), StraightThrough()):
        unfolded = UnfoldedGreedy(3, 0.5, relaxation)(objective, Items(matrix))
        (gradient,) = torch.autograd.grad(unfolded.log_probs.sum() + unfolded.value.sum(), matrix)
        assert torch.isfinite(gradient).all()
        assert gradient.abs().sum() > 0
    found = greedy(objective, matrix.detach()[0], 3)
    cold = UnfoldedGreedy(len(found), 1e-4)(objective, Items(matrix.detach()))
    chosen = cold.log_probs[0].argmax(dim=1).tolist()
    assert chosen == list(found.indices)

    def run(matrix: Tensor) -> tuple[Tensor, ...]:
        unfolded = UnfoldedGreedy(2, 0.7)(objective, Items(matrix * positive))
        return unfolded.log_probs, unfolded.value

    positive = matrix.detach() > 0  # distances of 0 cannot become smaller

    assert torch.autograd.gradcheck(run, (matrix,))


def test_zero_layers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="layers must be at least 1; got 0"):
        UnfoldedGreedy(0)


@pytest.mark.parametrize("kind", KINDS)
def test_negative_features_are_refused(kind: str) -> None:
    features = torch.ones(2, 3, 5)
    features[1, 2, 0] = -0.25
    objective = KINDS[kind].build(torch.ones(5))
    with pytest.raises(InvalidInput, match=r"features must be at least 0 everywhere.*; got -0\.25"):
        UnfoldedGreedy(2, 1.0)(objective, Items(features))
    mask = torch.ones(2, 3, dtype=torch.bool)
    mask[1, 2] = False
    UnfoldedGreedy(2, 1.0)(objective, Items(features, mask))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_features_that_are_not_finite_are_refused(value: float) -> None:
    features = torch.ones(2, 3, 5)
    features[1, 2, 0] = value
    with pytest.raises(InvalidInput, match=r"features must be finite numbers; got a NaN or an inf"):
        UnfoldedGreedy(2, 1.0)(FeatureCoverage(), Items(features))
    mask = torch.ones(2, 3, dtype=torch.bool)
    mask[1, 2] = False
    assert UnfoldedGreedy(2, 1.0)(FeatureCoverage(), Items(features, mask)).value.isfinite().all()


def test_gradients_of_float32_are_those_of_float64() -> None:
    generator = torch.Generator().manual_seed(0)
    features = 3 * torch.rand(5, 12, 7, dtype=torch.float64, generator=generator)
    exact, single = (
        torch.autograd.grad(UnfoldedGreedy(7, 0.5)(FeatureCoverage(), x).log_probs.sum(), x)[
            0
        ].double()
        for x in (features.requires_grad_(), features.detach().float().requires_grad_())
    )
    assert (single - exact).abs().max() < 1e-5 * exact.abs().max()


def gains_inputs(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features (some of them 0), level, outside and weights."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    features = (3 * draw(3, 5, 4) - 1).clamp(min=0).detach().requires_grad_()
    return features, draw(3, 4), draw(3, 5), draw(4)


def gains(features: Tensor, level: Tensor, outside: Tensor, weights: Tensor) -> Tensor:
    state = State(level, outside, maker="FeatureCoverage")
    return FeatureCoverage(weights).gains(Items(features), state)


def test_gradients_of_soft_gains_by_finite_differences() -> None:
    features, level, outside, weights = gains_inputs(9)
    away_from_zero = (features + 0.1).detach().requires_grad_()
    arguments = (away_from_zero, level, outside, weights)
    assert torch.autograd.gradcheck(gains, arguments)
    assert torch.autograd.gradgradcheck(gains, arguments)


def unfolded_loss(features: Tensor, weights: Tensor) -> Tensor:
    """A number that depends on everything that the layers return, for [items, features]."""
    found = UnfoldedGreedy(2, 0.7)(FeatureCoverage(weights), Items(features[None]))
    return (found.membership**2).sum() + found.value.sum() + found.log_probs[:, :, 0].sum()


def paper_inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    features = torch.rand(4, 3, generator=generator, dtype=torch.float64) + 0.05
    return features, torch.rand(3, generator=generator, dtype=torch.float64) + 0.1


def test_second_derivatives_through_all_layers() -> None:
    arguments = tuple(one.requires_grad_() for one in paper_inputs())
    assert torch.autograd.gradgradcheck(unfolded_loss, arguments)


def test_torch_func_works_through_the_layers() -> None:
    features, weights = paper_inputs()
    tracked = features.clone().requires_grad_()
    (expected,) = torch.autograd.grad(unfolded_loss(tracked, weights), tracked)
    torch.testing.assert_close(torch.func.grad(unfolded_loss)(features, weights), expected)
    torch.testing.assert_close(torch.func.jacrev(unfolded_loss)(features, weights), expected)
    torch.testing.assert_close(
        torch.func.jacrev(unfolded_loss, argnums=1)(features, weights),
        torch.autograd.functional.jacobian(lambda w: unfolded_loss(features, w), weights),
    )
    hessian = torch.func.jacrev(torch.func.jacrev(unfolded_loss))(features, weights)
    by_autograd = torch.autograd.functional.hessian(lambda f: unfolded_loss(f, weights), features)
    torch.testing.assert_close(hessian, by_autograd)


def test_vmap_over_sets_equals_a_loop() -> None:
    features, weights = paper_inputs()
    many = torch.stack([features, features.flip(0), 2 * features])
    alone = torch.stack([unfolded_loss(one, weights) for one in many])
    torch.testing.assert_close(torch.vmap(unfolded_loss, in_dims=(0, None))(many, weights), alone)
    gradients = torch.vmap(torch.func.grad(unfolded_loss), in_dims=(0, None))(many, weights)
    for one, gradient in zip(many, gradients, strict=True):
        torch.testing.assert_close(gradient, torch.func.grad(unfolded_loss)(one, weights))


COMPILED = """
import torch
from dgn.core.functions import FeatureCoverage, Items
from dgn.core.plain import search_batch
from dgn.learn import UnfoldedGreedy

torch.manual_seed(0)
features, weights = torch.rand(2, 5, 3), torch.rand(3, requires_grad=True)
mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
layers = UnfoldedGreedy(3, 0.7)

def unfold(x, weights):
    return layers(FeatureCoverage(weights), Items(x, mask))

compiled_layers = torch.compile(layers, fullgraph=True, backend="eager")
traced_function = torch.compile(unfold, fullgraph=True, backend="aot_eager")
results = []
run_layers = lambda x, w: compiled_layers(FeatureCoverage(w), Items(x, mask))
for run in (unfold, traced_function, run_layers):
    x = features.clone().requires_grad_()
    found = run(x, weights)
    outputs = found.membership, found.log_probs, found.log_others, found.value
    total = outputs[0].square().sum() + outputs[1][:, 0].sum() + outputs[3].sum()
    results.append((*outputs, *torch.autograd.grad(total, (x, weights))))
for expected, *others in zip(*results, strict=True):
    for other in others:
        torch.testing.assert_close(expected, other)

def search(x):
    f, items = FeatureCoverage(weights.detach()), Items(x, mask)
    found = search_batch(f, items, f.empty(items), 3, items.mask)
    return found.indices, found.gains, found.bounds

compiled_search = torch.compile(search, fullgraph=True, backend="aot_eager")
for expected, found in zip(search(features), compiled_search(features), strict=True):
    torch.testing.assert_close(expected, found)
print("agrees")
"""


def test_layers_and_search_compile_without_a_graph_break() -> None:
    # In another process, because the shape checks of the tests cannot be compiled.
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "agrees", done.stderr
