"""The configuration of a run: files, flags and their mistakes."""

import tomllib
from pathlib import Path

import pytest

from dgn.errors import BrokenInput, InvalidInput
from dgn.learn.config import (
    SECTIONS,
    DataConfig,
    FitConfig,
    Fixed,
    Geometric,
    Linear,
    NetworkConfig,
    RunConfig,
    config_of,
    read_config,
)
from dgn.learn.families import family_names, find_family
from dgn.learn.families.facets import FacetSettings
from dgn.learn.families.pooled import PooledFamily, PooledSettings
from dgn.settings import types_of


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(text)
    return path


def test_file_changes_the_settings_that_it_names(tmp_path: Path) -> None:
    text = (
        '[fit]\nlearning_rate = 1\nepochs = 3\n[network]\narchitecture = "encoder"\n'
        "[pooled]\nwidths = [8, 4]\n"
    )
    config = read_config(written(tmp_path, text))
    assert config.fit == FitConfig(learning_rate=1.0, epochs=3)
    assert type(config.fit.learning_rate) is float
    assert config.network == NetworkConfig(architecture="encoder")
    assert config.encoder == PooledSettings(widths=(8, 4))
    assert config.machine == RunConfig().machine


def test_one_folder_needs_no_list() -> None:
    assert RunConfig().with_settings({"train": "features"}).data.train == ("features",)


def test_later_settings_take_precedence() -> None:
    config = RunConfig().with_settings({"epochs": 3, "seed": 1}).with_settings({"epochs": 4})
    assert (config.fit.epochs, config.fit.seed) == (4, 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"train": ["a", "b"], "eval_ks": [2], "max_grad_norm": 0.5, "widths": [3, 4]},
        {"encoder": "facets", "projection": 2, "partial": ["c"], "validation": 'with "quotes" é'},
    ],
)
def test_tables_and_toml_give_the_same_configuration(settings: dict) -> None:
    config = RunConfig().with_settings(settings)
    assert config_of(config.to_tables(), "config.json") == config
    assert config_of(tomllib.loads(config.to_toml()), "run.toml") == config


def test_names_are_unique_across_sections() -> None:
    for family in family_names():
        sections = [*SECTIONS.values(), find_family(family).settings]
        names = [name for section in sections for name in types_of(section)]
        assert len(names) == len(set(names))


def test_settings_of_the_encoder_form_a_table_with_its_name() -> None:
    assert RunConfig().encoder == PooledFamily.settings()
    assert "pooled" in RunConfig().to_tables()
    facets = RunConfig().with_settings({"encoder": "facets", "hidden": 5})
    assert facets.encoder == FacetSettings(hidden=5)
    assert facets.to_tables()["facets"]["hidden"] == 5
    assert "pooled" not in facets.to_tables()
    # Other settings of the same run keep those of the encoder.
    assert facets.with_settings({"epochs": 2}).encoder == FacetSettings(hidden=5)
    assert facets.with_settings({"encoder": "pooled"}).encoder == PooledSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[fit]\nlearning_rat = 1.0",
            r"learning_rat is not a setting of \[fit\] \(did you mean learning_rate\?\)",
        ),
        ("[fitt]\nepochs = 1", r"\[fitt\] is not a section of a run \(did you mean fit\?\)"),
        ("epochs = 1", r"\[epochs\] is not a section of a run"),
        ("[network]\nepochs = 1", r"epochs is not a setting of \[network\]"),
        ("[fit]\nepochs = 1.5", "epochs must be a value of type int; got 1.5"),
        ("[fit]\nepochs = true", "epochs must be a value of type int; got True"),
        ("[fit]\nepochs = 0", "epochs must be at least 1; got 0"),
        ("[fit]\nlearning_rate = nan", "learning_rate must be a finite number; got nan"),
        ("[fit]\nlearning_rate = 0.0", "learning_rate must be greater than 0; got 0.0"),
        ("[fit]\ntemperature = 0.0", "temperature must be greater than 0; got 0.0"),
        ("[fit]\neval_ks = []", r"eval_ks must be integers of at least 1; got \(\)"),
        ("[fit]\neval_ks = [0]", r"eval_ks must be integers of at least 1; got \(0,\)"),
        ("[fit]\neval_ks = 3", "eval_ks must be a list; got 3"),
        ("[fit]\noptimizer = 'sgd'", "optimizer must be one of adam, adamw; got 'sgd'"),
        ("[fit]\nweight_decay = 0.1", "weight_decay has no effect with the optimizer adam"),
        ("[fit]\nema_decay = 1.0", "ema_decay must be at least 0 and below 1; got 1.0"),
        ("[fit]\ndistill_weight = 1.5", "distill_weight must be from 0 to 1; got 1.5"),
        ("[network]\ndropout = 1.0", "dropout must be at least 0 and below 1; got 1.0"),
        ("[network]\nlayers = 0", "layers must be at least 1; got 0"),
        (
            "[network]\nencoder = 'teapot'",
            "encoder must be one of pooled, facets, a name that an imported module registers",
        ),
        ("[pooled]\nscale = 0", "scale must be greater than 0; got 0.0"),
        ("[facets]\nhidden = 1", r"\[facets\] belongs to the encoder facets; this .* uses pooled"),
        (
            "[network]\nencoder = 'facets'\n[facets]\nhidden = -1",
            "hidden must be at least 0; got -1",
        ),
        ("[data]\nmax_queries = -1", "max_queries must be at least 0; got -1"),
        ("[data]\nnegative_weight = 0.0", "negative_weight must be greater than 0; got 0.0"),
        ("[machine]\nthreads = -1", "threads must be at least 0; got -1"),
        ("[fit]\nseed = 99999999999999999999", "seed must be below 2⁶³; got 9"),
        ("[fit]\nseed = -1", "seed must be at least 0; got -1"),
        ("[fit", "the file is not valid TOML"),
    ],
)
def test_mistake_is_reported_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BrokenInput, match=message) as error:
        read_config(written(tmp_path, text))
    assert "run.toml" in str(error.value)


def test_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.toml does not exist"):
        read_config(tmp_path / "none.toml")


def test_unknown_settings_are_reported_with_a_suggestion() -> None:
    with pytest.raises(InvalidInput, match="did you mean epochs"):
        RunConfig().with_settings({"epoch": 3})
    with pytest.raises(InvalidInput, match="hidden is a setting of the encoder facets; this run"):
        RunConfig().with_settings({"hidden": 3})


def test_all_folders_of_a_run() -> None:
    data = DataConfig(train=("a",), validation="v", partial=("b", "c"))
    assert data.folders == ("a", "b", "c", "v")


def test_annealing() -> None:
    assert FitConfig(temperature=2.0).temperatures == Fixed(2.0)
    assert FitConfig(annealing="geometric").temperatures == Geometric(4.0, 0.9, 0.01)
    assert FitConfig(annealing="linear", epochs=5).temperatures == Linear(4.0, 0.01, 5)


def test_fixed_is_the_same_for_all_epochs() -> None:
    assert Fixed(3.0).at(0) == Fixed(3.0).at(50) == 3.0


def test_geometric_falls_by_a_tenth_per_epoch_to_its_lowest_value() -> None:
    schedule = Geometric(5.0)
    assert schedule.at(0) == 5.0
    assert schedule.at(2) == pytest.approx(5.0 * 0.81)
    assert schedule.at(10_000) == 0.01


def test_linear_reaches_its_end_and_stays_there() -> None:
    schedule = Linear(4.0, 1.0, 6)
    assert [schedule.at(epoch) for epoch in (0, 3, 6, 9)] == pytest.approx([4.0, 2.5, 1.0, 1.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fixed(0.0),
        lambda: Geometric(4.0, factor=1.1),
        lambda: Geometric(4.0, lowest=0.0),
        lambda: Linear(4.0, -1.0, 3),
        lambda: Linear(4.0, 1.0, 0),
    ],
)
def test_temperatures_that_are_not_allowed(make: object) -> None:
    with pytest.raises(InvalidInput):
        make()
