import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgn.cli.main import main
from dgn.errors import InvalidInput
from dgn.training import RunConfig, read_config
from dgn.training.search_space import (
    PAPERS_SEARCH,
    Dimension,
    config_of_trial,
    parse_dimension,
)
from dgn.training.tune import TuneConfig, importances, tune
from small_features import write_table

SEARCH = (parse_dimension("learning_rate=1e-3:1e-1:log"), parse_dimension("temperature=0.5:6"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    folder = tmp_path_factory.mktemp("features")
    settings = {"epochs": 3, "batch_size": 16, "layers": 2, "judged_at": [1, 3], "device": "cpu"}
    return RunConfig().with_settings(
        {
            **settings,
            "train": [write_table(folder / "train", 60, 1)],
            "validation": write_table(folder / "validation", 40, 2),
        }
    )


def test_dimensions() -> None:
    assert parse_dimension("learning-rate=1e-4:1e-2:log") == Dimension(
        "learning_rate", 1e-4, 1e-2, log=True
    )
    assert parse_dimension("layers=1:7").is_whole
    assert parse_dimension("optimizer=adam,adamw").choices == ("adam", "adamw")
    assert parse_dimension("width=64:300").is_whole
    wrong = ("x=1:2", "layers", "layers=1.5:2", "layers=3:1", "scale=0:1:log", "scale=1:2:x")
    for text in (*wrong, "scale=nan:1", "train=a,b", "claims=1:9", "seed=1:9", "device=cpu,cuda"):
        with pytest.raises(InvalidInput, match="search"):
            parse_dimension(text)


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(InvalidInput, match="did you mean learning_rate"):
        parse_dimension("learning_rat=1:2")


def test_width_is_the_last_layer_of_the_encoder() -> None:
    assert config_of_trial(RunConfig(), 300, {"width": 64}).network.widths == (300, 64)
    wide = RunConfig().with_settings({"widths": [500, 10]})
    assert config_of_trial(wide, 300, {"width": 64}).network.widths == (500, 64)


def test_a_search_goes_on_and_is_the_same_for_any_number_of_workers(
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


def test_a_killed_search_goes_on(base: RunConfig, tmp_path: Path) -> None:
    tables = base.as_tables()
    command = [str(Path(sys.executable).with_name("dgn")), "tune", "--out", str(tmp_path)]
    command += ["--train", *tables["data"]["train"], "--validation", base.data.validation]
    command += ["--epochs", "3", "--trials", "500", "--layers", "2", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("1/500")
        run.send_signal(signal.SIGKILL)
    time.sleep(1.0)
    paper = tuple(parse_dimension(text) for text in PAPERS_SEARCH)
    same = base.with_settings({"batch_size": 256, "judged_at": [1, 3, 5, 7]})
    finished = len(tune(same, TuneConfig(tmp_path, paper, trials=1)))
    time.sleep(1.0)
    assert len(tune(same, TuneConfig(tmp_path, paper, trials=1))) == finished  # no orphan goes on
    more = tune(same, TuneConfig(tmp_path, paper, trials=finished + 1))
    assert len(more) == finished + 1


def test_a_storage_that_goes_away_is_said_in_a_line(base: RunConfig, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("dgn")), "tune", "--out", str(tmp_path)]
    command += ["--train", *base.data.train, "--validation", base.data.validation]
    command += ["--epochs", "3", "--trials", "500", "--layers", "2", "--device", "cpu"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("1/500")
        (tmp_path / "study.db").unlink()
        said = run.stderr.read()
    assert run.returncode == 1
    assert "dgn: a worker stopped" in said
    assert "Traceback" not in said


def test_the_command(base: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--train", *base.data.train, "--validation", base.data.validation]
    few = ["--trials", "7", "--epochs", "4", "--layers", "2", "--device", "cpu"]
    command = ["tune", "--out", str(tmp_path), *data, *few, "--batch-size", "16", "--search"]
    assert main([*command, "learning_rate=1e-5:1e-1:log", "scale=1,3"]) == 0
    captured = capsys.readouterr()
    assert "the best of 7 trials" in captured.out
    assert captured.err.count("trial") == 7
    assert (tmp_path / "search.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command, "scale=1,3"]) == 1
    assert "with another search" in capsys.readouterr().err
    assert main([*command, "learning_rate=1e-5:1e-1:log", "scale=1,3", "--dropout", "0.5"]) == 1
    assert "with another network" in capsys.readouterr().err
    assert main([*command, "scale=1,3", "--device", "cuda:99"]) == 1
    assert "device: found cuda:99" in capsys.readouterr().err
    assert main([*command, "teapot=1:2"]) == 1
    assert "search: found 'teapot=1:2'" in capsys.readouterr().err
    assert main([*command, "scale=1,3", "--storage", "nosuch://x"]) == 1
    assert "storage: found nosuch://x" in capsys.readouterr().err


def test_bad_input(base: RunConfig, tmp_path: Path) -> None:
    for settings in ({"trials": 0}, {"workers": 0}, {"sampler": "grid"}):
        with pytest.raises(InvalidInput, match=next(iter(settings))):
            TuneConfig(tmp_path, SEARCH, **settings)
    with pytest.raises(InvalidInput, match="search: found nothing"):
        TuneConfig(tmp_path, ())
    with pytest.raises(InvalidInput, match="no features in"):
        tune(base.with_settings({"validation": "nowhere"}), TuneConfig(tmp_path, SEARCH))
