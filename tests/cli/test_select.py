"""`dgn select`, as a user types it."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from claim_page import CLAIM, PAGE
from dgn.cli.main import main


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "Oriel_Tamsett.html.txt"
    path.write_text("\n".join(PAGE))
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "claims.jsonl"
    lines = [
        json.dumps({"id": "a", "claim": CLAIM, "title": "Oriel Tamsett", "sentences": PAGE}),
        json.dumps({"claim": "It sank", "documents": [{"title": "Ship", "text": "A. It sank."}]}),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_picks_are_printed_one_a_line(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "-k", "2"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == sorted([PAGE[1], PAGE[3]])


def test_pages_from_standard_input(monkeypatch, capsys) -> None:
    given = io.TextIOWrapper(io.BytesIO(" ".join(PAGE).encode()))
    monkeypatch.setattr(sys, "stdin", given)
    assert main(["select", CLAIM, "-", "-k", "1"]) == 0
    assert capsys.readouterr().out.strip() in PAGE


def test_json_has_places_and_reasons(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "-k", "2", "--json", "--explain"]) == 0
    row = json.loads(capsys.readouterr().out)
    text = page.read_text()
    for pick in row["picks"]:
        assert text[pick["start"] : pick["end"]] == pick["text"]
        assert pick["title"] == "Oriel Tamsett"
    assert row["reasons"]["picks"][0]["covers"]


def test_explained_and_drawn(page: Path, tmp_path: Path, capsys) -> None:
    picture = tmp_path / "why.png"
    assert main(["select", CLAIM, str(page), "--explain", "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "of the claim is covered" in out
    assert "next best" in out
    assert picture.stat().st_size > 1000


def test_budget_and_cover(page: Path, capsys) -> None:
    assert main(["select", CLAIM, str(page), "--budget", "30", "--json"]) == 0
    assert 1 <= len(json.loads(capsys.readouterr().out)["picks"]) <= 3
    assert main(["select", CLAIM, str(page), "--cover", "0.9", "--json"]) == 0
    assert 1 <= len(json.loads(capsys.readouterr().out)["picks"]) < 5


def test_many_claims_in_and_out(rows: Path, tmp_path: Path, capsys) -> None:
    assert main(["select", "--claims", str(rows), "-k", "2"]) == 0
    printed = capsys.readouterr().out
    first, second = (json.loads(line) for line in printed.splitlines())
    assert (first["id"], second["id"]) == ("a", 2)
    assert {pick["index"] for pick in first["picks"]} == {1, 3}
    assert second["picks"][0]["document"] == 0
    out = tmp_path / "picks.jsonl"
    assert main(["select", "--claims", str(rows), "-k", "2", "--out", str(out)]) == 0
    assert out.read_text() == printed


BROKEN = [
    '{"claim": "x"',
    "[]",
    '{"claim": "x"}',
    '{"claim": "x", "sentences": [1]}',
    "\xff",
    '{"claim": "?!", "sentences": ["a b"]}',
    '{"claim": 5, "sentences": ["a b"]}',
    '{"claim": "x", "documents": [{"text": "Hi.", "title": 3}]}',
    '{"claim": "x", "sentences": ["a"], "scores": ["a"]}',
    '{"claim": "x", "sentences": ["a"], "id": NaN}',
    '{"claim": "half \\ud800", "sentences": ["a"]}',
]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_row_is_fatal_or_skipped_as_asked(
    line: str, rows: Path, tmp_path: Path, capsys
) -> None:
    lines = rows.read_bytes().splitlines()
    rows.write_bytes(b"\n".join([lines[0], line.encode("latin-1"), lines[1]]))
    out = tmp_path / "out.jsonl"
    assert main(["select", "--claims", str(rows), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert f"{rows}, line 2" in error
    assert "Traceback" not in error
    assert not out.exists()
    assert main(["select", "--claims", str(rows), "--out", str(out), "--skip-bad"]) == 0
    assert len(out.read_text().splitlines()) == 2
    assert "skipped 1 broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "a claim and text files"),
        (["A claim"], "a claim without pages"),
        (["A claim", "missing.txt"], "missing.txt"),
        (["A claim", "-", "-"], "standard input once"),
        (["A claim", "PAGE", "--model", "missing-folder"], "missing-folder"),
        (["A claim", "PAGE", "--cover", "2"], "cover"),
        (["?!", "PAGE"], "claim"),
        (["A claim", "EMPTY"], "an empty page"),
        (["A claim", "BINARY"], "UTF-8"),
        (["A claim", "PAGE", "--claims", "x"], "--claims"),
    ],
)
def test_mistakes_get_one_line(
    arguments: list[str], says: str, page: Path, tmp_path: Path, capsys
) -> None:
    (tmp_path / "EMPTY").write_text(" \n")
    (tmp_path / "BINARY").write_bytes(b"ok\n\xff\xfe")
    names = {"PAGE": str(page)} | {n: str(tmp_path / n) for n in ("EMPTY", "BINARY")}
    assert main(["select", *(names.get(one, one) for one in arguments)]) == 1
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1


def test_pages_may_come_behind_the_options(page: Path, capsys) -> None:
    assert main(["select", CLAIM, "-k", "1", str(page)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_rows_before_a_broken_one_are_answered(rows: Path, capsys) -> None:
    rows.write_text(rows.read_text() + "{\n")
    assert main(["select", "--claims", str(rows)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_files_name_is_its_title(tmp_path: Path, capsys) -> None:
    for name in ("Dr. No.html.txt", "U.S._Steel.md"):
        (tmp_path / name).write_text("It was made. It was sold.")
        assert main(["select", "It was sold", str(tmp_path / name), "--json"]) == 0
        title = json.loads(capsys.readouterr().out)["picks"][0]["title"]
        assert title == name.split(".html")[0].removesuffix(".md").replace("_", " ")


def test_titles_can_be_left_out_of_rows(rows: Path, capsys) -> None:
    assert main(["select", "--claims", str(rows), "--no-titles"]) == 0
    assert "title" not in json.loads(capsys.readouterr().out.splitlines()[0])["picks"][0]


def test_dollars_are_no_mathematics(tmp_path: Path) -> None:
    page = tmp_path / "money.txt"
    page.write_text("It cost $5_{ and earned $7. No.")
    assert main(["select", "It cost $5_{ $", str(page), "--plot", str(tmp_path / "a.png")]) == 0


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    row = json.dumps({"claim": CLAIM, "sentences": PAGE})
    path.write_text("\n".join([row] * 3000))
    command = f"{sys.executable} -m dgn select --claims {path} | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
