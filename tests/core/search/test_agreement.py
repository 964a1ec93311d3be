"""The same selections and values as apricot and submodlib, which are independent of dgn."""

import numpy as np
import pytest

from dgn.core.functions import (
    Concave,
    ConditionalGain,
    DisparityMin,
    DisparitySum,
    FacilityLocation,
    FeatureCoverage,
    GraphCut,
    Items,
    Log1p,
    LogDeterminant,
    Mixture,
    MutualInformation,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    Sqrt,
    State,
)
from dgn.core import greedy, lazy_greedy

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


def check_graph_cut(apricot: object, similarity: np.ndarray) -> None:
    for alpha in (1.5, 2.5):
        theirs = apricot.GraphCutSelection(20, metric="precomputed", alpha=alpha, optimizer="naive")
        theirs.fit(similarity)
        ours = greedy(GraphCut(1 / alpha), similarity, 20)
        count = len(ours)  # apricot goes on where nothing is gained
        assert list(ours.indices) == theirs.ranking[:count].tolist()
        np.testing.assert_allclose(np.multiply(ours.gains, alpha), theirs.gains[:count], rtol=1e-5)


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
    similarity = kernel_of(np.random.default_rng(1).random((80, 4)))
    check_graph_cut(apricot, similarity)
    check_saturated_coverage(apricot, similarity)
    check_set_cover(apricot)


def kernel_of(points: np.ndarray) -> np.ndarray:
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(-1))


SIZE, ASKED = 14, 3
WHOLE = kernel_of(np.random.default_rng(3).random((SIZE + ASKED, 4))).astype(np.float32)


def queried(f: SetFunction, items: Items) -> State:
    return f.add(items, f.empty(items), np.ones((1, items.size)))


def pairs_of_functions(peers: object) -> dict[str, tuple[object, SetFunction, Items]]:
    """Their function, ours, and the items of ours; the last items of WHOLE are the query."""
    whole = WHOLE.astype(np.float64)
    own, to_query = WHOLE[:SIZE, :SIZE], np.ascontiguousarray(WHOLE[:SIZE, SIZE:])
    among = np.ascontiguousarray(WHOLE[SIZE:, SIZE:])
    square, asked = Items(whole[:SIZE, :SIZE]), Items(whole[SIZE:, :SIZE])
    far = Items(1 - whole[:SIZE, :SIZE])
    location, volume = FacilityLocation(), LogDeterminant(1.0)
    both = Items(whole)
    wanted = queried(volume, both.slice(SIZE, SIZE + ASKED))
    dense = {"n": SIZE, "mode": "dense"}
    query = {"n": SIZE, "num_queries": ASKED, "query_sijs": to_query}
    private = {"n": SIZE, "num_privates": ASKED, "private_sijs": to_query}
    by_query = np.concatenate([whole[:SIZE, SIZE:], whole[:SIZE, SIZE:].max(1, keepdims=True)], 1)
    columns = (slice(0, ASKED), slice(ASKED, None))
    linear = FeatureCoverage(None, Power(1.0))
    return {
        "graph cut": (
            peers.GraphCutFunction(**dense, lambdaVal=0.4, ggsijs=own),
            GraphCut(0.4),
            square,
        ),
        "log-determinant": (
            peers.LogDeterminantFunction(**dense, lambdaVal=1.0, sijs=own),
            volume,
            square,
        ),
        "disparity sum": (peers.DisparitySumFunction(**dense, sijs=own), DisparitySum(), far),
        "disparity min": (peers.DisparityMinFunction(**dense, sijs=own), DisparityMin(), far),
        "FLVMI": (
            peers.FacilityLocationMutualInformationFunction(
                **query, data_sijs=own, magnificationEta=1.0
            ),
            MutualInformation(location, queried(location, asked)),
            square,
        ),
        "FLQMI": (
            peers.FacilityLocationVariantMutualInformationFunction(**query, queryDiversityEta=0.7),
            Mixture((location, linear), np.array([1.0, 0.7]), columns),
            Items(by_query),
        ),
        "GCMI": (
            peers.GraphCutMutualInformationFunction(**query),
            linear,  # without the factor 2λ, which their documentation has
            Items(whole[:SIZE, SIZE:]),
        ),
        "FLCG": (
            peers.FacilityLocationConditionalGainFunction(
                **private, data_sijs=own, privacyHardness=1.0
            ),
            ConditionalGain(location, queried(location, asked)),
            square,
        ),
        "LogDetMI": (
            peers.LogDeterminantMutualInformationFunction(
                **query,
                data_sijs=own,
                query_query_sijs=among,
                lambdaVal=1.0,
                magnificationEta=1.0,
            ),
            MutualInformation(volume, wanted),
            both.slice(0, SIZE),
        ),
        "LogDetCG": (
            peers.LogDeterminantConditionalGainFunction(
                **private,
                data_sijs=own,
                private_private_sijs=among,
                lambdaVal=1.0,
                privacyHardness=1.0,
            ),
            ConditionalGain(volume, wanted),
            both.slice(0, SIZE),
        ),
    }


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_submodlib() -> None:
    peers = pytest.importorskip("submodlib", reason="the peer library is submodlib-py on PyPI")
    random = np.random.default_rng(0)
    for name, (theirs, ours, items) in pairs_of_functions(peers).items():
        for _ in range(10):
            chosen = random.choice(SIZE, random.integers(2, 7), replace=False)
            member = np.isin(np.arange(SIZE), chosen)[None].astype(float)
            value = ours.value(ours.add(items, ours.empty(items), member)).item()
            assert value == pytest.approx(theirs.evaluate(set(chosen.tolist())), rel=1e-4), name
