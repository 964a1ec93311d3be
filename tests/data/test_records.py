from dgn.data import Claim, Evidence, Page, example_of
from dgn.data.records import evidence_of, passages_of
from dgn.text.query import Passage

PAGES = [Page("A", ("One .", "", "Three .")), Page("B", ("Four .",))]
CLAIM = Claim("7", "Two facts.", "REFUTES", ((Evidence("A", 2), Evidence("B", 0)),))


def test_passages_of_pages_know_their_position() -> None:
    passages = passages_of(PAGES)
    assert [(p.id, p.document, p.position) for p in passages] == [
        ("A", 0, 0),
        ("A", 0, 1),
        ("A", 0, 2),
        ("B", 1, 0),
    ]
    assert passages[3].title == "B"


def test_blank_sentences_are_left_out_and_positions_stay() -> None:
    example = example_of(CLAIM, passages_of(PAGES))
    assert [(p.id, p.position) for p in example.query.passages] == [("A", 0), ("A", 2), ("B", 0)]
    assert example.gold == (False, True, True)
    assert example.missing == ()
    assert (example.query.text, example.query.id) == (CLAIM.text, CLAIM.id)


def test_evidence_that_is_blank_or_does_not_exist_is_missing() -> None:
    evidence = ((Evidence("A", 1),), (Evidence("C", 0), Evidence("A", 9)))
    example = example_of(Claim("1", "c", None, evidence), passages_of(PAGES))
    assert example.missing == (Evidence("A", 1), Evidence("A", 9), Evidence("C", 0))
    assert not any(example.gold)


def test_loose_passages_are_identified_by_their_index() -> None:
    loose = [Passage("x"), Passage(" "), Passage("y")]
    claim = Claim("1", "c", None, ((Evidence("", 2),),))
    example = example_of(claim, loose)
    assert [evidence_of(p, i).sentence for i, p in enumerate(loose)] == [0, 1, 2]
    assert example.query.texts == ["x", " ", "y"], "none is left out, or indices would shift"
    assert example.gold == (False, False, True)


def test_evidence_of_a_claim_is_that_of_all_groups() -> None:
    assert CLAIM.evidence == {Evidence("A", 2), Evidence("B", 0)}
    assert CLAIM.evidence_pages == ("A", "B")
