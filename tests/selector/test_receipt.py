"""Receipts: every passage has its reason, and the receipt can be computed again."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from dgn.selector.receipt import verify_receipt

import dgn
from claim_page import CLAIM, PAGE
from models import shipped, untrained

PASSAGES = [*PAGE, PAGE[1].upper(), "Cows graze on the meadow.", "The ice came."]
CASES: list[dict[str, Any]] = [
    {"k": 2},
    {"max_tokens": 30},
    {"max_tokens": 30, "count_tokens": len},
    {"stop_at": 0.6},
    {"k": 3, "min_relevance": 0.1},
    {"k": 3, "scores": [1, 5, 2, 3, 4, 0, 0, 1]},
    {"k": 3, "given": ["The ice came."], "pinned": [4]},
    {"k": 4, "groups": list("aabbccdd"), "max_per_group": 1},
    {
        "k": 3,
        "query_embedding": np.arange(4.0),
        "embeddings": np.random.default_rng(0).normal(size=(8, 4)),
    },
]


def receipt_of(**arguments: Any) -> dict[str, Any]:
    selection = shipped().select(CLAIM, PASSAGES, **arguments)
    return json.loads(selection.receipt().to_json())


@pytest.mark.parametrize("arguments", CASES, ids=lambda one: " ".join(one))
def test_a_receipt_is_computed_again(arguments: dict[str, Any]) -> None:
    receipt = receipt_of(**arguments)
    assert [one["index"] for one in receipt["passages"]] == list(range(8))
    kept = [one["index"] for one in receipt["passages"] if one["kept"]]
    assert sorted(receipt["selected"]) == kept
    assert verify_receipt(receipt, shipped()) == []


def test_every_reason_occurs() -> None:
    found = {one["reason"] for case in CASES for one in receipt_of(**case)["passages"]}
    assert found >= {
        *("selected", "pinned", "repeats", "repeats_given", "irrelevant", "over_quota"),
        *("too_long", "stopped", "less_gain"),
    }


def test_reasons_are_true() -> None:
    receipt = receipt_of(max_tokens=30)
    spent = sum(one["tokens"] for one in receipt["passages"] if one["kept"])
    assert spent <= 30
    for one in receipt["passages"]:
        if one["reason"] == "too_long":
            assert one["tokens"] > 30 - spent
    receipt = receipt_of(k=3, min_relevance=0.1)
    for one in receipt["passages"]:
        assert (one["relevance"] < 0.1) == (one["reason"] == "irrelevant")
    assert receipt_of(k=2)["passages"][5]["of"] == 1, "of equal texts, the one in lower case stays"
    assert receipt["gap"] == list(shipped().select(CLAIM, PASSAGES, k=3).explain().gap)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["selected"].reverse(), "selected[0] is"),
        (lambda r: r["passages"][0].update(gains=[9.0, 9.0]), "passages[0].gains[0] is 9.0"),
        (lambda r: r["input"]["passages"][0].update(text="Other."), "does not have the hash"),
        (lambda r: r["certificate"].update(ratio=1.0), "certificate.ratio is 1.0"),
        (lambda r: r.update(coverage=0.5), "coverage is 0.5"),
        (lambda r: r["model"].update(hash="sha256:0"), "made with the model sha256:0"),
        (lambda r: r["passages"].pop(), "passages has 7 entries, and 8 were computed."),
    ],
)
def test_a_wrong_receipt_is_found_out(change: Any, message: str) -> None:
    receipt = receipt_of(k=2)
    change(receipt)
    assert any(message in one for one in verify_receipt(receipt, shipped()))


def test_another_model_is_named() -> None:
    assert verify_receipt(receipt_of(k=2), untrained())[0].startswith("The receipt was made with")


@pytest.mark.parametrize(
    "content",
    [None, [], {}, {"schema": "dgn-receipt-1"}, {**receipt_of(k=1), "schema": "other"}],
)
def test_something_else_is_refused(content: Any) -> None:
    with pytest.raises(dgn.InvalidInput, match="dgn-receipt-1"):
        verify_receipt(content, shipped())


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["input"].update(passages=[{"words": 1}]),
        lambda r: r["input"].update(passages=3),
        lambda r: r["input"].pop("query"),
        lambda r: r["limits"].update(k="many"),
        lambda r: r["limits"].update(unknown=1),
        lambda r: r["input"].update(pinned=[99]),
        lambda r: r["input"].update(passages=[]),
        lambda r: r["input"].update(query=5),
    ],
)
def test_an_input_that_cannot_be_read_is_refused(change: Any) -> None:
    receipt = copy.deepcopy(receipt_of(k=2))
    change(receipt)
    with pytest.raises(dgn.InvalidInput):
        verify_receipt(receipt, shipped())


def test_repeats_at_the_end_have_tokens_too() -> None:
    passages = [*PAGE, PAGE[0], PAGE[1]]
    receipt = shipped().select(CLAIM, passages, max_tokens=40).receipt()
    counts = shipped().encoder.count_tokens(passages)
    assert [one.tokens for one in receipt.passages] == counts


def test_tokens_are_counted_again() -> None:
    receipt = receipt_of(max_tokens=30)
    receipt["passages"][0]["tokens"] += 1
    assert "passages[0].tokens" in verify_receipt(receipt, shipped())[0]


def test_all_are_irrelevant() -> None:
    found = shipped().select(CLAIM, PAGE, min_relevance=1.0)
    assert found.indices == ()
    assert {one.reason for one in found.receipt().passages} == {"irrelevant"}


def test_context_is_the_text_for_a_prompt() -> None:
    selection = shipped().select(CLAIM, documents=[{"title": "T", "sentences": PAGE}], k=3)
    lines = selection.context().split("\n")
    assert lines == [f"[{index}] {PAGE[index]}" for index in sorted(selection.indices)]
    other = selection.context("selection", separator=" | ")
    assert other == " | ".join(f"[{index}] {PAGE[index]}" for index in selection.indices)
    with pytest.raises(dgn.InvalidInput, match='"reading" or "selection"'):
        selection.context("random")  # pyright: ignore[reportArgumentType]


def test_sufficiency_is_higher_where_the_answer_is() -> None:
    with_answer = shipped().select(CLAIM, PAGE, k=3)
    without = shipped().select(CLAIM, ["Cows graze.", "The ice came.", "A mill stood there."], k=3)
    assert 0 < without.sufficiency < with_answer.sufficiency < 1
    assert untrained().select(CLAIM, PAGE).sufficiency is None, "it is not calibrated"
    german = shipped().select("Wer baute sie?", ["Die Brücke ist rot."], language="de")
    assert german.sufficiency is None, "it was fitted on English"
    assert with_answer.to_dict()["sufficiency"] == with_answer.sufficiency
