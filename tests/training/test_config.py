from pathlib import Path

import pytest

from dgn.errors import BrokenInput, InvalidInput
from dgn.training import FitConfig, NetworkConfig, RunConfig, read_config
from dgn.training.config import SETTINGS, config_of
from dgn.unfolding import Fixed, Geometric, Linear


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    text = '[fit]\nlearning_rate = 1\nepochs = 3\n[network]\nwidths = [8, 4]\nmodel = "encoder"\n'
    config = read_config(written(tmp_path, text))
    assert config.fit == FitConfig(learning_rate=1.0, epochs=3)
    assert type(config.fit.learning_rate) is float
    assert config.network == NetworkConfig(model="encoder", widths=(8, 4))
    assert config.machine == RunConfig().machine


def test_one_folder_needs_no_list() -> None:
    assert RunConfig().with_settings({"train": "features"}).data.train == ("features",)


def test_flags_go_before_the_file() -> None:
    config = RunConfig().with_settings({"epochs": 3, "seed": 1}).with_settings({"epochs": 4})
    assert (config.fit.epochs, config.fit.seed) == (4, 1)


def test_tables_come_back_as_the_same_configuration() -> None:
    config = RunConfig().with_settings({"train": ["a", "b"], "judged_at": [2], "clip": 0.5})
    assert config_of(config.as_tables(), "config.json") == config


def test_names_are_unique_across_sections() -> None:
    names = [name for settings in SETTINGS.values() for name in settings]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fit]\nlearning_rat = 1.0", r"learning_rat \(did you mean learning_rate\?\)"),
        ("[fitt]\nepochs = 1", r"unknown \[fitt\] \(did you mean fit\?\)"),
        ("epochs = 1", r"unknown \[epochs\]"),
        ("[network]\nepochs = 1", r"\[network\] unknown epochs"),
        ("[fit]\nepochs = 1.5", "epochs = 1.5; allowed: a value of type int"),
        ("[fit]\nepochs = true", "epochs = True"),
        ("[fit]\nepochs = 0", "epochs = 0; allowed: 1 or more"),
        ("[fit]\nlearning_rate = nan", "learning_rate = nan"),
        ("[fit]\ntemperature = 0.0", "temperature = 0.0"),
        ("[fit]\njudged_at = []", r"judged_at = \(\)"),
        ("[fit]\njudged_at = 3", "judged_at = 3; allowed: a list"),
        ("[fit]\noptimizer = 'sgd'", "optimizer = 'sgd'; allowed: adam, adamw"),
        ("[fit]\nweight_decay = 0.1", "weight_decay = 0.1 with adam"),
        ("[fit]\naverage = 1.0", "average = 1.0"),
        ("[network]\ndropout = 1.0", "dropout = 1.0"),
        ("[network]\nscale = 0", "scale = 0.0"),
        ("[data]\nclaims = -1", "claims = -1"),
        ("[fit]\nseed = 99999999999999999999", "seed = 9"),
        ("[fit", "allowed: TOML"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BrokenInput, match=message) as error:
        read_config(written(tmp_path, text))
    assert "run.toml" in str(error.value)


def test_a_missing_file_and_an_unknown_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no file"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match="did you mean epochs"):
        RunConfig().with_settings({"epoch": 3})


def test_annealing() -> None:
    assert FitConfig(temperature=2.0).temperatures == Fixed(2.0)
    assert FitConfig(annealing="geometric").temperatures == Geometric(4.0, 0.9, 0.01)
    assert FitConfig(annealing="linear", epochs=5).temperatures == Linear(4.0, 0.01, 5)
