import numpy as np
import pytest

from claim_page import CLAIM, PAGE
from dgn.maximizers import greedy
from dgn.objectives import FacilityLocation, FeatureCoverage, Items
from dgn.query import Query
from dgn.selector.problem import Problem
from models import shipped, untrained

FEATURES = np.array([[[4.0, 1.0, 0.0], [1.0, 1.0, 3.0]], [[2.0, 0.5, 1.0], [0.0, 0.0, 0.0]]])
MASK = np.array([[True, True], [True, False]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
TARGET = np.array([[4.0, 2.0, 0.0], [2.0, 2.0, 0.0]])


def problem(target: np.ndarray | None = TARGET) -> Problem:
    return Problem(FeatureCoverage(WEIGHTS, target=target), Items(FEATURES, MASK))


def test_problem_of_one_query_has_its_own_arrays() -> None:
    whole = problem()
    one = whole.of_query(1)
    np.testing.assert_array_equal(one.items.features, FEATURES[1:, :1])
    np.testing.assert_array_equal(one.objective.weights, WEIGHTS[1:])
    np.testing.assert_array_equal(one.objective.target, TARGET[1:])
    for array in (one.items.features, one.objective.weights, one.objective.target):
        assert not np.shares_memory(array, whole.items.features)
        assert not np.shares_memory(array, WEIGHTS)
        assert not np.shares_memory(array, TARGET)


def test_coverage_is_the_share_of_the_target() -> None:
    covered, weights = problem().of_query(0).covered([0, 1])
    # Two passages that cover half of a feature each do not cover it together.
    np.testing.assert_allclose(covered, [[0, 0, 0], [1, 0.5, 0], [1, 0.5, 0]])
    np.testing.assert_allclose(weights, [1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(
        problem().of_query(0).coverage_after([0, 1]), covered @ weights, rtol=1e-12
    )


def test_coverage_is_none_without_a_target() -> None:
    for one in (problem(None).of_query(0), Problem(FacilityLocation(), Items(FEATURES[:1]))):
        assert one.covered([0]) is None
        assert one.coverage_after([0]) is None


def test_relevance_is_the_coverage_of_each_passage_alone() -> None:
    one = problem().of_query(0)
    expected = [one.coverage_after([index])[-1] for index in range(2)]
    assert one.relevance() == pytest.approx(expected)


def test_relevance_without_coverage_is_a_share_of_the_value() -> None:
    one = Problem(FacilityLocation(), Items(FEATURES[:1]))
    # The best values are 4, 1 and 3; the passages offer 5 and 5 of these 8.
    assert one.relevance() == pytest.approx([5 / 8, 5 / 8])
    nothing = Problem(FacilityLocation(), Items(np.zeros((1, 2, 3))))
    assert nothing.relevance() == (0.0, 0.0)


def test_scores_are_a_modular_part() -> None:
    with_scores = problem().with_scores([[2.0, 6.0], None], weight=0.5)
    assert with_scores.items.features[..., -1].tolist() == [[0.0, 3.0], [0.0, 0.0]]
    f, items = problem().objective, problem().items
    plain = f.gains(items, f.empty(items))
    g, more = with_scores.objective, with_scores.items
    gains = g.gains(more, g.empty(more))
    added = [[0.0, 0.5 * plain[0].max()], [0.0, 0.0]]
    np.testing.assert_allclose(gains, plain + np.array(added))


@pytest.mark.parametrize("scores", [[1e300, -1e300], [1.0, 0.0], [5e-324, 0.0]])
def test_scores_are_scaled_to_0_and_1(scores: list[float]) -> None:
    found = problem().with_scores([scores, None], weight=1.0)
    assert found.items.features[0, :, -1].tolist() == [3.0, 0.0]


def test_tokens_do_not_pay_for_what_all_passages_share() -> None:
    priced = problem().priced()
    np.testing.assert_allclose(priced.items.features[0], [[3, 0, 0], [0, 0, 3]])
    gains = priced.objective.gains(priced.items, priced.objective.empty(priced.items))
    assert gains[0, 1] == 0, "a feature that does not count in the coverage is left out"


@pytest.mark.parametrize("model", [shipped, untrained])
def test_coverage_of_a_real_query_grows(model) -> None:
    queries = [Query.of(CLAIM, PAGE), Query.of("Cows", ["A cow."])]
    objective, items = model().encoder.encode(queries)
    one = Problem(objective, items).of_query(0)
    selected = greedy(one.objective, one.items, 5)[0].indices
    reached = one.coverage_after(selected)
    assert reached[0] == 0
    assert (np.diff(reached) >= -1e-12).all()
    assert reached[-1] <= 1 + 1e-9
