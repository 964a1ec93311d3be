"""`dgn tune`: what it prints and writes, and its usage errors."""

from pathlib import Path

import pytest

import forked
from dgn.apps.cli.main import main
from dgn.learn import tune as tune_module
from small_features import write_table


@pytest.fixture(autouse=True)
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forks of a process that has imported torch, to save time."""
    monkeypatch.setattr(tune_module.multiprocessing, "get_context", lambda _: forked.context())


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    train, validation = (
        write_table(tmp_path / "train", 60, 1),
        write_table(tmp_path / "validation", 40, 2),
    )
    few = ["--trials", "7", "--epochs", "4", "--layers", "2", "--batch-size", "16"]
    data = ["--train", train, "--validation", validation, "--device", "cpu"]
    return ["tune", "--out", str(tmp_path / "study"), *data, *few, "--search"]


def test_command_writes_results_and_explains_mistakes(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "learning_rate=1e-5:1e-1:log", "scale=1,3"]) == 0
    captured = capsys.readouterr()
    assert "best of 7 trials" in captured.out
    assert captured.err.count("trial") == 7
    assert (tmp_path / "study" / "search.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command, "scale=1,3"]) == 2
    assert "contains a study with other settings (search)" in capsys.readouterr().err
    assert main([*command, "learning_rate=1e-5:1e-1:log", "scale=1,3", "--dropout", "0.5"]) == 2
    assert "contains a study with other settings (network)" in capsys.readouterr().err
    assert main([*command, "scale=1,3", "--device", "cuda:99"]) == 2
    assert "The device cuda:99 is not available" in capsys.readouterr().err
    assert main([*command, "teapot=1:2"]) == 2
    assert "got 'teapot=1:2'" in capsys.readouterr().err
    assert main([*command, "scale=1,3", "--storage", "nosuch://x"]) == 2
    assert "The storage nosuch://x cannot be opened" in capsys.readouterr().err
