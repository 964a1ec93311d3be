"""The same picks and gains as apricot, an independent library, on the same numbers."""

import numpy as np
import pytest

from dgn.maximizers import greedy, lazy_greedy
from dgn.objectives import Concave, FacilityLocation, FeatureCoverage, Log1p, Sqrt


@pytest.fixture
def apricot() -> object:
    return pytest.importorskip("apricot", reason="the peer library is in dgn[dev]")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "concave"), [("log", Log1p()), ("sqrt", Sqrt())])
def test_feature_coverage_agrees_with_apricot(apricot: object, name: str, concave: Concave) -> None:
    for seed in range(5):
        features = np.random.default_rng(seed).gamma(0.5, size=(60, 12))
        theirs = apricot.FeatureBasedSelection(10, concave_func=name, optimizer="naive")
        theirs.fit(features)
        ours = greedy(FeatureCoverage(None, concave), features, 10)[0]
        assert list(ours.indices) == theirs.ranking.tolist()
        np.testing.assert_allclose(ours.gains, theirs.gains, atol=1e-9)
        assert lazy_greedy(FeatureCoverage(None, concave), features, 10).gains == (
            pytest.approx(ours.gains)
        )


@pytest.mark.filterwarnings("ignore")
def test_facility_location_agrees_with_apricot(apricot: object) -> None:
    for seed in range(5):
        points = np.random.default_rng(seed).random((50, 4))
        similarity = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))
        theirs = apricot.FacilityLocationSelection(8, metric="precomputed", optimizer="naive")
        theirs.fit(similarity)
        ours = greedy(FacilityLocation(), similarity, 8)[0]
        assert list(ours.indices) == theirs.ranking.tolist()
        np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5)
