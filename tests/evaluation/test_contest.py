import dataclasses
import json

import numpy as np
import pytest
from test_contenders import make_examples

from dgn.data.records import Evidence
from dgn.errors import InvalidInput
from dgn.evaluation import claim_rows, compare, run_contest
from dgn.evaluation.contenders import Contender, FirstSentences, Questions, TfIdf
from dgn.evaluation.contenders.base import Picks


class Oracle(Contender):
    """Picks the gold."""

    name = "oracle"

    def pick(self, questions: Questions, k: int) -> Picks:
        picks = np.full((len(questions.examples), k), -1)
        picks[:, 0] = questions.gold.argmax(axis=1)
        return picks


@pytest.fixture(scope="module")
def questions() -> Questions:
    return Questions(make_examples())


def test_scores_of_all_kinds(questions: Questions) -> None:
    oracle, first = run_contest([Oracle(), FirstSentences()], questions, (1, 3), cut_off=2)
    assert [one.macro.recall for one in oracle.at] == [1.0, 1.0]
    assert oracle.at[0].micro.precision == 1.0
    assert (oracle.fever.recall, oracle.fever.precision) == (1.0, 1.0)
    right = np.array([example.gold[0] for example in questions.examples]).mean()
    assert first.at[0].macro.recall == first.at[0].micro.recall == pytest.approx(right)
    among_two = np.array([any(example.gold[:2]) for example in questions.examples]).mean()
    assert first.fever.recall == pytest.approx(among_two)
    assert first.at[0].recall.low <= right <= first.at[0].recall.high
    row = json.loads(json.dumps(first.as_row()))
    assert row["at"][0]["macro"]["f1"] == pytest.approx(first.at[0].macro.f1)


def test_two_on_the_same_claims(questions: Questions) -> None:
    oracle, first = run_contest([Oracle(), FirstSentences()], questions, (1,))
    compared = compare(oracle, first, questions, 1)
    assert compared.worse == 0
    assert compared.difference.mean == pytest.approx(1 - first.at[0].macro.recall)
    assert compared.p_value < 0.01


def test_every_pick_of_every_claim(questions: Questions) -> None:
    results = run_contest([Oracle(), TfIdf()], questions, (2,), cut_off=1)
    rows = list(claim_rows(questions, results))
    assert [row["id"] for row in rows] == [example.claim.id for example in questions.examples]
    for row in rows:
        assert [pick["gold"] for pick in row["picks"]["oracle"]] == [True]
        assert row["picks"]["oracle"][0]["sentence"] == row["gold"][0]["sentence"]
        assert len(row["picks"]["TF-IDF, words"]) == 2


def test_gold_that_is_no_candidate_counts_as_not_found(questions: Questions) -> None:
    one, *rest = questions.examples
    lost = dataclasses.replace(one, missing=(Evidence("Q", 0),))
    nothing = dataclasses.replace(one, candidates=(), gold=(), missing=(Evidence("Q", 1),))
    asked = Questions((lost, *rest), unanswerable=(nothing,))
    (oracle,) = run_contest([Oracle()], asked, (1,))
    count = len(questions.examples)
    assert oracle.at[0].macro.recall == pytest.approx((count - 0.5) / (count + 1))
    assert oracle.at[0].micro.recall == pytest.approx(count / (count + 2))
    assert oracle.fever.claims == count + 1
    assert oracle.fever.recall == pytest.approx(count / (count + 1))


@pytest.mark.parametrize(
    "picks", [[[0]], np.full((25, 2), 99), np.zeros((25, 2), int), np.full((25, 2), 0.5)]
)
def test_picks_that_are_none_are_refused(questions: Questions, picks: object) -> None:
    class Careless(Contender):
        name = "careless"

        def pick(self, questions: Questions, k: int) -> Picks:  # noqa: ARG002
            return picks

    with pytest.raises(InvalidInput, match="the picks of careless"):
        run_contest([Careless()], questions, (1,))


def test_bad_input(questions: Questions) -> None:
    with pytest.raises(InvalidInput, match="ks"):
        run_contest([Oracle()], questions, ())
