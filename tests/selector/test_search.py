import numpy as np
import pytest

from claim_page import CLAIM, PAGE
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, SetFunction
from dgn.core.search import greedy
from dgn.selector.coverage import coverage_after, covered_features, relevance_of
from dgn.selector.search import _per_token, of_query, with_scores
from dgn.text.query import Query
from models import shipped, untrained

FEATURES = np.array([[[4.0, 1.0, 0.0], [1.0, 1.0, 3.0]], [[2.0, 0.5, 1.0], [0.0, 0.0, 0.0]]])
MASK = np.array([[True, True], [True, False]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
TARGET = np.array([[4.0, 2.0, 0.0], [2.0, 2.0, 0.0]])


def batch(target: np.ndarray | None = TARGET) -> tuple[SetFunction, Items]:
    return FeatureCoverage(WEIGHTS, target=target), Items(FEATURES, MASK)


def test_one_query_of_a_batch_has_its_own_arrays() -> None:
    f, items = batch()
    own, one = of_query(f, items, 1)
    np.testing.assert_array_equal(one.features, FEATURES[1:, :1])
    np.testing.assert_array_equal(own.weights, WEIGHTS[1:])
    np.testing.assert_array_equal(own.target, TARGET[1:])
    for array in (one.features, own.weights, own.target):
        assert not np.shares_memory(array, items.features)
        assert not np.shares_memory(array, WEIGHTS)
        assert not np.shares_memory(array, TARGET)


def test_coverage_is_the_share_of_the_target() -> None:
    covered, weights = covered_features(*of_query(*batch(), 0), [0, 1])
    # Two passages that cover half of a feature each do not cover it together.
    np.testing.assert_allclose(covered, [[0, 0, 0], [1, 0.5, 0], [1, 0.5, 0]])
    np.testing.assert_allclose(weights, [1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(
        coverage_after(*of_query(*batch(), 0), [0, 1]), covered @ weights, rtol=1e-12
    )


def test_coverage_is_none_without_a_target() -> None:
    for one in (of_query(*batch(None), 0), (FacilityLocation(), Items(FEATURES[:1]))):
        assert covered_features(*one, [0]) is None
        assert coverage_after(*one, [0]) is None


def test_relevance_is_the_coverage_of_each_passage_alone() -> None:
    one = of_query(*batch(), 0)
    expected = [coverage_after(*one, [index])[-1] for index in range(2)]
    assert relevance_of(*one) == pytest.approx(expected)


def test_relevance_without_coverage_is_a_share_of_the_value() -> None:
    # The best values are 4, 1 and 3; the passages offer 5 and 5 of these 8.
    relevance = relevance_of(FacilityLocation(), Items(FEATURES[:1]))
    assert relevance == pytest.approx([5 / 8, 5 / 8])
    assert relevance_of(FacilityLocation(), Items(np.zeros((1, 2, 3)))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "f",
    [
        FeatureCoverage(),
        FeatureCoverage(np.array([1.0, 2.0, 3.0])),
        FeatureCoverage(WEIGHTS, target=TARGET),
        FacilityLocation(WEIGHTS),
    ],
    ids=["no weights", "shared weights", "weights by query", "another function"],
)
def test_scores_are_one_more_feature(f: SetFunction) -> None:
    items = Items(FEATURES, MASK)
    g, more = with_scores(f, items, [[2.0, 6.0], None], weight=0.5)
    plain = f.gains(items, f.empty(items))
    added = [[0.0, 0.5 * plain[0].max()], [0.0, 0.0]]
    np.testing.assert_allclose(g.gains(more, g.empty(more)), plain + np.array(added))


def test_scores_stand_directly_after_the_features_of_a_query() -> None:
    """Then sums over a row are the same in every batch, bit for bit."""
    weights = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 0.0]])
    f = FeatureCoverage(weights, target=weights)
    g, more = with_scores(f, Items(FEATURES, MASK), [[0.0, 1.0], [1.0]], weight=1.0)
    assert more.features[0, :, 3].tolist() == [0.0, 3.0]
    assert more.features[1, 0].tolist() == [2.0, 0.5, 0.0, 0.0], "one score says nothing"
    assert g.weights[1, 2] > 0
    assert g.target.tolist() == [[1.0, 2.0, 3.0, 0.0], [1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("scores", [[1e300, -1e300], [1.0, 0.0], [5e-324, 0.0]])
def test_scores_are_scaled_to_0_and_1(scores: list[float]) -> None:
    _, items = with_scores(*batch(), [scores, None], weight=1.0)
    assert items.features[0, :, -1].tolist() == [3.0, 0.0]


def test_tokens_do_not_pay_for_what_all_passages_share() -> None:
    f, items = _per_token(*batch())
    np.testing.assert_allclose(items.features[0], [[3, 0, 0], [0, 0, 3]])
    gains = f.gains(items, f.empty(items))
    assert gains[0, 1] == 0, "a feature that does not count in the coverage is left out"


@pytest.mark.parametrize("model", [shipped, untrained])
def test_coverage_of_a_real_query_grows(model) -> None:
    queries = [Query.of(CLAIM, PAGE), Query.of("Cows", ["A cow."])]
    objective, items = model().encoder.encode(queries)
    one = of_query(objective, items, 0)
    selected = greedy(*one, 5)[0].indices
    reached = coverage_after(*one, selected)
    assert reached[0] == 0
    assert (np.diff(reached) >= -1e-12).all()
    assert reached[-1] <= 1 + 1e-9
