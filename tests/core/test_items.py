"""Items and states: shapes, padding, and parts of a batch."""

import numpy as np
import pytest
import torch

from dgn.core.functions import FeatureCoverage, Items, as_items
from dgn.errors import InvalidInput

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


def test_columns_order_and_repeat() -> None:
    items = ragged()
    np.testing.assert_array_equal(items.columns(slice(1, 2)).features, items.features[:, :, 1:2])
    order = np.array([[3, 0, 1, 2], [0, 1, 2, 3], [1, 2, 0, 3]])
    ordered = items.ordered(order)
    np.testing.assert_array_equal(ordered.features[0], items.features[0][[3, 0, 1, 2]])
    assert ordered.mask[2].tolist() == [True, True, False, False]
    repeated = Items(items.features[0]).repeat(5)
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
