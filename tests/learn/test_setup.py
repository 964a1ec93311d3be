"""From a configuration to tables, batches and a network."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dgn import parallel
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn import RunConfig, build_network, parameter_count
from dgn.learn.families.modules import FacetModule
from dgn.learn.losses import Distillation
from dgn.learn.networks import DifferentiableGreedyNetwork, PointwiseNetwork
from dgn.learn.relaxations import Gumbel, StraightThrough
from dgn.learn.setup import (
    batches_of,
    choose_threads,
    describe_encoder,
    feature_keys,
    find_device,
    name_of,
    read_tables,
    to_device,
)
from small_features import write_table


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("features")
    return write_table(folder / "train", 30, 1), write_table(folder / "validation", 20, 2)


def config(features: tuple[str, str], **settings: object) -> RunConfig:
    data = {"train": [features[0]], "validation": features[1]}
    return RunConfig().with_settings({**data, **settings})


def network_of(inputs: int = 12, **settings: object) -> torch.nn.Module:
    return build_network(RunConfig().with_settings(settings), inputs)


def test_sizes_of_the_paper() -> None:
    assert parameter_count(network_of(300)) == 167_008
    assert parameter_count(network_of(300, architecture="encoder")) == 171_841
    assert parameter_count(network_of(300, architecture="deep-encoder")) == 915_006
    assert network_of(300).greedy.layers == 7


def test_settings_reach_the_network() -> None:
    network = network_of(layers=3, relaxation="gumbel", assignment="ordered", dropout=0.25)
    assert isinstance(network, DifferentiableGreedyNetwork)
    assert network.greedy.layers == 3
    assert isinstance(network.greedy.layer.relaxation, Gumbel)
    assert network.criterion.assignment == "ordered"
    assert network.encoder.features.dropout.p == 0.25
    assert network.distillation is None
    hard = network_of(relaxation="straight-through", distill_weight=0.5, distill_temperature=3.0)
    assert isinstance(hard.greedy.layer.relaxation, StraightThrough)
    assert hard.distillation == Distillation(0.5, 3.0)
    pointwise = network_of(architecture="encoder", positive_weight=2.0)
    assert isinstance(pointwise, PointwiseNetwork)
    assert pointwise.positive_weight == 2.0
    facets = network_of(256, encoder="facets", hidden=5)
    assert isinstance(facets.encoder, FacetModule)


@pytest.mark.parametrize("settings", [{}, {"architecture": "encoder"}, {"encoder": "facets"}])
def test_seed_determines_the_start(settings: dict) -> None:
    one, same, other = (network_of(256, **settings, seed=seed) for seed in (0, 0, 1))
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, same.state_dict()[name])
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert not all(torch.equal(ours, theirs) for ours, theirs in pairs)


def test_random_numbers_of_the_caller_are_not_used() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    network_of()
    assert torch.equal(torch.rand(3), expected)


def test_tables_and_batches(features: tuple[str, str]) -> None:
    train, validation = read_tables(config(features))
    assert (len(train), len(validation), train.dimension) == (30, 20, 12)
    batches = batches_of(train, config(features, batch_size=8), torch.device("cpu"))
    assert (len(batches), batches.query_count) == (4, 30)
    assert batches.batch(np.arange(3)).x.shape[0] == 3


def test_several_folders_are_joined(features: tuple[str, str]) -> None:
    train, _ = read_tables(config(features, train=[*features]))
    assert len(train) == 50


def test_part_of_the_queries_is_drawn_by_the_seed(features: tuple[str, str]) -> None:
    drawn = [
        read_tables(config(features, max_queries=10, seed=seed))[0].ids.tolist()
        for seed in (0, 0, 1)
    ]
    assert len(drawn[0]) == 10
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(InvalidInput, match="max_queries must be at most 30; got 1,000"):
        read_tables(config(features, max_queries=1000))


@pytest.mark.parametrize("name", ["train", "validation"])
def test_folders_that_are_not_set(features: tuple[str, str], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} is not set; pass a folder"):
        read_tables(config(features, **{name: "" if name == "validation" else []}))


def test_folder_without_features(features: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="nowhere contains no features"):
        read_tables(config(("nowhere", features[1])))


def test_features_of_another_dimension(features: tuple[str, str], tmp_path: Path) -> None:
    other = write_table(tmp_path / "other", 10, 1, dimension=5)
    with pytest.raises(
        InvalidInput,
        match="validation must be features of dimension 12, as in train; got features of dim",
    ):
        read_tables(config((features[0], other)))


def test_features_of_other_vectors(features: tuple[str, str], tmp_path: Path) -> None:
    other = Path(write_table(tmp_path / "other", 10, 1))
    (other / "meta.json").write_text(json.dumps({"key": {"vectors": "vec:1", "unit": True}}))
    with pytest.raises(InvalidInput, match="features were made with different vectors: None, unit"):
        read_tables(config(features, train=[features[0], str(other)]))


def test_features_of_another_encoder(features: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="features for the encoder pooled, not facets"):
        read_tables(config(features, encoder="facets"))


def test_partial_gold_needs_facets(features: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="pooled encoder does not weight incomplete gold"):
        read_tables(config(features, partial=[features[0]]))


def test_distillation_needs_teacher_logits(features: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="The features have no teacher logits"):
        read_tables(config(features, distill_weight=0.5))


def test_damaged_features(features: tuple[str, str], tmp_path: Path) -> None:
    broken = write_table(tmp_path / "broken", 10, 1)
    Path(broken, "gold.npy").write_bytes(Path(broken, "gold.npy").read_bytes()[:-3])
    with pytest.raises(BrokenInput, match=r"gold\.npy.*Run dgn data features again"):
        read_tables(config((broken, features[1])))
    Path(broken, "meta.json").write_text("{")
    with pytest.raises(BrokenInput, match=r"meta\.json"):
        read_tables(config((broken, features[1])))


def test_widths_that_do_not_fit_the_model(features: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match="widths must be 2 layers for the encoder; got"):
        build_network(config(features, architecture="encoder", widths=[3]), 12)


def test_facets_are_trained_as_a_dgn_only() -> None:
    with pytest.raises(InvalidInput, match="facets encoder has no encoder architecture; use dgn"):
        network_of(256, encoder="facets", architecture="encoder")


def test_keys_identify_the_features(features: tuple[str, str], tmp_path: Path) -> None:
    keys = feature_keys(config(features))
    assert keys == {
        features[0]: {"made": "30 queries, seed 1"},
        features[1]: {"made": "20 queries, seed 2"},
    }
    taught = Path(write_table(tmp_path / "taught", 10, 1))
    np.save(taught / "teacher_logits.npy", np.zeros(3))
    plain = feature_keys(config(features, train=[str(taught)]))
    assert "teacher_logits" not in plain[str(taught)]
    distilled = config(features, train=[str(taught)], distill_weight=0.5)
    first = feature_keys(distilled)[str(taught)]["teacher_logits"]
    np.save(taught / "teacher_logits.npy", np.ones(3))
    assert feature_keys(distilled)[str(taught)]["teacher_logits"] != first


def test_description_names_the_family_and_its_sizes(features: tuple[str, str]) -> None:
    described = describe_encoder(config(features, widths=[8, 4]), 12)
    assert described["family"] == "pooled"
    assert described["widths"] == [12, 8, 4]
    assert described["pointwise"] is False


@pytest.fixture(autouse=True)
def same_threads_afterwards() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_devices_that_exist() -> None:
    assert find_device("cpu") == torch.device("cpu")
    assert find_device("auto").type in ("cpu", "cuda")


@pytest.mark.parametrize("name", ["teapot", "meta", "cuda:x"])
def test_names_of_no_device(name: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"device must be auto, cpu, cuda or cuda:N; got '{name}'"
    ):
        find_device(name)


def test_device_that_is_not_there() -> None:
    with pytest.raises(InvalidInput, match="The device cuda:99 is not available") as error:
        find_device("cuda:99")
    assert error.value.argument == "device"


def test_place_moves_arrays() -> None:
    found = to_device("cpu")(np.array([1.5, 2.5], np.float32))
    assert torch.equal(found, torch.tensor([1.5, 2.5]))


def test_name_of_a_cpu_contains_its_threads() -> None:
    torch.set_num_threads(1)
    assert "CPU, 1 threads, torch" in name_of(torch.device("cpu"))


def test_threads_that_the_user_asked_for() -> None:
    assert choose_threads(2, 1.0) == 2
    assert torch.get_num_threads() == 2


def test_threads_are_chosen_by_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert choose_threads(0, 1.0) == 1
    monkeypatch.setattr(parallel, "idle_cores", lambda: 2)
    assert choose_threads(0, 1e15) == 2


def test_environment_variable_is_a_choice_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(2)
    assert choose_threads(0, 1.0) == 2
