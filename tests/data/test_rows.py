"""Our own JSONL: one parser for training, evaluation and `dgn select`."""

import json
from pathlib import Path
from typing import Any

import pytest

from dgn.data import Example, Line, parse_row, read_rows
from dgn.data.records import without_blanks
from dgn.errors import BrokenInput
from small_rows import write_jsonl

DOCUMENTS = [
    {"title": "A", "sentences": ["One .", "", "Three ."]},
    {"title": "B", "sentences": ["Four ."]},
]


def parse(row: dict[str, Any], number: int = 1) -> Example:
    return parse_row(Line("rows.jsonl", number, json.dumps(row).encode()))


def test_shortest_row_and_full_rows(tmp_path: Path) -> None:
    rows = [
        {"claim": "It rains.", "sentences": ["It rains .", "It snows ."]},
        {
            "id": 7,
            "label": "REFUTES",
            "claim": "Two facts.",
            "documents": DOCUMENTS,
            "evidence": [[[0, 2], [1, 0]], [[0, 0]]],
        },
        {"claim": "One document.", "sentences": ["x", "y"], "title": "T", "evidence": [[1]]},
    ]
    short, full, single = read_rows(write_jsonl(tmp_path / "mine.jsonl", rows))
    assert short.query.id == "1"
    assert short.query.texts == ["It rains .", "It snows ."]
    assert (full.query.id, full.label) == ("7", "REFUTES")
    passages = full.query.passages
    assert [(p.document, p.position) for p in passages] == [(0, 0), (0, 2), (1, 0)]
    assert full.gold == (True, True, True)
    assert single.gold == (False, True)
    assert single.query.passages[0].title == "T"


def test_query_and_claim_are_the_same_key() -> None:
    query, claim = (parse({key: "It sank.", "passages": ["x"]}) for key in ("query", "claim"))
    assert query == claim
    for row in ({"passages": ["x"]}, {"query": "a", "claim": "a", "passages": ["x"]}):
        with pytest.raises(BrokenInput, match="either query or claim"):
            parse(row)


def test_loose_passages_have_no_position() -> None:
    row = parse({"query": "q", "passages": ["x", "y"], "titles": ["T", ""], "evidence": [[1]]})
    assert [(p.text, p.title, p.position, p.document) for p in row.query.passages] == [
        ("x", "T", None, None),
        ("y", "", None, None),
    ]
    assert without_blanks(row).gold == (False, True)


def test_sentences_are_one_document() -> None:
    short = parse({"query": "q", "sentences": ["x", "y"], "title": "T", "evidence": [[1], [0]]})
    document = {"sentences": ["x", "y"], "title": "T"}
    full = parse({"query": "q", "documents": [document], "evidence": [[[0, 1]], [[0, 0]]]})
    assert short == full
    assert [p.position for p in short.query.passages] == [0, 1]


def test_texts_are_split_into_sentences_with_positions() -> None:
    text = "The ship left.  It sank."
    row = parse({"query": "q", "documents": [{"text": text, "id": "ship"}], "evidence": [[1]]})
    passages = row.query.passages
    assert [text[p.start : p.end] for p in passages] == ["The ship left.", "It sank."]
    assert without_blanks(row).gold == (False, True)


def test_scores_belong_to_passages_including_blank_ones() -> None:
    row = parse({"query": "q", "sentences": ["x", "", "y"], "scores": [3, 2.5, -1]})
    assert row.query.scores == [3.0, 2.5, -1.0]
    assert without_blanks(row).query.scores == [3.0, -1.0]


def test_null_is_the_same_as_a_missing_key() -> None:
    nulls = {"id": None, "label": None, "scores": None, "title": None, "evidence": None}
    assert parse({"query": "q", "sentences": ["x"], **nulls}) == parse(
        {"query": "q", "sentences": ["x"]}
    )


def test_blank_sentences_keep_positions_in_data_and_indices_in_select() -> None:
    row = parse({"query": "q", "documents": DOCUMENTS, "evidence": [[[0, 2]]]})
    assert row.query.texts == ["One .", "", "Three .", "Four ."]
    assert [p.position for p in row.query.passages] == [0, 1, 2, 0]
    example = without_blanks(row)
    assert example.query.texts == ["One .", "Three .", "Four ."]
    assert [p.position for p in example.query.passages] == [0, 2, 0]
    assert example.gold == (False, True, False)


def test_two_documents_with_one_title_stay_two() -> None:
    documents = [{"title": "A", "sentences": ["x"]}, {"title": "A", "sentences": ["y"]}]
    row = parse({"claim": "c", "documents": documents, "evidence": [[[1, 0]]]})
    assert [(p.title, p.document) for p in row.query.passages] == [("A", 0), ("A", 1)]
    assert without_blanks(row).gold == (False, True)


def test_untitled_documents_have_no_title() -> None:
    # The second untitled document once had the title " #2", whose digit counted as a word.
    row = parse({"query": "q", "documents": [{"sentences": ["x"]}, {"sentences": ["y"]}]})
    assert [p.title for p in row.query.passages] == ["", ""]
    assert [p.document for p in row.query.passages] == [0, 1]
    assert [p.title for p in without_blanks(row).query.passages] == ["", ""]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"claim": "c"}, "found none of them"),
        ({"claim": "c", "sentences": [], "documents": []}, "found documents and sentences"),
        ({"claim": "c", "documents": [{"title": "A"}]}, "neither text nor sentences"),
        (
            {"claim": "c", "documents": [{"text": "a", "sentences": ["b"]}]},
            "both text and sentences",
        ),
        ({"claim": "", "sentences": ["x"]}, "query must be a text with a word in it; got ''"),
        ({"claim": "c", "sentences": []}, "documents contains no passage"),
        ({"claim": "c", "sentences": ["x"], "evidence": [[[3, 0]]]}, "the evidence [3, 0]"),
        ({"claim": "c", "sentences": ["x"], "evidence": [[-1]]}, "the evidence -1"),
        ({"claim": "c", "sentences": ["x"], "evidence": [[True]]}, "the evidence True"),
        ({"claim": "c", "sentences": ["x"], "evidence": [0, [0]]}, "evidence as a list of groups"),
        (
            {
                "claim": "c",
                "documents": [{"sentences": ["x"]}, {"sentences": ["y"]}],
                "evidence": [[1]],
            },
            "the evidence 1",
        ),
        ({"claim": "c", "sentences": "x"}, "documents[0].sentences must be a list of strings"),
        ({"claim": "c", "passages": "x"}, "passages is a single string"),
        ({"claim": "c", "passages": ["x", 5]}, "passages[1] must be"),
        (
            {"claim": "c", "passages": ["x"], "scores": [1, 2]},
            "scores has 2 entries for 1 passages",
        ),
        ({"claim": "c", "passages": ["x"], "titles": []}, "titles has 0 entries for 1 passages"),
        ({"claim": "c", "passages": ["x"], "id": [1]}, "an id that is a string or an integer"),
        ({"claim": "c", "passages": ["x"], "label": 3}, "a label that is a string"),
        ({"claim": "c", "passages": ["x"], "scores": [float("nan")]}, "NaN is not JSON"),
    ],
)
def test_broken_rows_are_named(row: dict[str, Any], found: str) -> None:
    with pytest.raises(BrokenInput, match=r"rows\.jsonl, line 12: ") as raised:
        parse(row, number=12)
    assert found in str(raised.value)


def test_document_number_that_is_a_list_is_named() -> None:
    row = {"query": "q", "documents": [{"sentences": ["a"]}], "evidence": [[[[], 0]]]}
    with pytest.raises(BrokenInput, match=r"rows\.jsonl, line 1"):
        parse(row)


def test_document_number_of_loose_passages_is_refused() -> None:
    with pytest.raises(BrokenInput, match=r"rows\.jsonl, line 1"):
        parse({"query": "q", "passages": ["a", "b"], "evidence": [[["nonsense", 1]]]})


def test_evidence_beyond_the_page_is_missing() -> None:
    example = without_blanks(parse({"claim": "c", "sentences": ["x"], "evidence": [[5]]}))
    assert example.missing == ("5",)


def test_a_list_of_numbers_is_one_group() -> None:
    short, full = (
        without_blanks(
            parse({"query": "q", "passages": ["a", "b", "c", "d"], "evidence": evidence})
        )
        for evidence in ([0, 3], [[0, 3]])
    )
    assert short.gold == full.gold
    assert short.gold == (True, False, False, True)


def test_an_example_names_its_line_and_keys_without_meaning() -> None:
    example = without_blanks(parse({"query": "q", "passages": ["a"], "evidnce": [0]}))
    assert example.unknown_keys == ("evidnce",)
    assert example.source.endswith("line 1")
