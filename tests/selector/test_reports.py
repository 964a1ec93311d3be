"""Explanations: they add up, and they are true of the search."""

import json
import pickle

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.errors import InvalidInput
from dgn.text.words import FUNCTION_WORDS
from models import shipped, untrained

MODELS = {"shipped": shipped, "untrained": untrained}


@pytest.fixture(params=MODELS)
def selection(request: pytest.FixtureRequest) -> dgn.PassageSelection:
    document = {"sentences": PAGE, "title": TITLE}
    return MODELS[request.param]().select(CLAIM, documents=[document], k=3)


def test_reasons_are_those_of_the_search(selection: dgn.PassageSelection) -> None:
    reasons = selection.explain()
    assert reasons.query == CLAIM
    assert reasons.certificate == selection.certificate
    assert tuple(one.index for one in reasons.selected) == selection.indices
    assert [one.gain for one in reasons.selected] == pytest.approx(selection.gains, rel=1e-5)
    assert reasons.passages == selection.query.passages
    for place, one in enumerate(reasons.selected):
        assert (one.reason, one.gains[-1]) == ("selected", one.gain)
        assert len(one.gains) == place + 1
        assert one.runner_up is not None
        assert reasons.reports[one.runner_up].gains[place] <= one.gain + 1e-9
    assert {one.index for one in reasons.passed} | set(selection.indices) == set(range(5))
    for one in reasons.passed:
        assert len(one.gains) == 3
        assert list(one.gains) == sorted(one.gains, reverse=True), "gains never grow"
        assert one.like in selection.indices
        assert 0 <= one.overlap <= 1


def test_coverage_is_reported_in_whole_words(selection: dgn.PassageSelection) -> None:
    reasons = selection.explain()
    assert reasons.words == tuple(CLAIM[:-1].split())
    assert sum(reasons.weights) == pytest.approx(1)
    assert reasons.coverage.shape == (4, len(reasons.words))
    assert (np.diff(reasons.coverage, axis=0) >= -1e-12).all()
    assert (reasons.coverage[0] == 0).all()
    assert reasons.coverage.max() <= 1 + 1e-9
    last = 0.0
    for number in range(len(reasons.selected)):
        covered = reasons.covered[number + 1]
        assert covered == pytest.approx(reasons.coverage[number + 1] @ reasons.weights)
        assert covered >= last
        last = covered
    covered = {word.word for one in reasons.selected for word in one.covers}
    assert {"chemistry", "windows", "cathedral", "Oriel", "Tamsett"} <= covered


def test_words_name_their_coverage_before_and_after(selection: dgn.PassageSelection) -> None:
    reasons = selection.explain()
    for number, one in enumerate(reasons.selected):
        for word in one.covers:
            place = reasons.words.index(word.word)
            assert word.before == pytest.approx(reasons.coverage[number, place])
            assert word.after == pytest.approx(reasons.coverage[number + 1, place])
            assert word.after - word.before >= 0.02


def test_function_words_are_not_content_words(selection: dgn.PassageSelection) -> None:
    reasons = selection.explain()
    content = [reasons.words[place] for place in reasons.content_words]
    assert content == ["Oriel", "Tamsett", "studied", "chemistry", "made", "windows", "cathedral"]
    assert not FUNCTION_WORDS & {word.lower() for word in content}


def test_query_of_function_words_has_them_as_content() -> None:
    reasons = untrained().select("Who was it?", ["It was who.", "No."], k=1).explain()
    assert reasons.content_words == (0, 1, 2)


def test_passage_that_covers_no_word_is_like_no_other() -> None:
    reasons = shipped().select(CLAIM, [PAGE[3], PAGE[1], "¶ …", "¡!"], k=2).explain()
    for index in (2, 3):
        why = reasons.why_not(index)
        assert why.like is None
        assert why.overlap == 0


def test_passage_with_a_score_that_covers_no_word_is_like_no_other() -> None:
    passages, scores = [PAGE[3], PAGE[1], "¶ …", PAGE[2]], [1.0, 0.9, 0.8, 0.0]
    why = shipped().select(CLAIM, passages, k=2, scores=scores).explain().why_not(2)
    assert why.like is None
    assert why.overlap == 0


def test_overlap_is_about_covered_words_only() -> None:
    # The shipped model also has features that are not words, and all passages share them.
    selection = shipped().select(CLAIM, documents=[{"sentences": PAGE, "title": TITLE}], k=2)
    f, items = selection.objective, selection.items
    worth = f.contributions(items, f.empty(items))[0]
    words = worth[:, : sum(len(facet.features) for facet in selection.facets)]
    assert worth.sum() > 1.2 * words.sum()
    for one in selection.explain().passed:
        both = np.minimum(words[one.index], words[list(selection.indices)]).sum(axis=1)
        assert one.like == selection.indices[both.argmax()]
        assert one.overlap == pytest.approx(both.max() / words[one.index].sum(), abs=1e-5)


def test_repeated_passage_is_not_selected_and_the_reason_is_named() -> None:
    page = [PAGE[3], "She made the seven windows of the cathedral.", PAGE[1]]
    selection = untrained().select(CLAIM, page, k=2)
    reasons = selection.explain()
    assert selection.indices == (0, 2)
    why = reasons.why_not(1)
    assert why.overlap > 0.9
    assert why.gains[1] < 0.5 * why.gains[0]
    with pytest.raises(InvalidInput, match=f"Passage {selection.indices[0]} was selected"):
        reasons.why_not(selection.indices[0])
    with pytest.raises(InvalidInput, match="index must be from 0 to 2; got 9"):
        reasons.why_not(9)


def test_passed_passages_are_ordered_by_their_gains(selection: dgn.PassageSelection) -> None:
    largest = [max(one.gains) for one in selection.explain().passed]
    assert largest == sorted(largest, reverse=True)


@pytest.mark.parametrize("limits", [{"max_tokens": 30}, {"k": 2, "max_tokens": 40}], ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_explanation_of_a_token_budget_is_of_the_search_with_true_coverage(
    model: str, limits: dict[str, int]
) -> None:
    selection = MODELS[model]().select(CLAIM, PAGE, titles=TITLE, **limits)
    reasons = selection.explain()
    assert [one.gain for one in reasons.selected] == pytest.approx(selection.gains, rel=1e-5)
    assert reasons.covered[-1] == pytest.approx(selection.coverage, abs=1e-9)
    assert reasons.words == tuple(CLAIM[:-1].split())


def test_scores_of_a_reranker_do_not_change_the_coverage() -> None:
    selection = shipped().select(CLAIM, PAGE, k=2, scores=[0, 0, 0, 0, 1], score_weight=3)
    reasons = selection.explain()
    assert selection.indices[0] == 4
    assert [one.gain for one in reasons.selected] == pytest.approx(selection.gains, rel=1e-5)
    assert reasons.covered[-1] == pytest.approx(selection.coverage, abs=1e-9)
    assert reasons.selected[0].covers == ()


def test_reports_are_json_and_can_be_pickled(selection: dgn.PassageSelection) -> None:
    reasons = selection.explain()
    row = json.loads(json.dumps(selection.to_dict(reasons=True), allow_nan=False))
    assert [word["word"] for word in row["words"]] == list(reasons.words)
    assert [one["index"] for one in row["selected"]] == list(selection.indices)
    assert [one["index"] for one in row["passages"]] == list(range(5)), "kept or dropped"
    for one, report in zip(row["passages"], selection.reports, strict=True):
        assert one["reason"] == report.reason
        assert one["gain"] == report.gain
        assert one["gains"] == list(report.gains)
        assert [word["word"] for word in one["covers"]] == [word.word for word in report.covers]
    assert row["gap"] == list(reasons.gap)
    for place, word in enumerate(row["words"]):
        assert word["covered"] == pytest.approx(reasons.coverage[:, place].tolist())
    assert pickle.loads(pickle.dumps(reasons)).to_dict() == reasons.to_dict()
    assert "passages" not in selection.to_dict()


def test_objective_without_coverage_is_explained_without_words() -> None:
    selector = dgn.Selector(untrained().encoder, objective=dgn.FacilityLocation())
    reasons = selector.select(CLAIM, PAGE, k=2).explain()
    assert (reasons.words, reasons.weights, reasons.content_words) == ((), (), ())
    assert reasons.coverage.shape == (3, 0)
    assert all(one.covers == () for one in reasons.selected)
    assert all(one.gain > 0 for one in reasons.selected)


def test_why_not_is_a_sentence() -> None:
    page = ["The bridge opened in 1890!!", "The Bridge opened in 1890.", "It opened.", "Cows."]
    explanation = untrained().select("The bridge opened in 1890.", page, k=1).explain()
    assert str(explanation.why_not(0)).startswith("[0] was not selected: it repeats [1]")
    assert str(explanation.why_not(2)).startswith("[2] was not selected: it would have added at")
    assert str(explanation.why_not(2)).endswith("of what it covers.")
    few = untrained().select("The bridge opened in 1890.", page, k=2, min_relevance=0.3).explain()
    assert "below min_relevance" in str(few.why_not(3))
