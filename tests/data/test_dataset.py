import json
import zlib
from pathlib import Path

import pytest

from dgn.data import Dataset, Problems, make_examples, read_claims, read_examples
from dgn.data.dataset import format_of, open_pages, read_retrieved
from dgn.data.eraser import EraserDocs
from dgn.data.fever import read_fever_claims
from dgn.data.records import Page
from dgn.data.store import PageStore, build_store
from dgn.errors import BrokenInput, InvalidInput
from fever_files import CLAIMS, PAGES, write_claims, write_jsonl, write_wiki

ROW = {"id": "r", "query": "It sank.", "passages": ["It sank .", "It rose ."], "evidence": [[0]]}
ERASER = {
    "annotation_id": "a",
    "query": "It sank.",
    "evidences": [[{"docid": "Ship", "start_sentence": 1, "end_sentence": 2}]],
}


class Pages(dict):
    """FEVER's small pages as a source; a dictionary is one."""

    def __init__(self) -> None:
        super().__init__({title: Page(title, tuple(text)) for title, text in PAGES.items()})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "pages.db"
    build_store(write_wiki(tmp_path / "wiki-pages"), path)
    return path


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "Ship").write_text("A ship .\nIt sank .\n")
    return folder


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ROW, "rows"),
        ({"claim": "c", "sentences": ["x"]}, "rows"),
        ({"claim": "c", "documents": []}, "rows"),
        (CLAIMS[0], "fever"),
        (ERASER, "eraser"),
    ],
)
def test_format_is_that_of_the_first_valid_row(tmp_path: Path, row: dict, expected: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{oops\n{"other": 1}\n' + json.dumps(row) + "\n", encoding="utf-8")
    assert format_of(path) == expected


@pytest.mark.parametrize(
    ("content", "found"),
    [("", "no row at all"), ("{oops", "invalid JSON in line 1"), ('{"a": 1}', "line 1 with a")],
)
def test_file_without_a_known_row_is_named(tmp_path: Path, content: str, found: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(content)
    with pytest.raises(BrokenInput, match=r"q\.jsonl: expected our rows") as raised:
        format_of(path)
    assert found in str(raised.value)


def test_all_formats_are_read_by_one_function(tmp_path: Path, store: Path, docs: Path) -> None:
    (row,) = read_examples(write_jsonl(tmp_path / "rows.jsonl", [ROW]))
    (eraser,) = read_examples(str(write_jsonl(tmp_path / "eraser.jsonl", [ERASER])), str(docs))
    fever = list(read_examples(write_claims(tmp_path / "fever.jsonl"), store))
    assert (row.claim.id, row.gold) == ("r", (True, False))
    assert (eraser.claim.id, eraser.gold) == ("a", (False, True))
    assert [example.claim.id for example in fever] == ["1", "2"]
    claims = [next(read_claims(tmp_path / f"{name}.jsonl")) for name in ("rows", "eraser", "fever")]
    assert [claim.id for claim in claims] == ["r", "a", "1"]


def test_pages_are_a_store_or_a_folder(tmp_path: Path, store: Path, docs: Path) -> None:
    assert isinstance(open_pages(store), PageStore)
    assert isinstance(open_pages(docs), EraserDocs)
    with pytest.raises(InvalidInput, match="dgn data build"):
        open_pages(tmp_path / "wiki-pages")


def test_formats_without_text_need_pages(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not contain the text of the pages") as raised:
        read_examples(write_claims(tmp_path / "fever.jsonl"))
    assert raised.value.argument == "pages"
    retrieved = write_jsonl(tmp_path / "retrieved.jsonl", [{"id": 1, "pages": []}])
    with pytest.raises(InvalidInput, match="retrieved cannot be combined"):
        read_examples(write_jsonl(tmp_path / "rows.jsonl", [ROW]), retrieved=retrieved)


def test_oracle_passages_come_from_all_pages_of_the_evidence(store: Path, tmp_path: Path) -> None:
    claims = read_fever_claims(write_claims(tmp_path / "dev.jsonl"))
    examples = list(make_examples(claims, PageStore(store)))
    assert [example.claim.id for example in examples] == ["1", "2"]  # the third has no page
    first = examples[0]
    assert [(p.id, p.document, p.position) for p in first.query.passages] == [
        ("Harbour_Lights_-LRB-film-RRB-", 0, 0),
        ("Harbour_Lights_-LRB-film-RRB-", 0, 1),
        ("Harbour_Lights_-LRB-film-RRB-", 0, 3),
        ("Ines_Moreau", 1, 0),
        ("Ines_Moreau", 1, 1),
    ]
    assert first.gold == (True, False, False, True, False)


def test_evidence_and_pages_that_do_not_exist_are_reported(tmp_path: Path) -> None:
    rows = [
        CLAIMS[0] | {"evidence": [[[1, 2, "Ines_Moreau", 9]]]},
        CLAIMS[0] | {"id": 8, "evidence": [[[1, 2, "No_Such_Page", 0]]]},
        CLAIMS[0] | {"id": 9, "evidence": [[[1, 2, "Harbour_Lights_-LRB-film-RRB-", 2]]]},
    ]
    path = write_jsonl(tmp_path / "dev.jsonl", rows)
    problems = Problems(skip=True)
    examples = list(make_examples(read_fever_claims(path), Pages(), problems))
    assert [piece.sentence for piece in examples[0].missing] == [9]
    assert [piece.sentence for piece in examples[1].missing] == [2]  # blank
    assert "the page 'No_Such_Page' does not exist" in str(problems.kept[0])
    with pytest.raises(BrokenInput, match="claim 8"):
        list(make_examples(read_fever_claims(path), Pages()))


def test_retrieved_pages_replace_those_of_the_evidence(tmp_path: Path) -> None:
    claims = list(read_fever_claims(write_claims(tmp_path / "dev.jsonl")))
    rows = [{"id": 1, "pages": ["Ines_Moreau"]}, {"id": "3", "pages": ["Ines_Moreau"]}]
    retrieved = read_retrieved(write_jsonl(tmp_path / "pages.jsonl", rows))
    problems = Problems(skip=True)
    first, third = make_examples(claims, Pages(), problems, retrieved=retrieved)
    assert {passage.id for passage in first.query.passages} == {"Ines_Moreau"}
    assert [piece.page for piece in first.missing] == ["Harbour_Lights_-LRB-film-RRB-"]
    assert third.claim.label == "NOT ENOUGH INFO"
    assert "claim 2: the file of retrieved pages has no row for it" in str(problems.kept[0])


@pytest.mark.parametrize(
    "row", ['{"id": 1}', '{"id": [1], "pages": []}', '{"id": 1, "pages": [2]}', "[]", "{oops"]
)
def test_broken_rows_of_retrieved_pages_are_named(tmp_path: Path, row: str) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text(row + "\n")
    with pytest.raises(BrokenInput, match=r"pages\.jsonl, line 1: expected an object with id"):
        read_retrieved(path)


def test_page_named_twice_is_one_page(store: Path, tmp_path: Path) -> None:
    claims = read_fever_claims(write_claims(tmp_path / "dev.jsonl"))
    twice = ("Ines_Moreau", "Caf\u00e9_Zenith", "Ines_Moreau", "Cafe\u0301_Zenith")
    retrieved = {str(n): twice for n in (1, 2, 3)}
    first, *_ = make_examples(claims, PageStore(store), retrieved=retrieved)
    assert [passage.id for passage in first.query.passages] == [
        "Ines_Moreau",
        "Ines_Moreau",
        "Caf\u00e9_Zenith",
    ]
    assert first.gold == (True, False, False)


def test_dataset_reads_and_identifies_its_files(store: Path, tmp_path: Path) -> None:
    claims = write_claims(tmp_path / "dev.jsonl")
    dataset = Dataset(claims, store)
    assert [example.claim.id for example in dataset.examples()] == ["1", "2"]
    before = dataset.fingerprints()
    assert set(before) == {"queries", "pages"}
    write_jsonl(claims, [CLAIMS[0]])
    after = dataset.fingerprints()
    assert after["queries"] != before["queries"]
    assert after["pages"] == before["pages"]


@pytest.mark.parametrize("name", ["queries", "pages", "retrieved"])
def test_missing_files_of_a_dataset_are_named(tmp_path: Path, name: str) -> None:
    files = {"queries": write_claims(tmp_path / "dev.jsonl")} | {name: tmp_path / "none"}
    with pytest.raises(BrokenInput, match="none: the file does not exist"):
        Dataset(**files)


def test_claims_for_which_nothing_was_retrieved(store: Path, tmp_path: Path) -> None:
    rows = [{"id": 1, "pages": []}, {"id": 2, "pages": ["Café_Zenith"]}, {"id": 3, "pages": []}]
    retrieved = write_jsonl(tmp_path / "retrieved.jsonl", rows)
    claims = write_claims(tmp_path / "dev.jsonl")
    dataset = Dataset(claims, store, retrieved)
    assert [example.claim.id for example in dataset.examples()] == ["2"]
    (lost,) = dataset.without_pages()  # claim 3 has no evidence to lose
    assert lost.claim.id == "1"
    assert len(lost.missing) == 2
    assert list(Dataset(claims, store).without_pages()) == []


def test_part_of_a_dataset_by_its_pages(store: Path, tmp_path: Path) -> None:
    claims = write_claims(tmp_path / "dev.jsonl")
    whole = Dataset(claims, store)
    place = zlib.crc32("Caf\u00e9_Zenith".encode()) / 2**32
    part = Dataset(claims, store, part=(place, place + 1e-9))
    assert [example.claim.id for example in part.examples()] == ["2"]
    assert list(Dataset(claims, store, part=(0, 0)).examples()) == []
    everything = Dataset(claims, store, part=(0, 1))
    assert list(everything.examples()) == list(whole.examples())
    assert part.fingerprints()["part"] != everything.fingerprints()["part"]


def test_parts_of_rows_without_page_ids_share_no_document(tmp_path: Path) -> None:
    rows = [
        {"claim": f"claim {number}", "sentences": [f"page {number % 7}", "the end"]}
        for number in range(60)
    ]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    parts = [Dataset(path, part=part) for part in ((0, 0.5), (0.5, 1))]
    pages = [{example.query.texts[0] for example in part.examples()} for part in parts]
    assert not pages[0] & pages[1]
    assert len(pages[0] | pages[1]) == 7
