from dgn.data import Example
from dgn.data.records import without_blanks
from dgn.text.query import Passage, Query

PASSAGES = tuple(
    Passage(text, document=document, position=position)
    for document, position, text in (
        (0, 0, "One ."),
        (0, 1, ""),
        (0, 2, "Three ."),
        (1, 0, "Four ."),
    )
)


def test_blank_sentences_are_left_out_and_positions_stay() -> None:
    query = Query("Two facts.", PASSAGES, "7", language="en")
    example = without_blanks(Example(query, (False, False, True, True), ("9",)))
    assert [(p.document, p.position) for p in example.query.passages] == [(0, 0), (0, 2), (1, 0)]
    assert example.gold == (False, True, True)
    assert example.missing == ("9",)
    assert (example.query.text, example.query.id) == ("Two facts.", "7")
    assert example.query.language == "en"


def test_evidence_that_is_blank_is_missing() -> None:
    example = without_blanks(Example(Query("c", PASSAGES), (False, True, False, False)))
    assert example.missing == ("sentence 1, which is blank",)
    assert not any(example.gold)


def test_loose_passages_are_identified_by_their_index() -> None:
    loose = tuple(map(Passage, ("x", " ", "y")))
    example = without_blanks(Example(Query("c", loose), (False, False, True)))
    assert example.query.texts == ["x", " ", "y"], "none is left out, or indices would shift"
    assert example.gold == (False, False, True)
