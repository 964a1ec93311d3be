"""FEVER's official rules, on cases worked out by hand."""

import pytest

from dgn.data.records import Claim, Evidence
from dgn.errors import InvalidInput
from dgn.evaluation import fever_evidence_scores

A0, A1, B0, C0 = Evidence("A", 0), Evidence("A", 1), Evidence("B", 0), Evidence("C", 0)
TWO_GROUPS = Claim("1", "x", "SUPPORTS", groups=((A0, B0), (A1,)))


@pytest.mark.parametrize(
    ("predicted", "precision", "recall"),
    [
        ([A0, B0], 1.0, 1.0),
        ([A1], 1.0, 1.0),
        ([A0], 1.0, 0.0),  # half a group is no group
        ([A0, A1, C0], 2 / 3, 1.0),
        ([C0], 0.0, 0.0),
        ([], 1.0, 0.0),  # nothing said, nothing wrong
        ([C0, C0, C0, C0, C0, A1], 0.0, 0.0),  # the sixth does not count
    ],
)
def test_one_claim(predicted: list[Evidence], precision: float, recall: float) -> None:
    scores = fever_evidence_scores([(TWO_GROUPS, predicted)])
    assert scores.precision == pytest.approx(precision)
    assert scores.recall == recall


def test_means_over_claims_without_not_enough_info() -> None:
    unknown = Claim("2", "y", "NOT ENOUGH INFO")
    other = Claim("3", "z", "REFUTES", groups=((C0,),))
    scores = fever_evidence_scores([(TWO_GROUPS, [A1, C0]), (unknown, [A0]), (other, [A0])])
    assert scores.claims == 2
    assert scores.precision == pytest.approx((1 / 2 + 0) / 2)
    assert scores.recall == pytest.approx((1 + 0) / 2)
    assert scores.f1 == pytest.approx(2 * 0.25 * 0.5 / 0.75)


def test_the_cut_off_is_an_argument() -> None:
    predicted = [C0, A1]
    assert fever_evidence_scores([(TWO_GROUPS, predicted)], cut_off=1).recall == 0
    assert fever_evidence_scores([(TWO_GROUPS, predicted)], cut_off=None).recall == 1
    with pytest.raises(InvalidInput, match="cut_off: found 0"):
        fever_evidence_scores([(TWO_GROUPS, predicted)], cut_off=0)
    with pytest.raises(InvalidInput, match="none that count"):
        fever_evidence_scores([])
