"""Bad input gets one clear exception that names the argument, what was found, what is allowed."""

import numpy as np
import pytest
import torch

from dgn.errors import InvalidInput
from dgn.objectives import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Mixture,
    ProbabilisticCoverage,
    SetFunction,
)

ONE_SET = np.ones((3, 2))


@pytest.mark.parametrize(
    ("features", "mask", "message"),
    [
        ([[1.0]], None, "features: found list; allowed: a NumPy array or a torch tensor"),
        (np.ones((3, 2), dtype=int), None, "features: found dtype int64; allowed: a floating"),
        (np.ones(3), None, r"features: found shape \(3,\); allowed: 2 dimensions"),
        (np.ones((1, 2, 3, 4)), None, r"features: found shape \(1, 2, 3, 4\)"),
        (np.ones((0, 2)), None, r"features: found shape \(1, 0, 2\); allowed: at least one set"),
        (ONE_SET, np.ones(4, dtype=bool), r"mask: found shape \(1, 4\); allowed: \(1, 3\)"),
        (ONE_SET, np.ones(3), "mask: found dtype float64; allowed: booleans"),
        (ONE_SET, torch.ones(3, dtype=torch.bool), "mask: found Tensor; allowed: the features'"),
    ],
)
def test_shapes_and_types_that_do_not_fit(features: object, mask: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Items(features, mask)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5])
@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_features_that_no_function_allows(value: float, library: object) -> None:
    features = np.ones((2, 3, 4))
    features[1, 2, 0] = value
    objective = FeatureCoverage()
    with pytest.raises(InvalidInput, match=rf"features: found {value:g} at \[1, 2, 0\]"):
        objective.check(Items(library(features)))


def test_probabilities_are_at_most_one() -> None:
    with pytest.raises(InvalidInput, match="at least 0 and at most 1"):
        ProbabilisticCoverage().check(Items(np.full((2, 2), 1.5)))


def test_a_mixture_checks_what_each_part_reads() -> None:
    mixture = Mixture(
        (FacilityLocation(), ProbabilisticCoverage()), np.ones(2), (slice(0, 1), slice(1, 2))
    )
    mixture.check(Items(np.array([[5.0, 0.5]])))
    with pytest.raises(InvalidInput, match="at most 1"):
        mixture.check(Items(np.array([[0.5, 5.0]])))


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (FeatureCoverage(np.array([1.0, -1.0])), r"weights: found -1 at \[1\]"),
        (FeatureCoverage(np.array([1.0, np.nan])), "weights: found nan"),
        (FeatureCoverage(np.ones(3)), r"weights: found shape \(3,\); allowed: \(2,\) or \(1, 2\)"),
        (FeatureCoverage(np.ones((4, 2))), r"weights: found shape \(4, 2\)"),
        (Mixture((FacilityLocation(),), np.array([-1.0])), "weights: found -1"),
    ],
)
def test_weights_that_are_not_allowed(objective: SetFunction, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        objective.check(Items(ONE_SET))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mixture((), np.ones(0)), "functions: found none"),
        (lambda: Mixture((FacilityLocation(),), np.ones(2)), "weights: found 2 weights"),
        (
            lambda: Mixture((FacilityLocation(),), np.ones(1), (slice(0), slice(1))),
            "columns: found 2 slices",
        ),
    ],
)
def test_mixtures_whose_parts_do_not_match(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_context_of_another_width_is_refused() -> None:
    f = FeatureCoverage()
    context = f.empty(Items(np.ones((2, 7))))
    with pytest.raises(InvalidInput, match=r"context: found a level of shape \(1, 7\)"):
        f.empty(Items(ONE_SET), context)


def test_a_mixture_refuses_the_state_of_another_function() -> None:
    mixture = Mixture((FeatureCoverage(),), np.ones(1))
    with pytest.raises(InvalidInput, match="a state that Mixture made"):
        mixture.value(FeatureCoverage().empty(Items(ONE_SET)))


def test_weights_by_query_are_used_row_by_row() -> None:
    features = np.random.default_rng(0).random((2, 4, 3))
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    together = FeatureCoverage(weights)
    items = Items(features)
    gains = together.gains(items, together.empty(items))
    for row in range(2):
        alone = FeatureCoverage(weights[row])
        one = Items(features[row])
        np.testing.assert_allclose(gains[row], alone.gains(one, alone.empty(one))[0])
