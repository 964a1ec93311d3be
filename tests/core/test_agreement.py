"""The same selections and values as apricot, which is independent of dgn."""

import numpy as np
import pytest

from dgn.core import greedy, lazy_greedy
from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    GraphCut,
    Log1p,
    Power,
    ProbabilisticCoverage,
    Saturated,
)

CONCAVE = {"log": Log1p(), "sqrt": Power(0.5)}


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


def check_graph_cut(apricot: object, similarity: np.ndarray) -> None:
    alpha = 2.5
    theirs = apricot.GraphCutSelection(20, metric="precomputed", alpha=alpha, optimizer="naive")
    theirs.fit(similarity)
    ours = greedy(GraphCut(1 / alpha), similarity, 20)
    assert list(ours.indices) == theirs.ranking.tolist()
    np.testing.assert_allclose(np.multiply(ours.gains, alpha), theirs.gains, rtol=1e-5)


def check_saturated_coverage(apricot: object, similarity: np.ndarray) -> None:
    theirs = apricot.SaturatedCoverageSelection(
        20, metric="precomputed", alpha=0.05, optimizer="naive"
    )
    theirs.fit(similarity)
    caps = 0.05 * similarity.sum(axis=0)
    ours = greedy(FeatureCoverage(caps, Saturated(1.0)), similarity / caps, 20)
    np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-5, atol=1e-6)


def check_set_cover(apricot: object) -> None:
    has = (np.random.default_rng(2).random((60, 40)) < 0.15).astype(float)
    theirs = apricot.MaxCoverageSelection(8, optimizer="naive")
    theirs.fit(has)
    for f in (FacilityLocation(), ProbabilisticCoverage(), FeatureCoverage(None, Saturated(1.0))):
        ours = greedy(f, has, 8)
        np.testing.assert_allclose(ours.gains, theirs.gains, rtol=1e-9)
        assert list(ours.indices) == theirs.ranking.tolist()


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_apricot() -> None:
    # A single test with few searches, because apricot is compiled again for every one of them.
    apricot = pytest.importorskip("apricot", reason="the peer library is in dgn[dev]")
    for name, concave in CONCAVE.items():
        check_feature_coverage(apricot, name, concave)
    check_facility_location(apricot)
    points = np.random.default_rng(1).random((80, 4))
    similarity = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))
    check_graph_cut(apricot, similarity)
    check_saturated_coverage(apricot, similarity)
    check_set_cover(apricot)
