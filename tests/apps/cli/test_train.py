import json
from pathlib import Path

import pytest

from dgn.apps.cli.main import main
from small_features import write_table
from small_rows import write_rows


@pytest.fixture
def train(tmp_path: Path) -> list[str]:
    features = write_table(tmp_path / "train", 60, 1), write_table(tmp_path / "validation", 30, 2)
    few = ["--epochs", "2", "--layers", "2", "--eval-ks", "1", "3", "--device", "cpu"]
    folders = ["--train", features[0], "--validation", features[1]]
    return ["train", *folders, *few, "--out", str(tmp_path / "run")]


def test_it_says_what_it_did_and_where(
    train: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(train) == 0
    captured = capsys.readouterr()
    assert "all epochs are done" in captured.out
    assert "at k = 1 / 3" in captured.out
    assert str(tmp_path / "run") in captured.out
    assert captured.err.count("epoch") == 3
    assert main(train) == 0
    assert "already finished, nothing to do" in capsys.readouterr().out


def test_quiet_and_json(train: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*train, "--json"]) == 0
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert [row.get("epoch") for row in rows] == [0, 1, 2, None]
    assert rows[-1]["stopped"] == "all epochs are done"
    assert not captured.err
    assert main([*train[:-1], train[-1] + "2", "--quiet"]) == 0
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_flags_go_before_the_file(
    train: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.toml").write_text("[fit]\nepochs = 9\nlearning_rate = 0.02\n")
    assert main([*train, "--config", str(tmp_path / "run.toml")]) == 0
    config = json.loads((tmp_path / "run/config.json").read_text())["training"]
    assert (config["fit"]["epochs"], config["fit"]["learning_rate"]) == (2, 0.02)
    (tmp_path / "run.toml").write_text("[fit]\nepoch = 9\n")
    assert main([*train, "--config", str(tmp_path / "run.toml")]) == 1
    assert "did you mean epochs?" in capsys.readouterr().err


def test_an_unknown_flag_of_any_command(
    train: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ([*train, "--epoch", "x"], ["select", "--teapot"]):
        with pytest.raises(SystemExit) as error:
            main(command)
        assert error.value.code == 2
    assert "unrecognized arguments: --teapot" in capsys.readouterr().err
    with pytest.raises(SystemExit) as error:
        main(["train", "--help"])
    assert error.value.code == 0
    assert "--decay-to-start" in capsys.readouterr().out


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
    assert f"dgn train {rows} --out {model} --epochs 4" in captured.out
    assert main(["select", "--model", model, "Who sank?", "--passages", rows]) == 0
    capsys.readouterr()
    more = ["train", rows, "--out", model, "--from", "untrained", "--epochs", "3", "--json"]
    assert main(more) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("epoch") for line in lines] == [0, 1, 2, 3, None]
    assert lines[-1]["epochs"] == 3


def test_rows_and_features_exclude_each_other(
    train: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = str(write_rows(tmp_path / "rows.jsonl", 12))
    assert main([*train, rows]) == 2
    assert "Rows cannot be combined with --train" in capsys.readouterr().err
    assert main([*train, "--from", "default"]) == 2
    assert "--from belongs to labelled rows" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "none")]) == 2
    assert "There is nothing to learn from" in capsys.readouterr().err
    assert main(["train", rows, "--out", str(tmp_path / "m"), "--hidden", "3"]) == 2
    assert "--hidden is a setting of training on folders" in capsys.readouterr().err
