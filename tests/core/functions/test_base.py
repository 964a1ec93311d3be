"""The contract of a set function: its defaults, and what sums over features refuse."""

import numpy as np
import pytest
import torch

from dgn.core.functions import (
    FeatureCoverage,
    Items,
    Mixture,
    Power,
    ProbabilisticCoverage,
    SetFunction,
)
from dgn.errors import InvalidInput
from instances import OwnCoverage, members


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
        FeatureCoverage(concave=Power(0.5)).check(Items(features))
    assert error.value.argument == "features"


def test_state_of_another_function() -> None:
    mixture = Mixture((FeatureCoverage(),), np.ones(1))
    with pytest.raises(
        InvalidInput,
        match="state must be a state that Mixture made; got a state of FeatureCoverage",
    ):
        mixture.value(FeatureCoverage().empty(Items(np.ones((3, 2)))))
