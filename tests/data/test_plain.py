import io
import json
from pathlib import Path

import pytest

from dgn.data.lines import Line
from dgn.data.plain import parse_plain, read_plain, write_plain
from dgn.errors import BrokenInput
from fever_files import write_jsonl


def test_the_shortest_row_and_a_full_one(tmp_path: Path) -> None:
    rows = [
        {"claim": "It rains.", "sentences": ["It rains .", "It snows ."]},
        {
            "id": 7,
            "label": "REFUTES",
            "claim": "Two facts.",
            "documents": [
                {"title": "A", "sentences": ["One .", "", "Three ."]},
                {"title": "B", "sentences": ["Four ."]},
            ],
            "evidence": [[[0, 2], [1, 0]], [[0, 0]]],
        },
        {"claim": "One document.", "sentences": ["x", "y"], "title": "T", "evidence": [[1]]},
    ]
    short, full, single = read_plain(write_jsonl(tmp_path / "mine.jsonl", rows))
    assert short.claim.id == "1"
    assert [c.text for c in short.candidates] == ["It rains .", "It snows ."]
    assert full.claim.id == "7"
    assert [(c.page, c.sentence) for c in full.candidates] == [("A", 0), ("A", 2), ("B", 0)]
    assert full.gold == (True, True, True)
    assert single.gold == (False, True)
    assert single.candidates[0].page == "T"


def test_text_is_split_where_a_splitter_is_given(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "m.jsonl", [{"claim": "c", "documents": [{"text": "A. B."}]}])
    (example,) = read_plain(path, split=lambda text: text.split())
    assert [c.text for c in example.candidates] == ["A.", "B."]
    with pytest.raises(BrokenInput, match="a document with text"):
        list(read_plain(path))


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    rows = [
        {
            "id": "x",
            "label": "SUPPORTS",
            "claim": "Zwölf.",
            "documents": [{"title": "A", "sentences": ["One", "", "Three"]}],
            "evidence": [[[0, 2]]],
        }
    ]
    examples = list(read_plain(write_jsonl(tmp_path / "a.jsonl", rows)))
    stream = io.BytesIO()
    write_plain(examples, stream)
    (tmp_path / "b.jsonl").write_bytes(stream.getvalue())
    assert list(read_plain(tmp_path / "b.jsonl")) == examples


def test_two_documents_of_one_title_stay_two() -> None:
    row = {
        "claim": "c",
        "documents": [{"title": "A", "sentences": ["x"]}, {"title": "A", "sentences": ["y"]}],
        "evidence": [[[1, 0]]],
    }
    example = parse_plain(Line("f", 1, json.dumps(row).encode()))
    assert example.gold == (False, True)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"claim": "c"}, "neither of them"),
        ({"claim": "c", "sentences": [], "documents": []}, "both sentences and documents"),
        ({"claim": "c", "documents": [{"title": "A"}]}, "both or neither"),
        ({"claim": "", "sentences": ["x"]}, "an empty claim"),
        ({"claim": "c", "sentences": ["x"], "evidence": [[[3, 0]]]}, r"evidence [3, 0]"),
        (
            {
                "claim": "c",
                "documents": [{"sentences": ["x"]}, {"sentences": ["y"]}],
                "evidence": [[1]],
            },
            "evidence 1 among 2 documents",
        ),
        ({"claim": "c", "sentences": "x"}, "does not fit"),
    ],
)
def test_broken_rows_are_named(tmp_path: Path, row: dict, found: str) -> None:
    with pytest.raises(BrokenInput, match="line 1") as raised:
        list(read_plain(write_jsonl(tmp_path / "m.jsonl", [row])))
    assert found in str(raised.value)


def test_evidence_beyond_the_page_is_reported_as_missing(tmp_path: Path) -> None:
    row = {"claim": "c", "sentences": ["x"], "evidence": [[5]]}
    (example,) = read_plain(write_jsonl(tmp_path / "m.jsonl", [row]))
    assert [(piece.page, piece.sentence) for piece in example.missing] == [("", 5)]
