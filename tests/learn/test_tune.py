"""Hyperparameter search: many short runs, of which the best is kept."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import forked
from dgn.errors import InvalidInput
from dgn.learn import RunConfig, read_config
from dgn.learn import tune as tune_module
from dgn.learn.search_space import PAPER_SEARCH, parse_dimension
from dgn.learn.tune import TuneConfig, importances, tune
from small_features import write_table

DGN = str(Path(sys.executable).with_name("dgn"))
SEARCH = (parse_dimension("learning_rate=1e-3:1e-1:log"), parse_dimension("temperature=0.5:6"))


@pytest.fixture(autouse=True)
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forks of a process that has imported torch, to save time."""
    monkeypatch.setattr(tune_module.multiprocessing, "get_context", lambda _: forked.context())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    folder = tmp_path_factory.mktemp("features")
    settings = {"epochs": 3, "batch_size": 16, "layers": 2, "eval_ks": [1, 3], "device": "cpu"}
    return RunConfig().with_settings(
        {
            **settings,
            "train": [write_table(folder / "train", 60, 1)],
            "validation": write_table(folder / "validation", 40, 2),
        }
    )


@pytest.mark.slow
def test_search_is_resumed_and_is_the_same_for_any_number_of_workers(
    base: RunConfig, tmp_path: Path
) -> None:
    seen: list[int] = []
    first = tune(base, TuneConfig(tmp_path / "a", SEARCH, trials=3, prune=False))
    assert [r.recall for r in first] == sorted((r.recall for r in first), reverse=True)
    more = TuneConfig(tmp_path / "a", SEARCH, trials=6, prune=False)
    results = tune(base, more, lambda result, _: seen.append(result.number))
    assert seen == [3, 4, 5]
    together = tune(base, TuneConfig(tmp_path / "b", SEARCH, trials=6, workers=2, prune=False))
    settings = {result.number: (result.settings, result.recalls) for result in together}
    for result in results:
        assert settings[result.number] == (result.settings, result.recalls)
    best = read_config(tmp_path / "a" / "best.toml")
    assert best.fit.learning_rate == results[0].settings["learning_rate"]
    shares = importances(more, base.fit.seed)
    assert set(shares) == {"learning_rate", "temperature"}
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.slow
def test_killed_search_is_resumed(base: RunConfig, tmp_path: Path) -> None:
    command = [DGN, "tune", "--out", str(tmp_path)]
    command += ["--train", *base.data.train, "--validation", base.data.validation]
    command += ["--epochs", "3", "--trials", "500", "--layers", "2", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("1/500")
        run.send_signal(signal.SIGKILL)
    time.sleep(1.0)
    paper = tuple(parse_dimension(text) for text in PAPER_SEARCH)
    same = base.with_settings({"batch_size": 256, "eval_ks": [1, 3, 5, 7]})
    finished = len(tune(same, TuneConfig(tmp_path, paper, trials=1)))
    time.sleep(1.0)
    assert len(tune(same, TuneConfig(tmp_path, paper, trials=1))) == finished  # no worker is left
    more = tune(same, TuneConfig(tmp_path, paper, trials=finished + 1))
    assert len(more) == finished + 1


@pytest.mark.slow
def test_storage_that_disappears_is_reported_in_one_line(base: RunConfig, tmp_path: Path) -> None:
    command = [DGN, "tune", "--out", str(tmp_path)]
    command += ["--train", *base.data.train, "--validation", base.data.validation]
    command += ["--epochs", "3", "--trials", "500", "--layers", "2", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("1/500")
        (tmp_path / "study.db").unlink()
        messages = run.stderr.read()
    assert run.returncode == 1
    assert "dgn: a worker stopped" in messages
    assert "Traceback" not in messages


def test_arguments_that_are_not_allowed(base: RunConfig, tmp_path: Path) -> None:
    for settings in ({"trials": 0}, {"workers": 0}, {"sampler": "grid"}):
        with pytest.raises(InvalidInput, match=next(iter(settings))):
            TuneConfig(tmp_path, SEARCH, **settings)
    with pytest.raises(InvalidInput, match="search must be at least one setting; got nothing"):
        TuneConfig(tmp_path, ())
    with pytest.raises(InvalidInput, match="contains no features"):
        tune(base.with_settings({"validation": "nowhere"}), TuneConfig(tmp_path, SEARCH))
