import json
from pathlib import Path

import pytest

from dgn.data import Evidence, Problems
from dgn.data.fever import normal_title, read_fever_claims, read_wiki_pages, wiki_files
from dgn.errors import BrokenInput
from fever_files import CLAIMS, PAGES, wiki_row, write_claims, write_jsonl, write_wiki


def test_claims_round_trip(tmp_path: Path) -> None:
    claims = list(read_fever_claims(write_claims(tmp_path / "dev.jsonl")))
    assert [claim.text for claim in claims] == [row["claim"] for row in CLAIMS]
    assert [claim.label for claim in claims] == ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
    assert claims[0].groups == (
        (Evidence("Harbour_Lights_-LRB-film-RRB-", 0), Evidence("Ines_Moreau", 0)),
        (Evidence("Ines_Moreau", 0),),
    )
    assert claims[0].evidence_pages == ("Harbour_Lights_-LRB-film-RRB-", "Ines_Moreau")
    assert len(claims[0].evidence) == 2
    assert claims[1].evidence_pages == ("Café_Zenith",)
    assert claims[2].groups == ()


def test_not_enough_info_is_kept_and_can_be_skipped(tmp_path: Path) -> None:
    path = write_claims(tmp_path / "dev.jsonl")
    assert len(list(read_fever_claims(path))) == 3
    assert len(list(read_fever_claims(path, skip_not_enough_info=True))) == 2


def test_test_set_without_labels_is_read(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "test.jsonl", [{"id": 9, "claim": "A claim."}])
    (claim,) = read_fever_claims(path)
    assert claim.label is None


def test_pages_round_trip_with_blank_sentences_links_and_accents(tmp_path: Path) -> None:
    files = wiki_files(write_wiki(tmp_path / "wiki-pages"))
    pages = {page.title: list(page.sentences) for f in files for page in read_wiki_pages(f)}
    assert pages == PAGES


def test_titles_are_compared_in_one_form_of_accents() -> None:
    assert normal_title("Cafe\u0301") == normal_title("Caf\u00e9") == "Caf\u00e9"


def test_line_break_inside_a_sentence_is_repaired(tmp_path: Path) -> None:
    row = {"id": "P", "text": "", "lines": "0\tOne\nand a half .\tlink\n1\tTwo ."}
    path = write_jsonl(tmp_path / "wiki-001.jsonl", [row])
    (page,) = read_wiki_pages(path)
    assert page.sentences == ("One and a half .", "Two .")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{not json", "invalid JSON"),
        ('{"id": 5}', "another record"),
        ('{"id": "five", "claim": "x"}', "another record"),
        ('{"id": 5, "claim": ["x"]}', "another record"),
        ('{"id": 5, "claim": "x", "label": "MAYBE"}', "MAYBE"),
        ('{"id": 5, "claim": "  "}', "the claim is empty"),
        ('{"id": 5, "claim": "x", "label": "SUPPORTS", "evidence": []}', "has no evidence"),
        (
            '{"id": 5, "claim": "x", "label": "REFUTES", "evidence": [[[1, 2, "P", null]]]}',
            "evidence with page 'P' and sentence None",
        ),
        (
            '{"id": 5, "claim": "x", "label": "REFUTES", "evidence": [[[1, 2, "P", -4]]]}',
            "sentence -4",
        ),
        (
            '{"id": 5, "claim": "x", "label": "NOT ENOUGH INFO", "evidence": [[[1, 2, "P", 0]]]}',
            "NOT ENOUGH INFO and has evidence",
        ),
        ("[" * 3000, "another record"),
    ],
)
def test_broken_line_is_named_or_skipped_and_listed(tmp_path: Path, line: str, found: str) -> None:
    path = tmp_path / "dev.jsonl"
    good = json.dumps(CLAIMS[0])
    path.write_text(f"{good}\n\n{line}\n{good}\n", encoding="utf-8")
    with pytest.raises(BrokenInput, match=r"dev.jsonl, line 3: ") as raised:
        list(read_fever_claims(path))
    assert found in str(raised.value)
    problems = Problems(skip=True)
    assert len(list(read_fever_claims(path, problems))) == 2
    assert problems.count == 1
    assert problems.kept[0].line == 3


def test_missing_wiki_folder_is_explained(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match=r"contains no wiki-\*\.jsonl file"):
        wiki_files(tmp_path)
    with pytest.raises(BrokenInput, match="the folder does not exist"):
        wiki_files(tmp_path / "none")


@pytest.mark.parametrize(
    "row",
    [
        {"id": "P", "lines": "1\tFirst ."},
        {"id": "P", "lines": "0\tFirst .\n2\tThird ."},
        {"id": "P", "lines": "0\tFirst .\n0\tAgain ."},
        {"id": "", "lines": "0\tNobody's ."},
        {"id": 7, "lines": ""},
        {"id": "P"},
    ],
)
def test_broken_pages_are_named(tmp_path: Path, row: dict) -> None:
    path = write_jsonl(tmp_path / "wiki-001.jsonl", [wiki_row("A", ["One ."]), row])
    with pytest.raises(BrokenInput, match="line 2"):
        list(read_wiki_pages(path))
