import numpy as np
import pytest

from dgn.errors import InvalidInput
from dgn.evaluation import hits_at, scores_at

GOLD = np.array([[True, False, True, False], [False, True, False, False], [False] * 4])
PICKS = np.array([[0, 1, 2], [3, 1, -1], [0, 1, 2]])


@pytest.mark.parametrize(
    ("k", "recall", "precision"),
    [(1, (1 / 2 + 0) / 2, (1 + 0) / 2), (2, (1 / 2 + 1) / 2, 1 / 2), (3, 1.0, (2 / 3 + 1 / 2) / 2)],
)
def test_scores_by_hand(k: int, recall: float, precision: float) -> None:
    scores = scores_at(k, PICKS, GOLD)
    assert scores.recall == pytest.approx(recall)
    assert scores.precision == pytest.approx(precision)
    assert scores.f1 == pytest.approx(2 * recall * precision / (recall + precision))


def test_no_hit_is_no_score() -> None:
    assert scores_at(1, np.array([[1]]), np.array([[True, False]])).f1 == 0.0


def test_nothing_to_find_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="gold: found no gold in any set"):
        scores_at(1, PICKS[:1], np.zeros((1, 4), dtype=bool))
    with pytest.raises(InvalidInput, match="k: found 0"):
        scores_at(0, PICKS, GOLD)


def test_micro_counts_sentences_and_not_claims() -> None:
    hits = hits_at(2, PICKS, GOLD)
    assert hits.recalls.tolist() == [0.5, 1.0]
    assert hits.micro.recall == pytest.approx(2 / 3)
    assert hits.micro.precision == pytest.approx(2 / 4)
    assert hits.macro.recall == pytest.approx(3 / 4)
