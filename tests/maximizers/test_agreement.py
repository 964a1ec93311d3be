"""The same selections and gains as apricot, an independent library, on the same numbers."""

import numpy as np
import pytest

from dgn.maximizers import greedy, lazy_greedy
from dgn.objectives import Concave, FacilityLocation, FeatureCoverage, Log1p, Sqrt

CONCAVE = {"log": Log1p(), "sqrt": Sqrt()}


def check_feature_coverage(apricot: object, name: str, concave: Concave) -> None:
    for seed in range(2):
        features = np.random.default_rng(seed).gamma(0.5, size=(200, 12))
        theirs = apricot.FeatureBasedSelection(30, concave_func=name, optimizer="naive")
        theirs.fit(features)
        ours = greedy(FeatureCoverage(None, concave), features, 30)
        assert list(ours.indices) == theirs.ranking.tolist()
        np.testing.assert_allclose(ours.gains, theirs.gains, atol=1e-9)
        assert lazy_greedy(FeatureCoverage(None, concave), features, 30).gains == (
            pytest.approx(ours.gains)
        )


def check_facility_location(apricot: object) -> None:
    for seed in range(2):
        points = np.random.default_rng(seed).random((150, 4))
        similarity = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))
        theirs = apricot.FacilityLocationSelection(25, metric="precomputed", optimizer="naive")
        theirs.fit(similarity)
        ours = greedy(FacilityLocation(), similarity, 25)
        assert list(ours.indices) == theirs.ranking.tolist()
        np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_apricot() -> None:
    # A single test with few searches, because apricot is compiled anew for every one of them.
    apricot = pytest.importorskip("apricot", reason="the peer library is in dgn[dev]")
    for name, concave in CONCAVE.items():
        check_feature_coverage(apricot, name, concave)
    check_facility_location(apricot)
