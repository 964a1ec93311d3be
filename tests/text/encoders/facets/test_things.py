"""Whether a text contains a date, a number or a name."""

from pathlib import Path

import pytest

import dgn
from dgn.text.facets.things import name_shares

SAMPLES = Path(__file__).parents[4] / "samples" / "pages"
QUERY = "Who designed the Corran Bridge?"


@pytest.fixture(scope="module")
def selector() -> dgn.Selector:
    return dgn.Selector.from_pretrained()


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("The bridge was designed by Clara Voss.", 1.0),
        ("It was designed by Voss in 1905.", 1.0),
        ("Voss designed it for two tracks.", 0.2),
        ("The engineer J. K. Orr designed it.", 1.0),
        ("Dr. Moreau designed it.", 1.0),
        ("“Voss designed it,” they said.", 0.2),
        ("Her best known work is the bridge at Corran, which she designed.", 0.0),
        ("The Corran Bridge was designed by an engineer.", 0.0),
        ("It was designed in May, on a Monday.", 0.0),
        ("The engineers designed it.", 0.0),
        ("", 0.0),
    ],
)
def test_a_name_answers_who_and_a_pronoun_does_not(text: str, share: float) -> None:
    others = ["A letter by Clara Voss, by J. K. Orr and by Dr. Moreau was found by engineers."]
    shares = name_shares(QUERY, [text, *others])
    assert shares is not None
    assert shares[0] == share


def test_a_name_that_the_query_has_is_not_what_it_asks_for() -> None:
    texts = ["They say that Clara Voss was tall.", "They say that President Orr was tall."]
    assert name_shares("Who was the president whom Clara knew?", texts) == [0.0, 1.0]
    assert name_shares("who was clara voss", texts) == [0.0, 1.0]


@pytest.mark.parametrize(
    "texts",
    [
        ["it was designed by clara voss.", "she designed it."],
        ["IT WAS DESIGNED BY CLARA VOSS.", "SHE DESIGNED IT."],
        ["Clara Voss Designed The Bridge", "Bridge Designed In Corran"],
    ],
)
def test_texts_whose_capitals_say_nothing_are_left_alone(
    selector: dgn.Selector, texts: list[str]
) -> None:
    assert name_shares(QUERY, texts) is None
    explanation = selector.select(QUERY, texts, k=2).explain()
    assert not any(word.source == "asked" for one in explanation.selected for word in one.covers)
    assert "a name" not in str(explanation)


def test_the_designer_of_the_sample_is_named_first(selector: dgn.Selector) -> None:
    documents = [
        {"title": path.stem.replace("_", " "), "text": path.read_text()}
        for path in sorted(SAMPLES.glob("*.txt"))
    ]
    selection = selector.select(QUERY, documents=documents, k=1)
    assert "designed by the engineer Clara Voss" in selection.texts[0]
    assert "contains what is asked for: Who (a name) 100%" in str(selection.explain())


def test_a_number_does_not_outweigh_what_the_question_is_about(selector: dgn.Selector) -> None:
    office = [
        "Our office is open from 9 am to 5 pm, Monday to Friday.",
        "You can cancel at any time with one month's notice.",
        "Call us at 555 0199 for help.",
        "The plan costs 12 euros per month.",
        "A known bug makes the app crash if billing is opened offline.",
    ]
    for query in (
        "How much notice do I need to give?",
        "how much notice",
        "How long notice do I have to give?",
        "I wonder how much notice I must give.",
    ):
        assert selector.select(query, office, k=1).indices == (1,), query
    query = "How do I stop crashes when opening billing?"
    explained = selector.select(query, office, k=3).explain()
    assert explained.selected[0].index == 4
    assert "a date" not in str(explained)
