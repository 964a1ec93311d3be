import gzip
import json
import lzma
import zipfile
from pathlib import Path

import pytest

from dgn.data.fever import read_fever_claims, read_wiki_pages, wiki_files
from dgn.data.lines import Problems
from dgn.data.records import Evidence
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


def test_not_enough_info_is_kept_and_skippable(tmp_path: Path) -> None:
    path = write_claims(tmp_path / "dev.jsonl")
    assert len(list(read_fever_claims(path))) == 3
    assert len(list(read_fever_claims(path, skip_not_enough_info=True))) == 2


def test_a_test_set_without_labels_is_read(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "test.jsonl", [{"id": 9, "claim": "A claim."}])
    (claim,) = read_fever_claims(path)
    assert claim.label is None


@pytest.mark.parametrize("ending", [".jsonl.gz", ".jsonl.xz", ".zip"])
def test_compressed_files_are_read_directly(tmp_path: Path, ending: str) -> None:
    plain = write_claims(tmp_path / "dev.jsonl")
    packed = tmp_path / f"dev{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(plain, "data/dev.jsonl")
            archive.writestr("readme.txt", "not a claim")
    else:
        packing = gzip.open if ending.endswith("gz") else lzma.open
        with packing(packed, "wb") as stream:
            stream.write(plain.read_bytes())
    assert list(read_fever_claims(packed)) == list(read_fever_claims(plain))


def test_pages_round_trip_with_blank_sentences_links_and_accents(tmp_path: Path) -> None:
    files = wiki_files(write_wiki(tmp_path / "wiki-pages"))
    pages = {page.title: list(page.sentences) for f in files for page in read_wiki_pages(f)}
    assert pages == PAGES


def test_a_line_break_inside_a_sentence_is_mended(tmp_path: Path) -> None:
    row = {"id": "P", "text": "", "lines": "0\tOne\nand a half .\tlink\n1\tTwo ."}
    path = write_jsonl(tmp_path / "wiki-001.jsonl", [row])
    (page,) = read_wiki_pages(path)
    assert page.sentences == ("One and a half .", "Two .")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{not json", "no valid JSON"),
        ('{"id": 5}', "does not fit"),
        ('{"id": "five", "claim": "x"}', "does not fit"),
        ('{"id": 5, "claim": ["x"]}', "does not fit"),
        ('{"id": 5, "claim": "x", "label": "MAYBE"}', "MAYBE"),
        ('{"id": 5, "claim": "  "}', "an empty claim"),
        ('{"id": 5, "claim": "x", "label": "SUPPORTS", "evidence": []}', "without evidence"),
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
            "NOT ENOUGH INFO with evidence",
        ),
        ("[" * 3000, "does not fit"),
    ],
)
def test_a_broken_line_is_named_or_skipped_and_listed(
    tmp_path: Path, line: str, found: str
) -> None:
    path = tmp_path / "dev.jsonl"
    good = json.dumps(CLAIMS[0])
    path.write_text(f"{good}\n\n{line}\n{good}\n", encoding="utf-8")
    with pytest.raises(BrokenInput, match=r"dev.jsonl, line 3: found") as raised:
        list(read_fever_claims(path))
    assert found in str(raised.value)
    problems = Problems(skip=True)
    assert len(list(read_fever_claims(path, problems))) == 2
    assert problems.count == 1
    assert problems.kept[0].line == 3


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_bytes(b'{"id": 1, "claim": "\xff\xfe"}\n')
    with pytest.raises(BrokenInput, match="line 1: found no valid JSON"):
        list(read_fever_claims(path))


def test_a_truncated_archive_gives_what_it_holds_and_then_says_so(tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl.gz"
    rows = [{"id": n, "claim": f"Claim {n} is {hash(str(n))}."} for n in range(5000)]
    with gzip.open(path, "wb") as stream:
        stream.write("\n".join(json.dumps(row) for row in rows).encode())
    path.write_bytes(path.read_bytes()[:-4000])
    problems = Problems(skip=True)
    read = len(list(read_fever_claims(path, problems)))
    assert 0 < read < 5000
    assert "truncated archive" in str(problems.kept[-1])
    with pytest.raises(BrokenInput, match="fetch it again"):
        list(read_fever_claims(path))


@pytest.mark.parametrize("name", ["dev.zip", "dev.jsonl.gz", "dev.jsonl.xz"])
def test_what_is_no_archive_at_all(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"this is no archive")
    with pytest.raises(BrokenInput, match=name):
        list(read_fever_claims(tmp_path / name))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match="No such file"):
        list(read_fever_claims(tmp_path / "none.jsonl"))
    with pytest.raises(BrokenInput, match="no wiki-pages file"):
        wiki_files(tmp_path)


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
def test_pages_that_are_not_what_they_should_be(tmp_path: Path, row: dict) -> None:
    path = write_jsonl(tmp_path / "wiki-001.jsonl", [wiki_row("A", ["One ."]), row])
    with pytest.raises(BrokenInput, match="line 2"):
        list(read_wiki_pages(path))
