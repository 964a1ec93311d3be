import numpy as np
import pytest

from claim_page import CLAIM, PAGE
from dgn.core import greedy
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, SetFunction
from dgn.selector.coverage import coverage_after, covered_features, relevance_of
from dgn.selector.search import of_query
from dgn.text.query import Query
from models import shipped, untrained

FEATURES = np.array([[[4.0, 1.0, 0.0], [1.0, 1.0, 3.0]], [[2.0, 0.5, 1.0], [0.0, 0.0, 0.0]]])
MASK = np.array([[True, True], [True, False]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
TARGET = np.array([[4.0, 2.0, 0.0], [2.0, 2.0, 0.0]])


QUERIES = [Query.of("q", ["a", "b"]), Query.of("q", ["a"])]


def batch(target: np.ndarray | None = TARGET) -> tuple[SetFunction, Items]:
    return FeatureCoverage(WEIGHTS, target=target), Items(FEATURES, MASK)


def test_one_query_of_a_batch_has_its_own_arrays() -> None:
    f, items = batch()
    own, one = of_query(QUERIES, f, items, 1)
    np.testing.assert_array_equal(one.features, FEATURES[1:, :1])
    np.testing.assert_array_equal(own.weights, WEIGHTS[1:])
    np.testing.assert_array_equal(own.target, TARGET[1:])
    for array in (one.features, own.weights, own.target):
        assert not np.shares_memory(array, items.features)
        assert not np.shares_memory(array, WEIGHTS)
        assert not np.shares_memory(array, TARGET)


def test_coverage_is_the_share_of_the_target() -> None:
    covered, weights = covered_features(*of_query(QUERIES, *batch(), 0), [0, 1])
    # Two passages that cover half of a feature each do not cover it together.
    np.testing.assert_allclose(covered, [[0, 0, 0], [1, 0.5, 0], [1, 0.5, 0]])
    np.testing.assert_allclose(weights, [1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(
        coverage_after(*of_query(QUERIES, *batch(), 0), [0, 1]), covered @ weights, rtol=1e-12
    )


def test_coverage_is_none_without_a_target() -> None:
    for one in (of_query(QUERIES, *batch(None), 0), (FacilityLocation(), Items(FEATURES[:1]))):
        assert covered_features(*one, [0]) is None
        assert coverage_after(*one, [0]) is None


def test_relevance_is_the_coverage_of_each_passage_alone() -> None:
    one = of_query(QUERIES, *batch(), 0)
    expected = [coverage_after(*one, [index])[-1] for index in range(2)]
    assert relevance_of(*one) == pytest.approx(expected)


def test_relevance_without_coverage_is_a_share_of_the_value() -> None:
    # The best values are 4, 1 and 3; the passages offer 5 and 5 of these 8.
    relevance = relevance_of(FacilityLocation(), Items(FEATURES[:1]))
    assert relevance == pytest.approx([5 / 8, 5 / 8])
    assert relevance_of(FacilityLocation(), Items(np.zeros((1, 2, 3)))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("model", [shipped, untrained])
def test_coverage_of_a_real_query_grows(model) -> None:
    queries = [Query.of(CLAIM, PAGE), Query.of("Cows", ["A cow."])]
    objective, items = model().encoder.encode(queries)
    one = of_query(queries, objective, items, 0)
    selected = greedy(*one, 5)[0].indices
    reached = coverage_after(*one, selected)
    assert reached[0] == 0
    assert (np.diff(reached) >= -1e-12).all()
    assert reached[-1] <= 1 + 1e-9


@pytest.mark.parametrize("breadth", [0, None, 1])
def test_nothing_is_not_selected(breadth: float | None) -> None:
    passages = ["", "  \n", "\u200b", "Ada swims.", "Bo runs."]
    found = shipped().select("Ada swims.", passages, k=5, breadth=breadth)
    assert set(found.indices) <= {3, 4}
    assert [report.reason for report in found.reports[:3]] == ["adds_nothing"] * 3
    assert shipped().select("Ada swims.", passages[:3], k=5, breadth=breadth).indices == ()
    assert shipped().select(None, passages, k=5).indices == (3, 4)
    assert shipped().select("Ada swims.", passages, k=2, pinned=[0]).indices[0] == 0


def test_too_long_is_what_would_have_been_taken() -> None:
    passages = [
        "Ada swims in the lake.",
        "Ada sings in the choir, " + "and so on and so on " * 30,
        *[f"Number {number} is about something else." for number in range(20)],
    ]
    found = shipped().select(
        "Ada swims in the lake and sings in the choir.", passages, max_tokens=40
    )
    reasons = [report.reason for report in found.reports]
    assert reasons[0] == "selected"
    assert reasons[1] == "too_long"
    assert reasons.count("too_long") <= 2


def test_the_result_says_how_many_passages_breadth_compares() -> None:
    passages = [f"Ship {number} sailed to harbour {number % 7}." for number in range(600)]
    found = shipped().select("Which ship sailed to the harbour?", passages, k=3)
    assert found.compared == 512
    assert "breadth is about the 512 passages that add most" in str(found.explain())
    assert shipped().select("Which ship?", passages[:500], k=3).compared is None
    assert shipped().select("Which ship?", passages, k=3, breadth=0).compared is None
    given = shipped().select("Which ship sailed?", passages, k=3, given=[passages[0]])
    assert given.compared == 512
    assert 0 not in given.indices
