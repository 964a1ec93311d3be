from pathlib import Path

import pytest

from dgn.data import Evidence, Problems, make_examples
from dgn.data.eraser import EraserDocs, read_eraser_claims
from dgn.errors import BrokenInput
from fever_files import write_jsonl

ROW = {
    "annotation_id": "a1",
    "query": "The mill burned down twice.",
    "classification": "SUPPORTS",
    "docids": ["Old_Mill"],
    "evidences": [
        [{"docid": "Old_Mill", "start_sentence": 1, "end_sentence": 3, "text": "…"}],
        [{"docid": "Old_Mill", "start_sentence": 3, "end_sentence": 4}],
    ],
    "query_type": None,
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    lines = ["A mill .", "It burned .", "It burned again .", "Fire struck twice ."]
    (folder / "Old_Mill").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "secret").write_text("not for you", encoding="utf-8")
    return folder


def test_spans_become_sentences_and_gold(tmp_path: Path, docs: Path) -> None:
    path = write_jsonl(tmp_path / "dev.jsonl", [ROW])
    (claim,) = read_eraser_claims(path)
    assert claim.groups[0] == (Evidence("Old_Mill", 1), Evidence("Old_Mill", 2))
    (example,) = make_examples([claim], EraserDocs(docs))
    assert example.query.texts[1] == "It burned ."
    assert example.gold == (False, True, True, True)
    assert example.missing == ()
    assert [p.position for p in example.query.passages] == [0, 1, 2, 3]
    assert {(p.title, p.id, p.document) for p in example.query.passages} == {
        ("Old_Mill", "Old_Mill", 0)
    }


def test_pages_outside_the_folder_are_not_read(docs: Path) -> None:
    source = EraserDocs(docs)
    for title in ("../secret", "/etc/passwd", "..", ".", "", "Old_Mill/../Old_Mill"):
        assert source.get(title) is None


def test_page_that_is_not_utf8_is_named(docs: Path) -> None:
    (docs / "Latin").write_bytes(b"Good .\nCaf\xe9 .\n")
    with pytest.raises(BrokenInput, match=r"Latin, line 2: the file is not UTF-8"):
        EraserDocs(docs).get("Latin")


@pytest.mark.parametrize(
    "change",
    [
        {"query": " "},
        {"evidences": [[{"docid": "Old_Mill"}]]},
        {"evidences": [[{"docid": "Old_Mill", "start_sentence": 3, "end_sentence": 3}]]},
        {"query": 5},
    ],
)
def test_broken_rows(tmp_path: Path, change: dict) -> None:
    path = write_jsonl(tmp_path / "dev.jsonl", [ROW, ROW | change])
    with pytest.raises(BrokenInput, match="line 2"):
        list(read_eraser_claims(path))
    problems = Problems(skip=True)
    assert len(list(read_eraser_claims(path, problems))) == problems.count == 1


def test_a_page_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgn.data.eraser._LARGEST_PAGE", 10)
    (tmp_path / "short").write_text("0123456789")
    (tmp_path / "long").write_text("0123456789a")
    assert EraserDocs(tmp_path).get("short") is not None
    with pytest.raises(BrokenInput, match="long: the page is larger than 64 MiB"):
        EraserDocs(tmp_path).get("long")
