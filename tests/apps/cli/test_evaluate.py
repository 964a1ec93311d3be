import json
from pathlib import Path

import pytest

from dgn.apps.cli.main import main
from models import shipped
from small_rows import write_jsonl

ROW = {"claim": "c", "sentences": ["a", "b"], "evidence": [[1]]}


@pytest.fixture
def evaluate(tmp_path: Path) -> list[str]:
    rows = [
        {
            "id": 1,
            "claim": "It sank in 1901.",
            "sentences": ["It rose.", "It sank."],
            "evidence": [[1]],
        },
        {
            "id": 2,
            "claim": "The ship rose.",
            "sentences": ["A ship rose.", "No."],
            "evidence": [[0]],
        },
    ]
    return ["evaluate", "--queries", str(write_jsonl(tmp_path / "dev.jsonl", rows))]


def test_tables_of_the_default_baselines(
    evaluate: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([*evaluate, "--k", "1", "2", "--against", "top-k"]) == 0
    printed = capsys.readouterr().out
    for name in ("first k", "TF-IDF, words", "BM25", "Top-k"):
        assert name in printed
    assert "2 queries" in printed
    assert "against Top-k" in printed
    assert "Holm's method for the 8 tests" in printed


def test_json_models_and_selections(
    evaluate: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyversity", reason="pyversity is in dgn[peers]")
    model = tmp_path / "tiny"
    shipped().save_pretrained(model)
    capsys.readouterr()
    out = tmp_path / "selected.jsonl"
    more = ["--model", str(model), "--baselines", "mmr:0.2", "first", "--json"]
    assert main([*evaluate, *more, "--against", "first k", "--out", str(out)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["queries"] == 2
    assert [result["name"] for result in report["results"]] == ["MMR 0.2", "first k", "tiny"]
    assert report["results"][2]["parameters"] > 0
    assert set(report["compared"]["tiny"]) == {"1", "3", "5", "7"}
    for one in report["compared"]["tiny"].values():
        assert one["p_value"] <= one["holm_p_value"] <= 1
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["1", "2"]
    assert set(rows[0]["selected"]) == {"MMR 0.2", "first k", "tiny"}
    assert not list(tmp_path.glob(".*partial"))


def test_model_with_other_vectors_is_refused(
    evaluate: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped().save_pretrained(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    config.write_text(config.read_text().replace("wordllama:", "wordllama:0"))
    capsys.readouterr()
    assert main([*evaluate, "--model", str(tmp_path / "m")]) == 1
    assert "was trained on the vectors wordllama:0" in capsys.readouterr().err


def test_shipped_models_are_baselines(
    evaluate: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["dgn", "dgn-no-title", "dgn-untrained", "dgn-untrained-no-title"]
    capsys.readouterr()
    assert main([*evaluate, "--baselines", *names, "--json", "--k", "1"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["name"] for result in results] == names
    assert [result["parameters"] > 0 for result in results] == [True, True, False, False]


def test_models_with_the_same_name_are_told_apart(
    evaluate: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / part / "model" for part in ("a", "b")]
    for folder in folders:
        shipped().save_pretrained(folder)
    capsys.readouterr()
    command = [*evaluate, "--baselines", "--model", *map(str, folders), "--json", "--k", "1"]
    assert main(command) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [result["name"] for result in results] == list(map(str, folders))


def test_missing_gold_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"claim": "c", "sentences": ["a", "b"], "evidence": [[0], [7]]},
        {"claim": "d", "sentences": ["a", "b"]},
    ]
    path = write_jsonl(tmp_path / "mine.jsonl", rows)
    assert main(["evaluate", "--queries", str(path), "--baselines", "first", "--k", "1"]) == 0
    captured = capsys.readouterr()
    assert "not among the passages, and so not found: 1" in captured.err
    assert "1 queries with gold of 2" in captured.out
    assert ".500 ±" in captured.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--baselines", "teapot"], "got 'teapot'"),
        (["--baselines", "mmr:x"], "got 'mmr:x'"),
        (["--baselines", "bm25:7"], "got 'bm25:7'"),
        (["--baselines", "bm25", "bm25"], "Two baselines are named BM25"),
        (["--against", "nobody"], "against must be one of"),
        (["--baselines"], "baselines must be one of"),
        (["--model", "nowhere"], "The folder nowhere does not exist"),
    ],
)
def test_mistakes_are_usage_errors(
    evaluate: list[str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([*evaluate, *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", "--queries", "nowhere"]) == 1
    assert capsys.readouterr().err == (
        "dgn: nowhere: the file cannot be read (No such file or directory).\n"
    )


def test_stray_argument_is_refused(evaluate: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main([*evaluate, "stray"])
    assert error.value.code == 2
    assert "unrecognized arguments: stray" in capsys.readouterr().err


def test_broken_row_is_fatal_or_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_jsonl(tmp_path / "mine.jsonl", [ROW, {"claim": 5}])
    command = ["evaluate", "--queries", str(path), "--baselines", "first"]
    assert main(command) == 1
    assert "mine.jsonl, line 2" in capsys.readouterr().err
    assert main([*command, "--skip-bad"]) == 0
    assert "skipped 1 broken rows" in capsys.readouterr().err


def test_output_does_not_replace_an_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_jsonl(tmp_path / "mine.jsonl", [ROW])
    before = path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    for out in (path, tmp_path / "link"):
        command = ["evaluate", "--queries", str(path), "--baselines", "first", "--out", str(out)]
        assert main(command) == 2
        assert "is also an input" in capsys.readouterr().err
    assert path.read_bytes() == before
