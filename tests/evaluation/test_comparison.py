import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgn.data import read_rows
from dgn.errors import InvalidInput
from dgn.evaluation import (
    Baseline,
    EvaluationSet,
    FirstPassages,
    TfIdf,
    compare,
    compare_all,
    query_rows,
    run_comparison,
)
from dgn.evaluation.comparison import (
    format_comparison,
    format_difference,
    format_score,
    format_scores,
)
from dgn.evaluation.metrics import holm_p_values
from dgn.text.query import Query
from evaluation_examples import make_examples
from small_rows import write_jsonl


@pytest.fixture(scope="module")
def evaluation_set() -> EvaluationSet:
    return EvaluationSet(make_examples())


class Oracle(Baseline):
    """Selects the gold."""

    name = "oracle"

    def __init__(self, gold: np.ndarray) -> None:
        self._gold = gold

    def select(self, queries: Sequence[Query], k: int) -> np.ndarray:
        indices = np.full((len(queries), k), -1)
        indices[:, 0] = self._gold.argmax(axis=1)
        return indices


def test_scores_of_all_kinds(evaluation_set: EvaluationSet) -> None:
    baselines = [Oracle(evaluation_set.gold), FirstPassages()]
    names: list[str] = []
    oracle, first = run_comparison(baselines, evaluation_set, (1, 3), on_progress=names.append)
    assert names == ["oracle", "first k"]
    assert [one.macro.recall for one in oracle.at] == [1.0, 1.0]
    assert oracle.at[0].micro.precision == 1.0
    examples = evaluation_set.examples
    right = np.array([example.gold[0] for example in examples]).mean()
    assert first.at[0].macro.recall == first.at[0].micro.recall == pytest.approx(right)
    assert first.at[0].recall.low <= right <= first.at[0].recall.high
    row = json.loads(json.dumps(first.to_dict()))
    assert row["at"][0]["macro"]["f1"] == pytest.approx(first.at[0].macro.f1)


def test_two_baselines_on_the_same_queries(evaluation_set: EvaluationSet) -> None:
    baselines = [Oracle(evaluation_set.gold), FirstPassages()]
    oracle, first = run_comparison(baselines, evaluation_set, (1,))
    compared = compare(oracle, first, evaluation_set, 1)
    assert compared.worse == 0
    assert compared.difference.mean == pytest.approx(1 - first.at[0].macro.recall)
    assert compared.p_value < 0.01


def test_all_comparisons_of_a_table_are_corrected(evaluation_set: EvaluationSet) -> None:
    baselines = [Oracle(evaluation_set.gold), FirstPassages(), TfIdf()]
    results = run_comparison(baselines, evaluation_set, (1, 2))
    oracle, first, tfidf = results
    compared = compare_all(results, first, evaluation_set, (1, 2))
    assert list(compared) == [oracle.name, tfidf.name]
    flat = [one for by_k in compared.values() for one in by_k.values()]
    expected = holm_p_values([one.p_value for one in flat])
    assert [one.holm_p_value for one in flat] == pytest.approx(expected)
    alone = compare(oracle, first, evaluation_set, 1)
    assert alone.holm_p_value is None
    assert compared["oracle"][1].difference == alone.difference
    again = compare_all(results[::-1], first, evaluation_set, (2, 1))
    assert {name: again[name] for name in compared} == compared
    assert compare_all([first], first, evaluation_set, (1,)) == {}


def test_selection_of_every_query(evaluation_set: EvaluationSet) -> None:
    baselines = [Oracle(evaluation_set.gold), TfIdf()]
    results = run_comparison(baselines, evaluation_set, (2,))
    rows = list(query_rows(evaluation_set, results))
    assert [row["id"] for row in rows] == [one.query.id for one in evaluation_set.examples]
    for row, example in zip(rows, evaluation_set.examples, strict=True):
        assert row["query"] == example.query.text
        assert [one["gold"] for one in row["selected"]["oracle"]] == [True]
        assert row["selected"]["oracle"][0]["sentence"] == row["gold"][0]["sentence"]
        assert row["gold"][0]["document"] == 0
        assert len(row["selected"]["TF-IDF, words"]) == 2


def test_gold_that_is_not_among_the_passages_counts_as_not_found(
    evaluation_set: EvaluationSet,
) -> None:
    one, *rest = evaluation_set.examples
    asked = EvaluationSet((dataclasses.replace(one, missing=("7",)), *rest))
    (oracle,) = run_comparison([Oracle(asked.gold)], asked, (1,))
    count = len(evaluation_set.examples)
    assert oracle.at[0].macro.recall == pytest.approx((count - 0.5) / count)
    assert oracle.at[0].micro.recall == pytest.approx(count / (count + 1))
    assert len(asked.recalls_at(1, oracle.indices)) == count


@pytest.mark.parametrize(
    "indices",
    [
        [[0]],
        np.full((25, 2), 99),
        np.full((25, 2), -2),
        np.zeros((25, 2), int),
        np.ones((25, 2)) / 2,
    ],
    ids=["shape", "too large", "too small", "twice", "floats"],
)
def test_impossible_selections_are_refused(evaluation_set: EvaluationSet, indices: Any) -> None:
    class Careless(Baseline):
        name = "careless"

        def select(self, queries: Sequence[Query], k: int) -> Any:  # noqa: ARG002
            return indices

    with pytest.raises(InvalidInput, match="careless returned"):
        run_comparison([Careless()], evaluation_set, (1,))


@pytest.mark.parametrize("ks", [(), (0,), (3, -1)])
def test_ks_are_checked(evaluation_set: EvaluationSet, ks: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="ks must be integers of at least 1"):
        run_comparison([FirstPassages()], evaluation_set, ks)


def test_set_without_queries_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no query with passages"):
        EvaluationSet(())


def test_gold_outside_of_the_passages_counts(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "query": "It sank", "passages": ["It sank.", "No."], "evidence": [[0], [7]]},
        {"id": "b", "query": "It rose", "passages": ["It rose."]},
    ]
    found = EvaluationSet(tuple(read_rows(write_jsonl(tmp_path / "q.jsonl", rows))))
    assert [query.id for query in found.queries] == ["a", "b"]
    assert found.gold.tolist() == [[True, False], [False, False]]
    assert found.missing.tolist() == [1, 0]
    (first,) = run_comparison([FirstPassages()], found, (1,))
    assert first.at[0].macro.recall == 0.5


def test_numbers_are_formatted_for_tables() -> None:
    assert format_score(0.12345) == ".123"
    assert format_score(1.0) == "1.000"
    assert format_scores([0.5, 1.0]) == ".500 / 1.000"
    assert format_difference(0.0123, 0.0004) == "+.012 (<.001)"
    assert format_difference(-0.2, 0.25) == "-.200 (.250)"


def test_corrected_p_values_are_marked(evaluation_set: EvaluationSet) -> None:
    oracle, first = Oracle(evaluation_set.gold), FirstPassages()
    ours, theirs = run_comparison([oracle, first], evaluation_set, (1,))
    (found,) = compare_all([ours, theirs], theirs, evaluation_set, (1,))["oracle"].values()
    assert format_comparison(found).endswith(")*")
    same = dataclasses.replace(found, holm_p_value=0.25)
    assert format_comparison(same).endswith("(.250) ")
    assert format_comparison(dataclasses.replace(found, holm_p_value=None)).endswith(")*")
