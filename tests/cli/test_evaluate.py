import json
from pathlib import Path

import pytest

from dgn.cli.main import main
from fever_files import write_claims, write_jsonl, write_wiki


@pytest.fixture
def evaluate(tmp_path: Path) -> list[str]:
    write_wiki(tmp_path / "wiki-pages")
    claims, store = str(write_claims(tmp_path / "dev.jsonl")), str(tmp_path / "pages.db")
    assert main(["data", "build", str(tmp_path / "wiki-pages"), "--store", store]) == 0
    return ["evaluate", claims, "--pages", store]


def test_a_table_of_all(evaluate: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([*evaluate, "--k", "1", "2", "--against", "top-k"]) == 0
    printed = capsys.readouterr().out
    for name in ("first k", "TF-IDF, words", "BM25", "Greedy ×1"):
        assert name in printed
    assert "2 claims" in printed
    assert "FEVER's official" in printed
    assert "against Top-k" in printed


def test_json_models_and_picks(
    evaluate: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features, run = str(tmp_path / "features"), str(tmp_path / "tiny")
    train = ["--train", features, "--validation", features, "--epochs", "1", "--quiet"]
    assert main([*evaluate, "--features", features, "--contenders", "first"]) == 0
    assert main(["train", *train, "--out", run]) == 0
    capsys.readouterr()
    picks = tmp_path / "picks.jsonl"
    more = ["--models", run, "--contenders", "mmr:0.2", "first", "--json", "--against", "first k"]
    assert main([*evaluate, *more, "--features", features, "--per-claim", str(picks)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [result["name"] for result in report["results"]] == ["MMR 0.2", "first k", "tiny"]
    assert report["results"][2]["parameters"] > 0
    assert set(report["compared"]["tiny"]) == {"1", "3", "5", "7"}
    rows = [json.loads(line) for line in picks.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["1", "2"]
    assert set(rows[0]["picks"]) == {"MMR 0.2", "first k", "tiny"}
    assert main([*evaluate, "--models", run, "--contenders", "first", "--unit"]) == 1
    assert "tiny, trained on vectors" in capsys.readouterr().err


def test_what_was_not_retrieved_counts(
    evaluate: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": 1, "pages": []}, {"id": 2, "pages": ["Café_Zenith"]}, {"id": 3, "pages": []}]
    retrieved = write_jsonl(tmp_path / "retrieved.jsonl", rows)
    capsys.readouterr()
    command = [*evaluate, "--retrieved", str(retrieved), "--contenders", "first", "--json"]
    assert main([*command, "--k", "1"]) == 0
    result = json.loads(capsys.readouterr().out)["results"][0]
    assert result["at"][0]["macro"]["recall"] == 0.5
    assert result["fever"]["claims"] == 2
    assert result["fever"]["recall"] == 0.5


def test_gold_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"claim": "c", "sentences": ["a", "b"], "evidence": [[0], [7]]},
        {"claim": "d", "sentences": ["a", "b"]},
    ]
    path = write_jsonl(tmp_path / "mine.jsonl", rows)
    assert main(["evaluate", str(path), "--contenders", "first", "--k", "1"]) == 0
    captured = capsys.readouterr()
    assert "no candidate, and so not found: 1" in captured.err
    assert "1 claims with gold of 2" in captured.out
    assert ".500 ±" in captured.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--contenders", "teapot"], "contenders: found 'teapot'"),
        (["--contenders", "greedy:x"], "contenders: found 'greedy:x'"),
        (["--contenders", "bm25:7"], "contenders: found 'bm25:7'"),
        (["--contenders", "greedy:10", "greedy:10.0"], "two named Greedy ×10"),
        (["--against", "nobody"], "against: found 'nobody'"),
        (["--contenders"], "contenders: found none"),
        (["--models", "nowhere"], "model: found no nowhere"),
        (["--retrieved", "nowhere"], "retrieved: found no nowhere"),
    ],
)
def test_mistakes(
    evaluate: list[str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*evaluate, *more]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_broken_line_is_fatal_or_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"claim": "c", "sentences": ["a", "b"], "evidence": [[1]]}
    path = write_jsonl(tmp_path / "mine.jsonl", [row, {"claim": 5}])
    assert main(["evaluate", str(path), "--contenders", "first"]) == 1
    assert "mine.jsonl, line 2" in capsys.readouterr().err
    assert main(["evaluate", str(path), "--contenders", "first", "--skip-bad"]) == 0
    assert "skipped: 1" in capsys.readouterr().err
