"""The properties of every set function, on random instances."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.core.functions import Items, SetFunction, State
from instances import KINDS, Instance, instances, members, random_instance


def state_of(instance: Instance, chosen: tuple[int, ...]) -> State:
    f, items = instance.objective, Items(instance.features)
    return f.add(items, f.empty(items), members(chosen, instance.size))


def gains_given(instance: Instance, chosen: tuple[int, ...]) -> np.ndarray:
    return instance.objective.gains(Items(instance.features), state_of(instance, chosen))[0]


@st.composite
def nested_sets(draw: st.DrawFn) -> tuple[Instance, tuple[int, ...], tuple[int, ...]]:
    """An instance with two sets of its items, the first inside the second."""
    instance = draw(instances())
    larger = draw(st.sets(st.integers(0, instance.size - 1)))
    smaller = draw(st.sets(st.sampled_from(sorted(larger)))) if larger else set()
    return instance, tuple(sorted(smaller)), tuple(sorted(larger))


@given(nested_sets())
def test_value_equals_the_definition(
    drawn: tuple[Instance, tuple[int, ...], tuple[int, ...]],
) -> None:
    instance, _, chosen = drawn
    value = instance.objective.value(state_of(instance, chosen))
    assert value[0] == pytest.approx(instance.value(chosen), rel=1e-12, abs=1e-12)


@given(nested_sets())
def test_gains_are_differences_of_values(
    drawn: tuple[Instance, tuple[int, ...], tuple[int, ...]],
) -> None:
    instance, _, chosen = drawn
    gains = gains_given(instance, chosen)
    for item in range(instance.size):
        grown = tuple(sorted({*chosen, item}))
        difference = instance.value(grown) - instance.value(chosen)
        assert gains[item] == pytest.approx(difference, rel=1e-9, abs=1e-12)


@settings(max_examples=300)
@given(nested_sets())
def test_monotone_and_submodular(
    drawn: tuple[Instance, tuple[int, ...], tuple[int, ...]],
) -> None:
    instance, smaller, larger = drawn
    before, after = gains_given(instance, smaller), gains_given(instance, larger)
    assert (after >= 0).all()
    outside = [item for item in range(instance.size) if item not in larger]
    assert (before[outside] >= after[outside] - 1e-12).all()
    assert (after[list(larger)] <= 1e-12).all()


@given(nested_sets(), st.randoms(use_true_random=False))
def test_membership_of_zero_and_one_is_the_hard_set(
    drawn: tuple[Instance, tuple[int, ...], tuple[int, ...]], random: object
) -> None:
    instance, _, chosen = drawn
    f, items = instance.objective, Items(instance.features)
    state, order = f.empty(items), list(chosen)
    random.shuffle(order)
    for item in order:
        state = f.add(items, state, members((item,), instance.size))
    at_once = state_of(instance, chosen)
    np.testing.assert_allclose(f.value(state), f.value(at_once), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(f.gains(items, state), f.gains(items, at_once), atol=1e-12)


@given(instances(), st.integers(0, 2**32 - 1))
def test_order_of_items_does_not_matter(instance: Instance, seed: int) -> None:
    random = np.random.default_rng(seed)
    order = random.permutation(instance.size)
    member = random.random((1, instance.size))
    f = instance.objective
    items, shuffled = Items(instance.features), Items(instance.features[order])
    state = f.add(items, f.empty(items), member)
    other = f.add(shuffled, f.empty(shuffled), member[:, order])
    np.testing.assert_allclose(f.value(state), f.value(other), rtol=1e-12)
    np.testing.assert_allclose(
        f.gains(items, state)[:, order], f.gains(shuffled, other), rtol=1e-9, atol=1e-12
    )


@given(st.sampled_from(sorted(KINDS)), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_padding_and_batching_change_nothing(kind: str, sizes: list[int]) -> None:
    f = random_instance(kind, 1, 1).objective
    sets = [random_instance(kind, seed, size).features for seed, size in enumerate(sizes)]
    soft = [np.random.default_rng(seed).random(size) for seed, size in enumerate(sizes)]
    features = np.full((len(sizes), max(sizes) + 2, sets[0].shape[1]), np.nan)
    mask = np.zeros(features.shape[:2], dtype=bool)
    member = np.zeros(features.shape[:2])
    for row, size in enumerate(sizes):
        features[row, :size], mask[row, :size], member[row, :size] = sets[row], True, soft[row]
    items = Items(features, mask)
    state = f.add(items, f.empty(items), member)
    gains, values = f.gains(items, state), f.value(state)
    assert (gains[~mask] == 0).all()
    for row, size in enumerate(sizes):
        alone = Items(sets[row])
        state_alone = f.add(alone, f.empty(alone), soft[row][None])
        np.testing.assert_allclose(gains[row, :size], f.gains(alone, state_alone)[0], atol=1e-12)
        np.testing.assert_allclose(values[row], f.value(state_alone)[0], rtol=1e-12)


@given(nested_sets())
def test_context_of_other_items_gives_the_conditional_function(
    drawn: tuple[Instance, tuple[int, ...], tuple[int, ...]],
) -> None:
    instance, _, given_items = drawn
    if not given_items:
        return
    f = instance.objective
    context_items = Items(instance.features[list(given_items)])
    context = f.add(context_items, f.empty(context_items), np.ones((1, len(given_items))))
    items = Items(instance.features)
    start = f.empty(items, context)
    np.testing.assert_allclose(f.value(start), [instance.value(given_items)], atol=1e-12)
    doubled = Instance(
        instance.kind,
        np.concatenate([instance.features, instance.features[list(given_items)]]),
        instance.weights,
    )
    extra = tuple(range(instance.size, doubled.size))
    expected = [
        doubled.value((item, *extra)) - doubled.value(extra) for item in range(instance.size)
    ]
    np.testing.assert_allclose(f.gains(items, start)[0], expected, atol=1e-9)


@given(nested_sets())
def test_contributions_sum_to_gains(
    drawn: tuple[Instance, tuple[int, ...], tuple[int, ...]],
) -> None:
    instance, _, chosen = drawn
    f, items, state = instance.objective, Items(instance.features), state_of(instance, chosen)
    by_feature = f.contributions(items, state)
    assert (by_feature >= 0).all()
    np.testing.assert_allclose(by_feature.sum(axis=-1), f.gains(items, state), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_torch_and_numpy_agree_in_every_dtype(kind: str, dtype: type) -> None:
    instance = random_instance(kind, 5, 6)
    features = instance.features.astype(dtype)[None]
    member = np.random.default_rng(0).random((1, 6)).astype(dtype)
    results = []
    for convert in (np.asarray, torch.from_numpy):
        f = KINDS[kind].build(convert(instance.weights))
        items = Items(convert(features))
        state = f.add(items, f.empty(items), convert(member))
        gains, value = f.gains(items, state), f.value(state)
        assert gains.dtype == items.features.dtype
        assert value.dtype == items.features.dtype
        results.append((np.asarray(gains), np.asarray(value)))
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_features_weights_and_membership(kind: str) -> None:
    instance = random_instance(kind, 8, 5)
    features = torch.from_numpy(np.clip(instance.features, 0.01, 0.97))[None].requires_grad_()
    weights = torch.from_numpy(instance.weights + 0.1).requires_grad_()
    member = torch.linspace(0.1, 0.6, 5, dtype=torch.float64)[None].requires_grad_()

    def everything(features: torch.Tensor, weights: torch.Tensor, member: torch.Tensor) -> tuple:
        f: SetFunction = KINDS[kind].build(weights)
        items = Items(features)
        state = f.add(items, f.empty(items), member)
        return f.gains(items, state), f.value(state)

    assert torch.autograd.gradcheck(everything, (features, weights, member))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_at_zeros_and_ones(kind: str) -> None:
    features = torch.tensor([[[0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.5, 0.0]]])
    features.requires_grad_()
    f = KINDS[kind].build(torch.ones(5))
    items = Items(features)
    state = f.add(items, f.empty(items), torch.tensor([[1.0, 0.0]]))
    (f.gains(items, state).sum() + f.value(state).sum()).backward()
    assert features.grad is not None
    assert torch.isfinite(features.grad).all()


@pytest.mark.parametrize("kind", KINDS)
def test_selected_item_has_no_gain_and_soft_item_has_the_rest(kind: str) -> None:
    instance = random_instance(kind, 4, 3)
    f, items = instance.objective, Items(instance.features)
    state = f.add(items, f.empty(items), np.array([[1.0, 0.5, 0.0]]))
    gains = f.gains(items, state)[0]
    assert gains[0] == pytest.approx(0.0, abs=1e-12)
    fuller = f.add(items, state, members((1,), 3))
    assert gains[1] == pytest.approx(f.value(fuller)[0] - f.value(state)[0], abs=1e-12)
