"""The coverage functions: weights, contexts, coverage, and the functions of one set."""

import numpy as np
import pytest
import torch

from dgn.core import greedy, lazy_greedy
from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Power,
    ProbabilisticCoverage,
    SetFunction,
    WeightedCoverage,
)
from dgn.errors import InvalidInput

ONE_SET = np.ones((3, 2))
TARGET = np.array([[2.0, 4.0, 0.0], [1.0, 0.0, 8.0]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def two_sets() -> Items:
    features = np.random.default_rng(0).random((2, 4, 3))
    return Items(features, np.array([[True] * 4, [True, True, True, False]]))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            np.array([1.0, -1.0]),
            r"weights must be finite and at least 0 everywhere; got -1 at \[1\]",
        ),
        (np.array([1.0, np.nan]), "weights must be finite and at least 0 everywhere; got nan"),
        (
            np.ones(3),
            r"weights must be an array of shape \(2,\) or \(1, 2\), to fit the features; "
            r"got shape \(3,\)",
        ),
        (np.ones((4, 2)), r"weights must be .*; got shape \(4, 2\)"),
    ],
)
def test_weights_that_are_not_allowed(weights: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        FeatureCoverage(weights).check(Items(ONE_SET))


def test_context_of_another_width_is_refused() -> None:
    f = FeatureCoverage()
    context = f.empty(Items(np.ones((2, 7))))
    with pytest.raises(
        InvalidInput,
        match=r"context must be a state with a level of shape \(1, 2\).*; "
        r"got a level of shape \(1, 7\)",
    ):
        f.empty(Items(ONE_SET), context)


def test_weights_per_set_are_used_row_by_row() -> None:
    features = np.random.default_rng(0).random((2, 4, 3))
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    together = FeatureCoverage(weights)
    items = Items(features)
    gains = together.gains(items, together.empty(items))
    for row in range(2):
        alone = FeatureCoverage(weights[row])
        one = Items(features[row])
        np.testing.assert_allclose(gains[row], alone.gains(one, alone.empty(one))[0])


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_coverage_is_the_share_of_the_target(library: object) -> None:
    f = FeatureCoverage(library(WEIGHTS), target=library(TARGET))
    items = Items(library(np.array([[[2.0, 2.0, 5.0]], [[0.5, 3.0, 0.0]]])))
    empty = f.empty(items)
    shares, weights = f.coverage(empty)
    assert shares.tolist() == [[0.0] * 3] * 2
    shares, weights = f.coverage(f.add(items, empty, library(np.ones((2, 1)))))
    np.testing.assert_allclose(shares, [[1.0, 0.5, 0.0], [0.5, 0.0, 0.0]])
    # Features without a target do not count.
    assert weights.tolist() == [[1.0, 2.0, 0.0], [4.0, 0.0, 6.0]]


def test_coverage_beyond_the_target_stays_one() -> None:
    f = FeatureCoverage(target=np.array([1.0, 1.0]))
    items = Items(np.array([[3.0, 0.2]]))
    shares, weights = f.coverage(f.add(items, f.empty(items), np.ones((1, 1))))
    np.testing.assert_allclose(shares, [[1.0, 0.2]])
    assert weights.tolist() == [[1.0, 1.0]]


def test_coverage_does_not_depend_on_the_concave_function() -> None:
    f = FeatureCoverage(None, Power(0.5), target=np.array([4.0]))
    items = Items(np.array([[1.0]]))
    shares, _ = f.coverage(f.add(items, f.empty(items), np.ones((1, 1))))
    assert shares.tolist() == [[0.25]]


@pytest.mark.parametrize("f", [FeatureCoverage(), FacilityLocation(), ProbabilisticCoverage()])
def test_coverage_is_not_defined_without_a_target(f: SetFunction) -> None:
    assert f.coverage(f.empty(Items(ONE_SET))) is None
    assert f.counted() is f


def test_target_does_not_change_the_function() -> None:
    items = two_sets()
    plain, with_target = FeatureCoverage(WEIGHTS), FeatureCoverage(WEIGHTS, target=TARGET)
    state = plain.add(items, plain.empty(items), np.full((2, 4), 0.3))
    np.testing.assert_array_equal(with_target.gains(items, state), plain.gains(items, state))
    np.testing.assert_array_equal(with_target.value(state), plain.value(state))


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("weights", [None, WEIGHTS[0], WEIGHTS])
def test_counted_keeps_the_features_with_a_target(library: object, weights: object) -> None:
    given = None if weights is None else library(weights)
    counted = FeatureCoverage(given, target=library(TARGET)).counted()
    expected = np.where(TARGET > 0, np.ones(3) if weights is None else weights, 0.0)
    np.testing.assert_array_equal(counted.weights, expected)
    np.testing.assert_array_equal(counted.target, TARGET)


@pytest.mark.parametrize("kind", [FeatureCoverage, FacilityLocation, ProbabilisticCoverage])
@pytest.mark.parametrize("weights", [None, WEIGHTS[0], WEIGHTS[:1], WEIGHTS])
def test_of_set_is_the_function_of_one_set(kind: type[WeightedCoverage], weights: object) -> None:
    items, f = two_sets(), kind(weights)
    member = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]])
    state = f.add(items, f.empty(items), member)
    for row in range(2):
        own, one = f.of_set(row), items.of_set(row)
        alone = own.add(one, own.empty(one), member[row : row + 1, : one.size])
        np.testing.assert_allclose(own.value(alone)[0], f.value(state)[row])
        np.testing.assert_allclose(
            own.gains(one, alone)[0], f.gains(items, state)[row, : one.size], atol=1e-12
        )


def test_of_set_copies_weights_and_target() -> None:
    weights, target = WEIGHTS.copy(), TARGET.copy()
    own = FeatureCoverage(weights, Power(0.5), target).of_set(1)
    weights[:], target[:] = 0.0, 0.0
    assert own.weights.tolist() == [[4.0, 5.0, 6.0]]
    assert own.target.tolist() == [[1.0, 0.0, 8.0]]
    assert own.concave == Power(0.5)


def test_soft_items_of_a_facility_location() -> None:
    f, items = FacilityLocation(), Items(np.array([[0.8, 0.0], [0.5, 0.5]]))
    state = f.add(items, f.empty(items), np.array([[0.5, 1.0]]))
    np.testing.assert_allclose(state.level, [[0.5, 0.5]])
    np.testing.assert_allclose(f.gains(items, state), [[0.3, 0.0]])


def test_greedy_with_weights_per_set() -> None:
    items = Items(np.eye(3)[None].repeat(2, axis=0))
    found = greedy(FeatureCoverage(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])), items, 3)
    assert found.indices.tolist() == [[2, 1, 0], [0, 1, 2]]


@pytest.mark.parametrize("weights", [[1.0, 2.0], (1, 2)])
def test_weights_and_targets_may_be_lists(weights: object) -> None:
    features = np.array([[1.0, 0.0], [0.0, 1.0]])
    f = FeatureCoverage(weights, target=[1.0, 1.0])
    expected = greedy(FeatureCoverage(np.array([1.0, 2.0])), features, 2)
    assert greedy(f, features, 2) == lazy_greedy(f, features, 2) == expected
    with pytest.raises(InvalidInput, match="weights must be an array of numbers; got 'heavy'"):
        FeatureCoverage("heavy")
