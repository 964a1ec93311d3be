"""Items, states, and the defaults of a set function."""

import numpy as np
import pytest
import torch

from dgn.core.functions import (
    FeatureCoverage,
    Items,
    Mixture,
    ProbabilisticCoverage,
    SetFunction,
    Sqrt,
    as_items,
)
from dgn.errors import InvalidInput
from instances import OwnCoverage, members

ONE_SET = np.ones((3, 2))


def ragged() -> Items:
    """Three sets of 4, 2 and 3 items; the last set has padding at its beginning too."""
    features = np.random.default_rng(0).random((3, 4, 2))
    mask = np.array([[True] * 4, [True, True, False, False], [False, True, True, False]])
    return Items(features, mask)


@pytest.mark.parametrize(
    ("features", "mask", "message"),
    [
        ([[1.0]], None, "features must be a NumPy array or a torch tensor; got list"),
        (np.ones((3, 2), dtype=int), None, "features must be an array with a floating-point dtype"),
        (np.ones(3), None, r"features has the shape \(3,\); it needs 2 dimensions for one set"),
        (np.ones((1, 2, 3, 4)), None, r"features has the shape \(1, 2, 3, 4\)"),
        (np.ones((0, 2)), None, r"features has the shape \(1, 0, 2\); it needs at least one set"),
        (
            ONE_SET,
            np.ones(4, dtype=bool),
            r"mask must be an array of shape \(1, 3\), to fit the features; got shape \(1, 4\)",
        ),
        (ONE_SET, np.ones(3), "mask must be an array of booleans; got dtype float64"),
        (ONE_SET, torch.ones(3, dtype=torch.bool), "mask must be a ndarray, as features; got Tens"),
    ],
)
def test_shapes_and_types_that_do_not_fit(features: object, mask: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Items(features, mask)


def test_single_says_whether_there_was_a_batch_axis() -> None:
    assert Items(ONE_SET).single
    assert Items(ONE_SET, np.array([True, True, False])).single
    assert not Items(ONE_SET[None]).single
    assert as_items(ONE_SET).single
    items = Items(ONE_SET)
    assert as_items(items) is items


def test_padding_is_replaced_by_zeros() -> None:
    features = np.full((2, 2), np.nan)
    features[0] = 1.0
    items = Items(features, np.array([True, False]))
    assert items.features[0].tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_slice_columns_gather_and_repeat() -> None:
    items = ragged()
    part = items.slice(1, 3)
    np.testing.assert_array_equal(part.features, items.features[:, 1:3])
    np.testing.assert_array_equal(part.mask, items.mask[:, 1:3])
    np.testing.assert_array_equal(items.columns(slice(1, 2)).features, items.features[:, :, 1:2])
    one = Items(items.features[0])
    gathered = one.gather(np.array([[3, 0], [1, 1]]))
    np.testing.assert_array_equal(gathered.features[1], items.features[0][[1, 1]])
    repeated = one.repeat(5)
    assert (repeated.batch, repeated.size) == (5, 4)
    np.testing.assert_array_equal(repeated.features[4], items.features[0])


@pytest.mark.parametrize("row", range(3))
def test_of_set_is_a_copy_of_one_set_without_padding_at_its_end(row: int) -> None:
    items = ragged()
    own = items.of_set(row)
    size = (4, 2, 3)[row]
    assert own.features.shape == (1, size, 2)
    np.testing.assert_array_equal(own.features[0], items.features[row, :size])
    np.testing.assert_array_equal(own.mask[0], items.mask[row, :size])
    own.features[:] = 7.0
    assert (items.features != 7.0).all()


def test_of_set_works_on_torch() -> None:
    items = ragged()
    tensors = Items(torch.from_numpy(items.features), torch.from_numpy(items.mask))
    assert torch.equal(tensors.of_set(1).features, tensors.features[1:2, :2])


def test_set_without_items_is_refused() -> None:
    items = Items(np.ones((2, 2, 2)), np.array([[True, True], [False, False]]))
    with pytest.raises(InvalidInput, match="Set 1 has no item; every set needs at least one"):
        items.check_filled()


def test_state_of_some_rows() -> None:
    items = ragged()
    f = FeatureCoverage()
    state = f.add(items, f.empty(items), np.full((3, 4), 0.5))
    some = state.rows(np.array([2, 0]))
    np.testing.assert_array_equal(f.value(some), f.value(state)[[2, 0]])
    assert some.maker == "FeatureCoverage"


def test_four_methods_make_a_set_function() -> None:
    with pytest.raises(TypeError, match="abstract"):
        SetFunction()
    f, items = OwnCoverage(), Items(np.array([[4.0, 0.0], [0.0, 9.0], [4.0, 0.0]]))
    state = f.add(items, f.empty(items), members((0,), 3))
    assert f.value(state).tolist() == [2.0]
    assert f.gains(items, state)[0].tolist() == pytest.approx([0.0, 3.0, 8**0.5 - 2.0])


def test_defaults_of_the_optional_methods() -> None:
    f, items = OwnCoverage(), Items(np.array([[4.0, 0.0], [0.0, 9.0]]))
    state = f.empty(items)
    np.testing.assert_array_equal(f.contributions(items, state)[..., 0], f.gains(items, state))
    assert f.contributions(items, state).shape == (1, 2, 1)
    assert f.coverage(state) is None
    assert f.monotone is None
    assert f.counted() is f
    assert f.of_set(0) is f
    f.check(items)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_features_out_of_range(value: float, library: object) -> None:
    features = np.ones((2, 3, 4))
    features[1, 2, 0] = value
    with pytest.raises(
        InvalidInput,
        match=rf"features must be finite and at least 0 everywhere; got {value:g} at \[1, 2, 0\]\.",
    ):
        FeatureCoverage().check(Items(library(features)))


def test_probabilities_are_at_most_one() -> None:
    with pytest.raises(InvalidInput, match=r"at least 0 and at most 1 everywhere; got 1\.5 at"):
        ProbabilisticCoverage().check(Items(np.full((2, 2), 1.5)))


@pytest.mark.parametrize(
    "features", [np.full((4, 1), 40_000, np.float16), np.full((4, 1), 3e38, np.float32)]
)
def test_features_whose_sum_would_overflow(features: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match="4 items of this size may add up to more than") as error:
        FeatureCoverage(concave=Sqrt()).check(Items(features))
    assert error.value.argument == "features"


def test_state_of_another_function() -> None:
    mixture = Mixture((FeatureCoverage(),), np.ones(1))
    with pytest.raises(
        InvalidInput,
        match="state must be a state that Mixture made; got a state of FeatureCoverage",
    ):
        mixture.value(FeatureCoverage().empty(Items(np.ones((3, 2)))))
