"""Question words ask for a kind of thing; a passage covers them by containing such a thing."""

import time

import numpy as np
import pytest

import dgn
from dgn.core import native as kernels
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.questions import asked_of
from dgn.text.facets.things import contains
from dgn.text.query import Query

PASSAGES = [
    "When the ice came, the last train was late.",
    "The last train ran in October 1984.",
    "The last train carried ninety people.",
    "The last train was late.",
]


ASKING = [
    ("When did it open?", {0: "a date"}),
    ("WHEN did it open", {0: "a date"}),
    ("when is the next train", {0: "a date"}),
    ("When's the next train?", {0: "a date"}),
    ("When exactly was it opened?", {0: "a date"}),
    ("When wasn't it open?", {0: "a date"}),
    ("When?", {0: "a date"}),
    ("And when did it close?", {1: "a date"}),
    ("Since when has it been open?", {1: "a date"}),
    ("Until when is it open?", {1: "a date"}),
    ("By when must it be paid?", {1: "a date"}),
    ("The bridge was opened when?", {4: "a date"}),
    ("When the bridge opened?", {0: "a date"}),
    ("After the war, when was it opened?", {3: "a date"}),
    ("When the ice came, when did it close?", {4: "a date"}),
    ("When and where was it built?", {0: "a date"}),
    ("When, where and how did it end?", {0: "a date"}),
    ("When and in which film did she sing?", {0: "a date"}),
    ("Where was it built, and when was it opened?", {5: "a date"}),
    ("who found the wreck and when", {0: "a name", 5: "a date"}),
    ("It is a bridge. When was it opened?", {4: "a date"}),
    ("In what year did it open?", {1: "a date"}),
    ("It opened in what year?", {3: "a date"}),
    ("what day is the market", {0: "a date"}),
    ("Do you know when it opened?", {3: "a date"}),
    ("Can you tell me when the bridge was opened?", {4: "a date"}),
    ("Tell me when it opened.", {2: "a date"}),
    ("I would like to know in which year it opened.", {6: "a date"}),
    ("How many trains cross it?", {0: "a number"}),
    ("So how many trains cross it?", {1: "a number"}),
    ("how long is the bridge", {0: "a number"}),
    ("In 1911 how many trains crossed it?", {2: "a number"}),
    ("Of those, what percentage is left?", {2: "a number"}),
    ("The line is split into how many parts?", {5: "a number"}),
    ("How much notice do I need to give?", {0: "a number"}),
    ("I wonder how much notice I need to give.", {2: "a number"}),
    ("For how many people?", {1: "a number"}),
    ("Who won, and by what percentage?", {0: "a name", 4: "a number"}),
    ("Which party won the seat with what percentage?", {6: "a number"}),
    ("Where is it and how tall is it?", {4: "a number"}),
    ("Who designed it?", {0: "a name"}),
    ("who designed the bridge", {0: "a name"}),
    ("Who's the owner?", {0: "a name"}),
    ("Whose idea was it?", {0: "a name"}),
    ("By whom was it designed?", {1: "a name"}),
    ("To whom does it belong?", {1: "a name"}),
    ("It was designed by whom?", {4: "a name"}),
    ("The prize went to who in 1911?", {4: "a name"}),
    ("In 1911, who designed it?", {2: "a name"}),
    ("When the bridge opened, who came?", {4: "a name"}),
    ("Who came when the bridge opened?", {0: "a name"}),
    ("Who designed it, and when did it open?", {0: "a name", 4: "a date"}),
    ("Please tell me who designed it.", {3: "a name"}),
]

NOT_ASKING = [
    "How do I stop crashes when opening billing?",
    "When opening billing, how do I stop crashes?",
    "When opening billing how do I stop crashes?",
    "What happens when the ice comes?",
    "Where was she when the bridge opened?",
    "Does it close when the ice comes?",
    "Is it open when it rains?",
    "When in doubt, what should I do?",
    "When the ice came, why did it close?",
    "When he came, it closed.",
    "It closed when the ice came.",
    "It was not known when the bridge opened.",
    "When",
    "How do I cancel, regardless of how much notice I gave?",
    "Can I cancel no matter how much notice I give?",
    "Does it matter how many people come?",
    "How do I set how many rows are shown?",
    "Where can I see what year it was built?",
    "Can I change what date is shown?",
    "It depends on how many people come.",
    "How did it end?",
    "Why?",
    "What was built by the man who designed the bridge?",
    "Which king, who ruled in 1616, was it?",
    "Where did Voss, whose drawings are lost, live?",
    "The people who crossed it paid a toll.",
    "Which film has the director who is older?",
    "WHO approved the vaccine, did it?",
    "Why is the WHO needed?",
    "The number of trains is unknown.",
]


@pytest.mark.parametrize(("query", "asked"), ASKING)
def test_an_interrogative_asks(query: str, asked: dict[int, str]) -> None:
    assert dict(asked_of(query)) == asked


@pytest.mark.parametrize("query", NOT_ASKING)
def test_a_question_word_that_is_not_an_interrogative_asks_for_nothing(query: str) -> None:
    assert asked_of(query) == ()


def test_a_long_query_is_read_in_linear_time() -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()
        for text in ("when who ", "in ", "how many, ", "who's and "):
            asked_of(text * count + f"{count}?")
        return time.process_time() - begin

    small = min(seconds(1_000 + number) for number in range(3))
    assert min(seconds(8_000 + number) for number in range(2)) < 32 * max(small, 4e-3)


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
