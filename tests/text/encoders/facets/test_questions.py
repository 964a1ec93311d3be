"""Question words ask for a kind of thing; a passage covers them by containing such a thing."""

import numpy as np
import pytest

import dgn
from dgn.core import native as kernels
from dgn.text.encoders.facets.encoder import FacetEncoder
from dgn.text.encoders.facets.questions import asked_of, contains
from dgn.text.query import Query

PASSAGES = [
    "When the ice came, the last train was late.",
    "The last train ran in October 1984.",
    "The last train carried ninety people.",
    "The last train was late.",
]


@pytest.mark.parametrize(
    ("query", "place", "kind"),
    [
        ("When did it open?", 0, "a date"),
        ("WHEN did it open", 0, "a date"),
        ("In what year did it open?", 1, "a date"),
        ("How many trains cross it?", 0, "a number"),
        ("Of those, what percentage is left?", 2, "a number"),
    ],
)
def test_what_is_asked_for(query: str, place: int, kind: str) -> None:
    assert asked_of(query) == (place, kind)


@pytest.mark.parametrize(
    "query",
    [
        "When he came, it closed.",
        "Who designed it?",
        "Why?",
        "How did it end?",
        "It closed when the ice came.",
        "When",
    ],
)
def test_nothing_that_a_rule_knows(query: str) -> None:
    assert asked_of(query) is None


def test_dates_and_numbers() -> None:
    assert all(contains("a date", text) for text in ("in 1911", "IN MARCH", "the 19th century"))
    assert not any(contains("a date", text) for text in ("12,000 people", "it may end", "1.1911"))
    assert all(contains("a number", text) for text in ("£350", "Ninety men", "3.5%", "1,911 men"))
    assert not any(contains("a number", text) for text in ("in 1911", "someone", "no men"))


def test_a_word_that_only_looks_like_a_date_or_a_number() -> None:
    texts = ("1500 soldiers died", "an august body on the march", "it may end", "$1500")
    assert not any(contains("a date", text) for text in texts)
    assert all(contains("a date", text) for text in ("4 May", "in august", "March 1911", "by 1500"))
    assert all(contains("a number", text) for text in ("1500 soldiers", "one train left"))
    texts = ("No one knows how the soldiers died", "one of them", "the other one", "in 1500")
    assert not any(contains("a number", text) for text in texts)


def test_the_passage_with_a_date_or_a_number_is_first() -> None:
    selector = dgn.Selector.from_pretrained()
    assert selector.select("When did the last train run?", PASSAGES, k=1).indices == (1,)
    assert selector.select("How many people did the last train carry?", PASSAGES, k=1).indices == (
        2,
    )


def test_explanations_say_what_is_asked_for_and_only_if_it_is_there() -> None:
    explanation = dgn.Selector.from_pretrained().select("When did it run?", PASSAGES, k=4).explain()
    covered = {
        one.index: {word.word: word.source for word in one.covers} for one in explanation.selected
    }
    assert covered[1]["When (a date)"] == "asked"
    assert "contains what is asked for: When (a date) 100%" in str(explanation)
    assert not any("When (a date)" in covered[index] for index in (0, 2, 3))


def test_every_form_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    selector = dgn.Selector.from_pretrained()
    rows = [
        {"query": "When did the last train run?", "passages": PASSAGES},
        {"query": "The last train was late.", "passages": PASSAGES[:2]},
        {"query": "How many people were on the last train of all?", "passages": PASSAGES[1:]},
    ]
    alone = [selector.select(**row, k=3) for row in rows]
    batch = list(selector.select_many(rows, k=3))
    assert [one.gains for one in batch] == [one.gains for one in alone]
    index = selector.index(passages=PASSAGES)
    assert index.select(rows[0]["query"], k=3).gains == alone[0].gains
    monkeypatch.setattr(kernels, "is_available", lambda: False)
    plain = selector.select_many(rows, k=3)
    for one, other in zip(plain, alone, strict=True):
        assert one.indices == other.indices
        np.testing.assert_allclose(one.gains, other.gains, rtol=1e-4, atol=1e-6)


def test_questions_without_an_answer_are_not_covered_completely() -> None:
    selector = dgn.Selector.from_pretrained()
    query = "When was the last train late?"
    assert selector.select(query, PASSAGES[3:], k=1).coverage < 0.95
    assert selector.select(query, [*PASSAGES[3:], "It was in 1984."], k=2).coverage > 0.95


def test_the_function_stays_monotone_and_submodular() -> None:
    query = Query.of("How many people were on the train in 1984?", PASSAGES)
    objective, items = FacetEncoder().encode([query])
    state, before = objective.empty(items), np.inf
    for place in range(len(PASSAGES)):
        gains = objective.gains(items, state)[0]
        assert (gains >= 0).all()
        assert (gains <= before + 1e-6).all()
        before = gains
        member = np.zeros((1, len(PASSAGES)), np.float32)
        member[0, place] = 1
        state = objective.add(items, state, member)
