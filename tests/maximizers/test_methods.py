"""`maximize` by name equals the functions themselves."""

import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.maximizers import exact, greedy, lazy_greedy, maximize, stochastic_greedy
from dgn.objectives import FeatureCoverage, Items

FUNCTIONS = {
    "greedy": greedy,
    "lazy": lazy_greedy,
    "stochastic": stochastic_greedy,
    "exact": exact,
}


@pytest.mark.parametrize("method", FUNCTIONS)
def test_method_equals_its_function(method: str) -> None:
    features = np.random.default_rng(0).random((3, 9, 4))
    f = FeatureCoverage()
    assert maximize(f, features[0], 3, method) == FUNCTIONS[method](f, features[0], 3)
    together = maximize(f, features, 3, method=method)
    assert list(together) == list(FUNCTIONS[method](f, features, 3))


def test_default_is_greedy() -> None:
    features = np.random.default_rng(1).random((9, 4))
    assert maximize(FeatureCoverage(), features, 3) == greedy(FeatureCoverage(), features, 3)


def test_options_are_passed_on() -> None:
    features = np.random.default_rng(2).random((30, 4))
    f, items = FeatureCoverage(), Items(features)
    found = maximize(f, items, 4, "stochastic", seed=3, epsilon=0.5)
    assert found == stochastic_greedy(f, items, 4, seed=3, epsilon=0.5)
    context = f.add(items, f.empty(items), np.eye(30)[:1])
    found = maximize(f, items, 4, "lazy", context=context, stop_share=0.5)
    assert found == lazy_greedy(f, items, 4, context=context, stop_share=0.5)


def test_unknown_method_is_an_error() -> None:
    with pytest.raises(
        InvalidInput, match="method must be one of greedy, lazy, stochastic, exact; got 'best'"
    ):
        maximize(FeatureCoverage(), np.ones((2, 2)), 1, method="best")
