"""Mixtures: their parts, their columns, and what is defined by the parts."""

import numpy as np
import pytest

from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Mixture,
    ProbabilisticCoverage,
)
from dgn.errors import InvalidInput

BOTH = (slice(0, 2), slice(2, 3))
TARGET = np.array([[1.0, 0.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mixture((), np.ones(0)), "functions must be at least one set function; got none"),
        (
            lambda: Mixture((FacilityLocation(),), np.ones(2)),
            "weights has 2 entries; it needs one for each of the 1 functions",
        ),
        (
            lambda: Mixture((FacilityLocation(),), np.ones(1), (slice(0), slice(1))),
            "columns has 2 entries",
        ),
    ],
)
def test_parts_that_do_not_match(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_weights_below_zero_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"weights must be .*; got -1"):
        Mixture((FacilityLocation(),), np.array([-1.0])).check(Items(np.ones((3, 2))))


def test_each_part_checks_its_own_columns() -> None:
    mixture = Mixture(
        (FacilityLocation(), ProbabilisticCoverage()), np.ones(2), (slice(0, 1), slice(1, 2))
    )
    mixture.check(Items(np.array([[5.0, 0.5]])))
    with pytest.raises(InvalidInput, match="at most 1"):
        mixture.check(Items(np.array([[0.5, 5.0]])))


def test_coverage_is_that_of_the_first_part() -> None:
    covering = FeatureCoverage(np.array([3.0, 4.0]), target=TARGET)
    mixture = Mixture((covering, FacilityLocation()), np.array([0.5, 2.0]), BOTH)
    items = Items(np.array([[[1.0, 1.0, 0.7]], [[2.0, 0.0, 0.7]]]))
    state = mixture.add(items, mixture.empty(items), np.ones((2, 1)))
    shares, weights = mixture.coverage(state)
    own_shares, own_weights = covering.coverage(state.parts[0])
    np.testing.assert_array_equal(shares, np.concatenate([own_shares, [[0.0], [0.0]]], axis=1))
    np.testing.assert_array_equal(weights, [[3.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
    assert own_weights.tolist() == [[3.0, 0.0], [3.0, 4.0]]


def test_coverage_of_a_mixture_inside_a_mixture() -> None:
    inner = Mixture((FacilityLocation(), FacilityLocation()), np.ones(2), (slice(0, 1),) * 2)
    covering = FeatureCoverage(target=np.array([1.0]))
    outer = Mixture((covering, inner), np.ones(2), (slice(0, 1), slice(1, 2)))
    items = Items(np.array([[1.0, 0.5]]))
    shares, weights = outer.coverage(outer.add(items, outer.empty(items), np.ones((1, 1))))
    np.testing.assert_allclose(shares, [[1.0, 0.0, 0.0]])
    np.testing.assert_allclose(weights, [[1.0, 0.0, 0.0]])


def test_coverage_is_not_defined_if_the_first_part_does_not_define_it() -> None:
    mixture = Mixture((FacilityLocation(), FeatureCoverage()), np.ones(2), BOTH)
    assert mixture.coverage(mixture.empty(Items(np.ones((2, 3))))) is None
    assert mixture.counted() is mixture


def test_counted_and_of_set_apply_to_the_parts() -> None:
    covering = FeatureCoverage(np.array([[3.0, 4.0], [5.0, 6.0]]), target=TARGET)
    mixture = Mixture((covering, FacilityLocation()), np.array([0.5, 2.0]), BOTH)
    counted = mixture.counted()
    assert counted.functions[0].weights.tolist() == [[3.0, 0.0], [5.0, 6.0]]
    # Only the first part counts.
    assert counted.weights.tolist() == [0.5]
    own = mixture.of_set(1)
    assert own.functions[0].weights.tolist() == [[5.0, 6.0]]
    assert own.functions[0].target.tolist() == [[2.0, 2.0]]
    features = np.random.default_rng(0).random((2, 4, 3))
    items = Items(features)
    gains = mixture.gains(items, mixture.empty(items))
    one = items.of_set(1)
    np.testing.assert_allclose(own.gains(one, own.empty(one))[0], gains[1])
