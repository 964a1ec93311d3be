"""What select returns: frozen, complete in itself, and the same after pickling."""

import copy
import dataclasses
import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dgn
from claim_page import CLAIM, PAGE, TITLE
from dgn.selector.coverage import coverage_after
from models import shipped, untrained

DOCUMENT = {"text": " ".join(PAGE), "title": TITLE, "id": "page", "url": "https://example.org"}
LIMITS = [{"k": 2}, {"max_tokens": 30}, {"stop_at": 0.9}]


@pytest.fixture(params=["shipped", "untrained"])
def selector(request: pytest.FixtureRequest) -> dgn.Selector:
    return {"shipped": shipped, "untrained": untrained}[request.param]()


def arrays_in(value: Any) -> Iterator[np.ndarray]:
    """All arrays that an object refers to."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from arrays_in(one)
    elif hasattr(value, "__dict__"):
        for one in vars(value).values():
            yield from arrays_in(one)


def test_selected_passages_and_texts(selector: dgn.Selector) -> None:
    selection = selector.select(CLAIM, documents=[DOCUMENT], k=2)
    assert isinstance(selection, dgn.PassageSelection)
    assert isinstance(selection, dgn.Selection)
    assert len(selection) == len(selection.indices) == 2
    assert selection.passages == tuple(selection.query.passages[i] for i in selection.indices)
    assert selection.texts == tuple(PAGE[i] for i in selection.indices)
    assert str(selection).startswith("selected ")


def test_results_are_frozen(selector: dgn.Selector) -> None:
    selection = selector.select(CLAIM, PAGE, k=2)
    for name in ("indices", "query", "problem"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(selection, name, None)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("explained", [False, True])
def test_results_can_be_pickled(
    selector: dgn.Selector, limits: dict[str, Any], explained: bool
) -> None:
    selection = selector.select(CLAIM, documents=[DOCUMENT], **limits)
    if explained:
        selection.explain()
    again = pickle.loads(pickle.dumps(selection))
    assert again == selection
    assert copy.deepcopy(selection) == selection
    assert again.passages[0].metadata == {"url": "https://example.org"}
    assert again.relevance == selection.relevance
    assert again.coverage == selection.coverage
    assert str(again.explain()) == str(selection.explain())


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("scores", [None, [0.1, 0.5, 0.2, 0.3, 0.9]])
def test_results_do_not_keep_the_batch_alive(
    selector: dgn.Selector, limits: dict[str, Any], scores: list[float] | None
) -> None:
    long = {"query": CLAIM * 5, "passages": PAGE * 20}
    short = {"query": CLAIM, "passages": PAGE, "scores": scores}
    _, found, _ = selector.select_many([long, short, long], **limits)
    arrays = list(arrays_in([found.objective, found.items]))
    assert len(arrays) >= 3
    assert all(array.base is None for array in arrays), "a view keeps a larger array alive"
    assert found.items.features.shape[:2] == (1, 5)
    assert len(pickle.dumps(found)) < 60_000


def test_explanation_is_computed_once(selector: dgn.Selector) -> None:
    selection = selector.select(CLAIM, PAGE, k=2)
    assert selection.explain() is selection.explain()


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_scores_are_one_for_each_passage_from_0_to_1(
    selector: dgn.Selector, limits: dict[str, Any]
) -> None:
    selection = selector.select(CLAIM, ["", *PAGE, CLAIM], **limits)
    assert len(selection.relevance) == 7
    assert all(type(score) is float and 0 <= score <= 1 for score in selection.relevance)
    assert selection.relevance[0] == 0
    assert selection.relevance[-1] == max(selection.relevance) == pytest.approx(1, abs=1e-6)


def test_scores_are_the_coverage_of_each_passage_alone(selector: dgn.Selector) -> None:
    whole = selector.select(CLAIM, PAGE, titles=TITLE)
    for index, score in enumerate(whole.relevance):
        assert coverage_after(whole.objective, whole.items, [index])[-1] == pytest.approx(score)


def test_coverage_is_none_if_the_objective_does_not_define_it() -> None:
    made = dgn.Selector(untrained().encoder, objective=dgn.FacilityLocation())
    selection = made.select(CLAIM, PAGE, k=2)
    assert selection.coverage is None
    assert selection.to_dict()["coverage"] is None
    assert selection.explain().words == ()
    assert len(selection.relevance) == 5
    assert all(0 <= score <= 1 for score in selection.relevance)
    assert max(selection.relevance) > 0
    assert "covered" not in str(selection.explain())
    assert pickle.loads(pickle.dumps(selection)) == selection


@pytest.mark.parametrize("limits", [*LIMITS, {"k": 1, "max_tokens": 30}], ids=str)
def test_coverage_is_that_of_the_explanation(
    selector: dgn.Selector, limits: dict[str, Any]
) -> None:
    # The explanation of a token budget once reported the coverage of another function.
    selection = selector.select(CLAIM, PAGE, titles=TITLE, **limits)
    reasons = selection.explain()
    assert reasons.covered[-1] == pytest.approx(selection.coverage, abs=1e-9)
    assert reasons.coverage[-1] @ reasons.weights == pytest.approx(selection.coverage, abs=1e-9)
    expected = coverage_after(selection.objective, selection.items, selection.indices)
    assert list(reasons.covered) == pytest.approx(expected, abs=1e-9)


def test_coverage_is_low_if_the_query_is_not_mentioned() -> None:
    assert untrained().select("Bananas ripen", ["Postgres stores rows."], k=1).coverage < 0.2
    assert untrained().select(CLAIM, [CLAIM], k=1).coverage == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_to_dict_is_json(selector: dgn.Selector, limits: dict[str, Any]) -> None:
    selection = selector.select(CLAIM, documents=[DOCUMENT], **limits)
    row = json.loads(json.dumps(selection.to_dict(), allow_nan=False))
    assert [one["index"] for one in row["selected"]] == list(selection.indices)
    assert [one["text"] for one in row["selected"]] == list(selection.texts)
    assert [one["gain"] for one in row["selected"]] == list(selection.gains)
    assert row["certificate"] == selection.certificate.ratio
    assert row["coverage"] == selection.coverage
    assert row["query"] == CLAIM
    first = row["selected"][0]
    assert DOCUMENT["text"][first["start"] : first["end"]] == first["text"]
    assert (first["title"], first["id"], first["document"]) == (TITLE, "page", 0)
    assert first["position"] == first["index"]
    assert first["relevance"] == selection.relevance[first["index"]]
    assert first["metadata"] == {"url": "https://example.org"}


def test_unknown_places_are_left_out_of_to_dict() -> None:
    (first,) = untrained().select(CLAIM, PAGE, k=1).to_dict()["selected"]
    assert set(first) == {"index", "text", "gain", "relevance"}


@pytest.mark.parametrize("limits", [{"k": 3}, {"max_tokens": 1}], ids=str)
def test_to_pandas_has_one_row_per_selected_passage(
    selector: dgn.Selector, limits: dict[str, Any]
) -> None:
    pytest.importorskip("pandas")
    selection = selector.select(CLAIM, documents=[DOCUMENT], **limits)
    frame = selection.to_pandas()
    assert len(frame) == len(selection)
    assert frame["index"].tolist() == list(selection.indices)
    assert frame["text"].tolist() == list(selection.texts)
    assert frame["gain"].tolist() == list(selection.gains)
    assert {"relevance", "title", "document", "position", "id"} <= set(frame.columns)


def test_empty_selection_is_complete(selector: dgn.Selector) -> None:
    selection = selector.select(CLAIM, PAGE, max_tokens=1)
    assert (len(selection), selection.texts, selection.coverage) == (0, (), 0.0)
    assert selection.to_dict()["selected"] == []
    assert "nothing was selected" in str(selection.explain())
    assert len(selection.relevance) == 5
