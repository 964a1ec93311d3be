import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dgn import InvalidInput
from dgn.apps.adapters.sklearn import FeatureSelector, RowSelector

FEWER_ROWS = "transform returns the selected rows, and so fewer than it is given"
ROW_CHECKS = (
    "check_transformer_general",
    "check_transformer_data_not_an_array",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit_idempotent",
)


def test_features_pass_every_check() -> None:
    check_estimator(FeatureSelector(k=2), on_skip=None)


def test_rows_pass_the_checks_that_can_apply() -> None:
    results = check_estimator(
        RowSelector(k=2),
        expected_failed_checks=dict.fromkeys(ROW_CHECKS, FEWER_ROWS),
        on_fail=None,
        on_skip=None,
    )
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed == set()
    expected = {one["check_name"] for one in results if one["status"] == "xfail"}
    assert expected == set(ROW_CHECKS)


def test_rows_of_separate_groups() -> None:
    random = np.random.default_rng(0)
    centres = np.array([[0, 0], [10, 0], [0, 10], [10, 10]])
    x = np.concatenate([centre + random.normal(size=(30, 2)) for centre in centres])
    selector = RowSelector(k=4).fit(x)
    assert {index // 30 for index in selector.indices_} == {0, 1, 2, 3}
    assert (selector.transform(x) == x[selector.indices_]).all()
    assert (np.diff(selector.gains_) <= 1e-9).all()
    assert 0.63 < selector.certificate_ <= 1
    with pytest.raises(InvalidInput, match="pass the X that `fit`"):
        selector.transform(x[:3])


def test_rows_at_the_edges_of_floats() -> None:
    x = np.array([[1e300, 0], [0, 1e300], [1e300, 1e290], [0, 0]])
    assert len(RowSelector(k=2).fit(x).indices_) == 2
    assert list(RowSelector(k=9).fit(np.ones((3, 1))).indices_) == [0, 1, 2]
    with pytest.raises(InvalidInput, match="k must be an integer"):
        RowSelector(k=0).fit(x)


def test_features_that_repeat_others_are_left_out() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 200))
    x = np.stack([a, -2 * a + 1, b, 3 * b, np.ones(200)], axis=1)
    selector = FeatureSelector(k=2).fit(x)
    assert {index // 2 for index in selector.indices_} == {0, 1}
    assert selector.get_support().sum() == 2
    assert selector.transform(x).shape == (200, 2)
    pipeline = make_pipeline(VarianceThreshold(), clone(selector))
    assert pipeline.fit_transform(x).shape == (200, 2)
