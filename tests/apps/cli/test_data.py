import json
from pathlib import Path

import pytest

from dgn.apps.cli.main import main
from fever_files import write_claims, write_jsonl, write_wiki


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_wiki(tmp_path / "wiki-pages")
    write_claims(tmp_path / "dev.jsonl")
    return tmp_path


def test_from_the_files_of_fever_to_features(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, queries = str(files / "pages.db"), ["--queries", str(files / "dev.jsonl")]
    assert main(["data", "build", str(files / "wiki-pages"), "--out", store]) == 0
    assert "4 pages" in capsys.readouterr().out
    plot = files / "plot.png"
    assert main(["data", "inspect", *queries, "--pages", store, "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert "3 claims in the format fever" in printed
    assert "NOT ENOUGH INFO" in printed
    assert "evidence that does not exist: 0" in printed
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert not list(files.glob(".*partial"))
    features = ["data", "features", *queries, "--pages", store, "--out", str(files / "f")]
    assert main([*features, "--workers", "1"]) == 0
    assert "written, 2 queries, 6 passages" in capsys.readouterr().out
    assert main([*features, "--workers", "1"]) == 0
    assert "up to date" in capsys.readouterr().out
    assert main([*features, "--workers", "1", "--unit"]) == 0
    assert "made again, because these have changed: unit" in capsys.readouterr().out


def test_broken_file_is_fatal_or_skipped(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = ["data", "build", str(files / "wiki-pages"), "--out", str(files / "pages.db")]
    with (files / "wiki-pages" / "wiki-001.jsonl").open("a") as stream:
        stream.write("{broken\n")
    assert main(build) == 1
    error = capsys.readouterr().err
    assert "wiki-001.jsonl, line 4: expected a page" in error
    assert "found invalid JSON" in error
    assert "Traceback" not in error
    assert main([*build, "--skip-bad"]) == 0
    assert "skipped 1 broken rows" in capsys.readouterr().err


def test_inspect_shows_what_is_wrong(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_jsonl(
        files / "mine.jsonl",
        [{"claim": "c", "sentences": ["x"], "evidence": [[4]]}, {"claim": "c"}, {"claim": 5}],
    )
    assert main(["data", "inspect", "--queries", str(path)]) == 1
    captured = capsys.readouterr()
    assert "1 claims in the format rows" in captured.out
    assert "claim 1: sentence 4 of ''" in captured.out
    assert "skipped 2 broken rows" in captured.err
    assert "line 3" in captured.err
    assert main(["data", "inspect", "--queries", str(path), "--skip-bad"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["inspect", "--queries", "none.jsonl"], "No such file", 1),
        (
            ["features", "--queries", "none.jsonl", "--out", "f"],
            "none.jsonl: the file does not exist",
            1,
        ),
        (["build", "none", "--out", "x.db"], "the folder does not exist", 1),
        (["inspect", "--queries", __file__], "expected our rows", 1),
    ],
)
def test_missing_files_are_explained_without_a_traceback(
    arguments: list[str], message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *arguments]) == code
    error = capsys.readouterr().err
    assert error.startswith("dgn: ")
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "value"), [("--workers", "-1"), ("--workers", "0"), ("--out", None)]
)
def test_impossible_arguments_are_usage_errors(files: Path, option: str, value: str | None) -> None:
    queries = ["--queries", str(files / "dev.jsonl")]
    arguments = ["data", "features", *queries, "--out", str(files / "f")]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, option, *([value] if value else [])])
    assert stopped.value.code == 2
    for plot in ("none/x.png", "x.foo"):
        with pytest.raises(SystemExit):
            main(["data", "inspect", *queries, "--plot", str(files / plot)])


def test_folder_that_cannot_be_created_is_named(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_jsonl(files / "mine.jsonl", [{"claim": "c", "sentences": ["x"]}])
    command = [
        "data",
        "features",
        "--queries",
        str(path),
        "--out",
        "/proc/none/x",
        "--workers",
        "1",
    ]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith("dgn: ")
    assert "cannot be created" in error


def test_claims_without_text_need_pages(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queries = ["--queries", str(files / "dev.jsonl")]
    out = ["--out", str(files / "f"), "--workers", "1"]
    assert main(["data", "features", *queries, *out]) == 2
    assert "pass pages, a page store or a folder of pages" in capsys.readouterr().err


def test_inspect_splits_texts_and_accepts_a_byte_order_mark(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"claim": "It sank.", "documents": [{"text": "The ship left. It sank."}]}
    path = files / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(row).encode())
    assert main(["data", "inspect", "--queries", str(path)]) == 0
    assert "passages per claim: 2.0 on average" in capsys.readouterr().out


def test_features_of_texts_and_of_retrieved_pages(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = {"claim": "It sank.", "documents": [{"text": "The ship left. It sank."}]}
    path = write_jsonl(files / "texts.jsonl", [text])
    features = ["data", "features", "--workers", "1"]
    assert main([*features, "--queries", str(path), "--out", str(files / "texts")]) == 0
    assert "1 queries, 2 passages" in capsys.readouterr().out
    main(["data", "build", str(files / "wiki-pages"), "--out", str(files / "pages.db")])
    rows = [{"id": n, "pages": ["Ines_Moreau"]} for n in (1, 2, 3)]
    named = write_jsonl(files / "retrieved.jsonl", rows)
    options = ["--pages", str(files / "pages.db"), "--retrieved", str(named)]
    queries, out = str(files / "dev.jsonl"), files / "retrieved"
    capsys.readouterr()
    assert main([*features, "--queries", queries, *options, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "3 queries, 2 passages" in printed
    assert "gold sentences that are not among the passages: 2" in printed
    assert json.loads((out / "meta.json").read_text())["key"]["retrieved"]


def test_features_of_facets_without_titles(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"query": "It sank.", "documents": [{"title": "Ship", "text": "The ship left. It sank."}]}
    path = write_jsonl(files / "texts.jsonl", [row])
    command = ["data", "features", "--queries", str(path), "--encoder", "facets"]
    assert main([*command, "--no-titles", "--out", str(files / "f")]) == 0
    assert json.loads((files / "f" / "meta.json").read_text())["key"]["titles"] is False
    pooled = ["data", "features", "--queries", str(path), "--no-titles", "--out", str(files / "p")]
    assert main(pooled) == 2
    assert "leave out --no-titles" in capsys.readouterr().err
