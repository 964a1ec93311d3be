import json
from pathlib import Path

import pytest

from dgn.apps.cli.main import main
from small_rows import write_rows


def test_rows_to_a_model_in_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, model = str(write_rows(tmp_path / "rows.jsonl", 30)), str(tmp_path / "model")
    # The rows may come after the flags.
    assert main(["train", "--out", model, "--from", "untrained", "--epochs", "2", rows]) == 0
    captured = capsys.readouterr()
    header = "epoch     loss    at 1    at 3    at 5    at 7   at most left"
    assert captured.err.splitlines()[1] == header
    assert len(captured.err.splitlines()) == 5
    for told in ("trained − start", "trained − BM25", "30 rows", f"model and card: {model}"):
        assert told in captured.out
    assert "share a gold passage of 40 or more characters are in one part" in captured.out
    assert "Trained against BM25: " in captured.out
    assert f"dgn train {rows} --out {model} --epochs 4" in captured.out
    assert main(["select", "--model", model, "Who sank?", "--passages", rows]) == 0
    capsys.readouterr()
    more = ["train", rows, "--out", model, "--from", "untrained", "--epochs", "3", "--json"]
    assert main(more) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("epoch") for line in lines] == [0, 1, 2, 3, None]
    assert lines[-1]["epochs"] == 3


def test_quiet_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", 12)
    rows.write_text(rows.read_text().replace('"evidence"', '"sources": [], "evidence"'))
    arguments = ["train", str(rows), "--out", str(tmp_path / "model"), "--epochs", "1"]
    assert main([*arguments, "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
    assert main(arguments) == 0
    warning = capsys.readouterr().err.splitlines()[0]
    assert warning.startswith("warning: 12 of 12 rows have keys without a meaning: 'sources'")


def test_what_is_missing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = str(write_rows(tmp_path / "rows.jsonl", 12))
    for arguments, message in (
        (["train"], "dgn: Name the labelled rows: dgn train rows.jsonl --out F.\n"),
        (["train", rows], "dgn: Name the folder for the model: --out my-model.\n"),
    ):
        assert main(arguments) == 2
        assert capsys.readouterr().err == message


def test_an_unknown_flag_of_any_command(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["train", "--epoch", "x"], ["select", "--teapot"]):
        with pytest.raises(SystemExit) as error:
            main(command)
        assert error.value.code == 2
    assert "unrecognized arguments: --teapot" in capsys.readouterr().err
