"""The same selections and gains as apricot, an independent library, on the same numbers."""

import numpy as np
import pytest

from dgn.core.functions import Concave, FacilityLocation, FeatureCoverage, Log1p, Sqrt
from dgn.core.search import greedy, lazy_greedy

CONCAVE = {"log": Log1p(), "sqrt": Sqrt()}


def check_feature_coverage(apricot: object, name: str, concave: Concave) -> None:
    features = np.random.default_rng(0).gamma(0.5, size=(400, 12))
    theirs = apricot.FeatureBasedSelection(60, concave_func=name, optimizer="naive")
    theirs.fit(features)
    ours = greedy(FeatureCoverage(None, concave), features, 60)
    assert list(ours.indices) == theirs.ranking.tolist()
    np.testing.assert_allclose(ours.gains, theirs.gains, atol=1e-9)
    lazy = lazy_greedy(FeatureCoverage(None, concave), features, 60)
    assert lazy.gains == pytest.approx(ours.gains)


def check_facility_location(apricot: object) -> None:
    points = np.random.default_rng(0).random((200, 4))
    similarity = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))
    theirs = apricot.FacilityLocationSelection(40, metric="precomputed", optimizer="naive")
    theirs.fit(similarity)
    ours = greedy(FacilityLocation(), similarity, 40)
    assert list(ours.indices) == theirs.ranking.tolist()
    np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_apricot() -> None:
    # A single test with few searches, because apricot is compiled again for every one of them.
    apricot = pytest.importorskip("apricot", reason="the peer library is in dgn[dev]")
    for name, concave in CONCAVE.items():
        check_feature_coverage(apricot, name, concave)
    check_facility_location(apricot)
