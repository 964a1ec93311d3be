import json
from pathlib import Path

import pytest

from dgn.cli.main import main
from fever_files import write_claims, write_jsonl, write_wiki


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_wiki(tmp_path / "wiki-pages")
    write_claims(tmp_path / "dev.jsonl")
    return tmp_path


def test_the_whole_way_from_fevers_files(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, claims = str(files / "pages.db"), str(files / "dev.jsonl")
    assert main(["data", "build", str(files / "wiki-pages"), "--store", store]) == 0
    assert "4 pages" in capsys.readouterr().out
    plot = files / "plot.png"
    assert main(["data", "inspect", claims, "--pages", store, "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert "3 claims in the format of fever" in printed
    assert "NOT ENOUGH INFO" in printed
    assert "evidence that is not there: 0" in printed
    assert plot.read_bytes().startswith(b"\x89PNG")
    features = ["data", "features", claims, "--pages", store, "--out", str(files / "f")]
    assert main([*features, "--workers", "1"]) == 0
    assert "written, 2 claims, 6 sentences" in capsys.readouterr().out
    assert main([*features, "--workers", "1"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_a_broken_file_is_fatal_or_skipped_as_asked(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["data", "build", str(files / "wiki-pages"), "--store", str(files / "pages.db")]
    with (files / "wiki-pages" / "wiki-001.jsonl").open("a") as stream:
        stream.write("{broken\n")
    assert main(build) == 1
    error = capsys.readouterr().err
    assert "wiki-001.jsonl, line 4: found no valid JSON" in error
    assert "Traceback" not in error
    assert main([*build, "--skip-bad"]) == 0
    assert "skipped: 1" in capsys.readouterr().err


def test_inspect_tells_what_is_wrong(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_jsonl(
        files / "mine.jsonl",
        [{"claim": "c", "sentences": ["x"], "evidence": [[4]]}, {"claim": "c"}, {"claim": 5}],
    )
    assert main(["data", "inspect", str(path)]) == 1
    captured = capsys.readouterr()
    assert "1 claims in the format of plain" in captured.out
    assert "claim 1: sentence 4 of ''" in captured.out
    assert "skipped: 2" in captured.err
    assert "line 3" in captured.err
    assert main(["data", "inspect", str(path), "--skip-bad"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "none.jsonl"], "No such file"),
        (["features", "none.jsonl", "--out", "f"], "claims: found no none.jsonl"),
        (["build", "none", "--store", "x.db"], "no such folder"),
        (["inspect", __file__], "no row of claims (line"),
    ],
)
def test_what_is_not_there_is_said_without_a_traceback(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("dgn: ")
    assert message in error


@pytest.mark.parametrize(
    ("option", "value"), [("--workers", "-1"), ("--workers", "0"), ("--out", None)]
)
def test_arguments_that_make_no_sense(files: Path, option: str, value: str | None) -> None:
    claims = str(files / "dev.jsonl")
    arguments = ["data", "features", claims, "--out", str(files / "f")]
    with pytest.raises(SystemExit):
        main([*arguments, option, *([value] if value else [])])
    for plot in ("none/x.png", "x.foo"):
        with pytest.raises(SystemExit):
            main(["data", "inspect", claims, "--plot", str(files / plot)])


def test_a_place_that_cannot_be_written_to(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_jsonl(files / "mine.jsonl", [{"claim": "c", "sentences": ["x"]}])
    assert main(["data", "features", str(path), "--out", "/proc/none/x", "--workers", "1"]) == 1
    assert capsys.readouterr().err.startswith("dgn: ")


def test_claims_without_pages_need_a_page_source(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = str(files / "dev.jsonl")
    assert main(["data", "features", claims, "--out", str(files / "f"), "--workers", "1"]) == 1
    assert "pages: found none; allowed: a page store" in capsys.readouterr().err


def test_inspect_splits_texts_and_knows_marks_at_the_start(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"claim": "It sank.", "documents": [{"text": "The ship left. It sank."}]}
    path = files / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row).encode())
    assert main(["data", "inspect", str(path)]) == 0
    assert "candidates: 2.0 a claim" in capsys.readouterr().out


def test_retrieved_pages_and_plain_texts(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = {"claim": "It sank.", "documents": [{"text": "The ship left. It sank."}]}
    path = write_jsonl(files / "texts.jsonl", [text])
    out = str(files / "plain")
    assert main(["data", "features", str(path), "--out", out, "--workers", "1"]) == 0
    assert "1 claims, 2 sentences" in capsys.readouterr().out
    main(["data", "build", str(files / "wiki-pages"), "--store", str(files / "pages.db")])
    rows = [{"id": n, "pages": ["Ines_Moreau"]} for n in (1, 2, 3)]
    named = write_jsonl(files / "retrieved.jsonl", rows)
    options = ["--pages", str(files / "pages.db"), "--retrieved", str(named), "--workers", "1"]
    claims, out = str(files / "dev.jsonl"), str(files / "retrieved")
    capsys.readouterr()
    assert main(["data", "features", claims, *options, "--out", out]) == 0
    printed = capsys.readouterr().out
    assert "3 claims, 2 sentences" in printed
    assert "gold sentences that are no candidate: 2" in printed
    assert json.loads((files / "retrieved" / "meta.json").read_text())["key"]["retrieved"]
