"""How similar passages are: copies, what is merely about the same, and what contradicts."""

import json
from pathlib import Path

import numpy as np
import pytest

from dgn.text.query import Passage, Query
from dgn.text.similarity import Contents, contents_of, default_reader

PAIRS = json.loads((Path(__file__).parent / "pairs_of_passages.json").read_text(encoding="utf-8"))
QUERY = "What happened?"
FILLERS = [
    "The library opens at nine on weekdays.",
    "Corn was planted on both sides of the road.",
    "She has played the violin since she was six.",
]


def contents(passages: list[str], given: tuple[str, ...] = (), query: str = QUERY) -> Contents:
    read = Query(query, tuple(map(Passage, passages)), given=tuple(map(Passage, given)))
    return contents_of(default_reader(), read, np.arange(len(passages)))


def similarity(one: str, other: str) -> float:
    return float(contents([one, other, *FILLERS]).similarities()[0, 1])


def copied(passage: str, given: str) -> float:
    return float(contents([passage, *FILLERS], (given,)).copies_of_given()[0])


def test_a_passage_says_all_of_itself() -> None:
    similar = contents([*PAIRS["reworded"][0], *FILLERS], (FILLERS[0],)).similarities()
    assert similar.shape == (5, 6)
    assert (similar >= 0).all()
    assert (similar <= 1).all()
    np.testing.assert_array_equal(np.diag(similar), 1)
    np.testing.assert_allclose(similar[:, :5], similar[:, :5].T, atol=1e-6)
    assert similar[2, 5] == pytest.approx(1, abs=1e-5), "it is given in the same words"


def test_the_kernel_agrees_with_the_plain_form(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for pairs in PAIRS.values() for pair in pairs for text in pair]
    fast = contents(texts[:60], (texts[60], texts[61]))
    without = contents(texts[60:], query="")
    wanted = fast.similarities(), without.similarities()
    monkeypatch.setattr("dgn.core.native.is_available", lambda: False)
    np.testing.assert_allclose(fast.similarities(), wanted[0], atol=2e-5)
    np.testing.assert_allclose(without.similarities(), wanted[1], atol=2e-5)


@pytest.mark.parametrize("pair", PAIRS["different"], ids=lambda pair: pair[1][:40])
def test_at_most_half_of_a_contradiction_is_similar(pair: list[str]) -> None:
    assert similarity(*pair) <= 0.5
    assert copied(pair[1], pair[0]) <= 0.5


def test_copies_are_more_similar_than_what_is_about_the_same() -> None:
    copies = [similarity(*pair) for pair in PAIRS["reworded"]]
    others = [similarity(*pair) for pair in PAIRS["about the same"]]
    assert np.mean(copies) > np.mean(others) + 0.4


def test_what_is_given_is_known_and_what_is_about_the_same_is_new() -> None:
    assert np.mean([copied(b, a) > 0.8 for a, b in PAIRS["reworded"]]) >= 0.9
    assert np.mean([copied(b, a) < 0.1 for a, b in PAIRS["about the same"]]) >= 0.9


def test_a_word_that_both_sides_have_sets_nothing_apart() -> None:
    both = "Prices will rise in May and fall in June.", "In June prices fall, and in May they rise."
    assert similarity(*both) > 0.5
    assert similarity("Prices will rise in May.", "Prices will fall in May.") <= 0.5
    assert similarity("The door is safe.", "The door is unsafe.") <= 0.5
    assert similarity("It opens at 9 in the morning.", "It opens at 9 in the mornings.") > 0.8
