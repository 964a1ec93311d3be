"""A third encoder family, defined here alone: it is trained, saved, loaded, and selects."""

# A family need not use all arguments of its methods.
# ruff: noqa: ARG002, ARG003

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from torch import nn

import dgn
from dgn.apps.cli.main import main
from dgn.core.functions import FeatureCoverage, Items
from dgn.data import Batches, Dataset, DenseBatches, Example, ToDevice
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn import RunConfig, load_network, select_all, to_device, train
from dgn.learn.families import (
    FeatureOptions,
    FeatureWriter,
    TrainableFamily,
    family_names,
    register_family,
)
from dgn.learn.families import base as families
from dgn.learn.families.base import load_array
from dgn.learn.features import build_features
from dgn.settings import check_above, setting
from dgn.text.encoder import Encoder
from dgn.text.encoder import base as encoders
from dgn.text.encoder import ReadArrays, require_keys
from dgn.text.query import Query
from small_features import write_queries

BUCKETS = 16


def trigrams(text: str) -> set[str]:
    padded = f"  {text.lower()} "
    return {padded[i : i + 3] for i in range(len(padded) - 2)}


def overlap(queries: Sequence[Query]) -> tuple[np.ndarray, np.ndarray]:
    """How many trigrams each passage shares with its query, in buckets: X and the mask."""
    longest = max(len(query.passages) for query in queries)
    x = np.zeros((len(queries), longest, BUCKETS), np.float32)
    mask = np.zeros((len(queries), longest), bool)
    for row, query in enumerate(queries):
        wanted = trigrams(query.text)
        for item, text in enumerate(query.texts):
            mask[row, item] = True
            for shared in wanted & trigrams(text):
                x[row, item, sum(shared.encode()) % BUCKETS] += 1
    return x, mask


@dataclass(frozen=True)
class OverlapSettings:
    initial: float = setting(1.0, "value of every scale at the start")

    def __post_init__(self) -> None:
        check_above(self, 0, "initial")


@dataclass(frozen=True, eq=False)
class OverlapTable:
    x: np.ndarray
    gold: np.ndarray
    mask: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    @property
    def dimension(self) -> int:
        return self.x.shape[2]

    def rows(self, rows: np.ndarray) -> "OverlapTable":
        return OverlapTable(self.x[rows], self.gold[rows], self.mask[rows])


class OverlapWriter(FeatureWriter):
    def __init__(self, folder: Path) -> None:
        self._folder, self._examples = folder, list[Example]()
        self.query_count = self.passage_count = self.missing_count = 0

    def add(self, example: Example) -> None:
        self._examples.append(example)
        self.query_count += 1
        self.passage_count += len(example.query.passages)
        self.missing_count += len(example.missing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            x, mask = overlap([example.query for example in self._examples])
            gold = np.zeros_like(mask)
            for row, example in enumerate(self._examples):
                gold[row, : len(example.gold)] = example.gold
            for name, array in (("x", x), ("gold", gold), ("mask", mask)):
                np.save(self._folder / f"{name}.npy", array)


class OverlapModule(nn.Module):
    def __init__(self, inputs: int, initial: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((inputs,), initial))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> tuple[FeatureCoverage, Items]:
        return FeatureCoverage(), Items(torch.relu(self.scale) * x, mask)


class OverlapEncoder(Encoder):
    family = "overlap"
    description = "The features are counts of character trigrams that query and passage share."
    limits = "It sees letters only."

    def __init__(self, scale: np.ndarray) -> None:
        self.scale = scale

    def encode(self, queries: Sequence[Query]) -> tuple[FeatureCoverage, Items]:
        x, mask = overlap(queries)
        return FeatureCoverage(), Items(np.maximum(self.scale, 0) * x, mask)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    @property
    def parameters(self) -> int:
        return self.scale.size

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"family": "overlap", "buckets": len(self.scale)}, {"scale": self.scale}

    @classmethod
    def load(
        cls, description: Mapping[str, Any], arrays: ReadArrays, vectors: str | None
    ) -> "OverlapEncoder":
        require_keys(description, buckets=int)
        return cls(arrays({"scale": (description["buckets"],)})["scale"])


class OverlapFamily(TrainableFamily):
    encoder = OverlapEncoder
    settings = OverlapSettings

    def check_options(self, options: FeatureOptions) -> None:
        if options.unit:
            raise InvalidInput("unit", message="The overlap encoder has no vectors.")

    def feature_key(self, options: FeatureOptions) -> dict[str, Any]:
        return {"buckets": BUCKETS}

    def open_writer(self, folder: Path, options: FeatureOptions, workers: int) -> FeatureWriter:
        return OverlapWriter(folder)

    def load_tables(
        self, folders: Sequence[Path], *, partial: Sequence[Path] = (), negative_weight: float = 1.0
    ) -> OverlapTable:
        (folder,) = folders
        return OverlapTable(*(load_array(folder / f"{name}.npy") for name in ("x", "gold", "mask")))

    def batches(self, table: Any, batch_size: int, seed: int, to_device: ToDevice) -> Batches:
        return DenseBatches(table.x, table.gold, table.mask, batch_size, seed, to_device)

    def module(
        self, model: str, settings: Any, inputs: int, dropout: float, seed: int
    ) -> nn.Module:
        return OverlapModule(inputs, settings.initial)

    def describe(
        self, model: str, settings: Any, inputs: int, features: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {"family": self.name, "buckets": inputs}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The family is registered for one test, and the registry is as before after it."""
    before = family_names()
    monkeypatch.setattr(families, "_FAMILIES", dict(families._FAMILIES))
    monkeypatch.setattr(encoders.ENCODERS, "_parts", dict(encoders.ENCODERS._parts))
    monkeypatch.setattr(families.FAMILIES, "_parts", dict(families.FAMILIES._parts))
    register_family(OverlapFamily())
    assert family_names() == (*before, "overlap")
    yield
    monkeypatch.undo()
    assert family_names() == before


@pytest.fixture
def queries(tmp_path: Path) -> tuple[Path, Path]:
    return tuple(
        write_queries(tmp_path / f"{name}.jsonl", count, seed)
        for name, count, seed in (("train", 40, 1), ("validation", 20, 2))
    )


@pytest.fixture
def features(queries: tuple[Path, Path], tmp_path: Path) -> tuple[str, str]:
    for path in queries:
        options = FeatureOptions(encoder="overlap")
        report = build_features(Dataset(path), tmp_path / path.stem, options)
        assert report.made
        assert report.passages > report.queries
    return str(tmp_path / "train"), str(tmp_path / "validation")


def config(features: tuple[str, str], **settings: object) -> RunConfig:
    few = {"epochs": 3, "batch_size": 8, "layers": 2, "eval_ks": [1, 3], "learning_rate": 0.1}
    data = {"train": [features[0]], "validation": features[1], "device": "cpu"}
    return RunConfig().with_settings({**few, **data, "encoder": "overlap", **settings})


def test_family_is_trained_saved_loaded_and_selects(
    features: tuple[str, str], queries: tuple[Path, Path], tmp_path: Path
) -> None:
    result = train(config(features), tmp_path / "run")
    assert result.reports[-1].loss < result.reports[1].loss
    table = OverlapFamily().load_tables([Path(features[1])])
    batches = OverlapFamily().batches(table, 8, 0, to_device("cpu"))
    by_torch = select_all(result.network, batches, 3)[0]
    assert np.array_equal(select_all(load_network(tmp_path / "run"), batches, 3)[0], by_torch)
    selector = dgn.Selector.from_pretrained(tmp_path / "run")
    assert isinstance(selector.encoder, OverlapEncoder)
    examples = Dataset(queries[1]).examples()
    selected = selector.select_queries([example.query for example in examples], dgn.Limits(k=3))
    for one, expected in zip(selected, by_torch, strict=True):
        # Ties between loose passages go to the first text; greedy gives them to the first item.
        by_index = dgn.greedy(one.objective, one.items, 3)[0]
        assert list(by_index.indices) == [index for index in expected if index >= 0]
        assert one.gains == pytest.approx(by_index.gains)
    selector.save_pretrained(tmp_path / "copy")
    copy = dgn.Selector.from_pretrained(tmp_path / "copy")
    np.testing.assert_array_equal(copy.encoder.scale, selector.encoder.scale)


def test_card_has_the_words_of_the_family(features: tuple[str, str], tmp_path: Path) -> None:
    train(config(features, epochs=1), tmp_path / "run")
    card = (tmp_path / "run" / "README.md").read_text()
    assert OverlapEncoder.description in card
    assert OverlapEncoder.limits in card
    assert "[overlap]\ninitial = 1.0" in card


def test_settings_of_the_family_are_settings_of_a_run(features: tuple[str, str]) -> None:
    run = config(features, initial=2)
    assert run.encoder == OverlapSettings(2.0)
    with pytest.raises(InvalidInput, match=r"initial must be greater than 0; got 0\.0"):
        config(features, initial=0)


def test_commands_know_the_family(
    queries: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in queries:
        out = ["--out", str(tmp_path / f"{path.stem}-features")]
        made = ["data", "features", "--queries", str(path), "--encoder", "overlap", *out]
        assert main(made) == 0
    data = ["--train", str(tmp_path / "train-features")]
    data += ["--validation", str(tmp_path / "validation-features")]
    few = ["--encoder", "overlap", "--initial", "2", "--epochs", "1", "--device", "cpu"]
    assert main(["train", "--out", str(tmp_path / "run"), *data, *few]) == 0
    assert "best epoch" in capsys.readouterr().out


def test_model_of_a_family_that_is_not_registered_is_refused(
    features: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(config(features, epochs=1), tmp_path / "run")
    monkeypatch.delitem(encoders.ENCODERS._parts, "overlap")
    wanted = r"one of facets, minilm, pooled, a name .* \(--import MODULE\), .*; got 'overlap'"
    with pytest.raises(BrokenInput, match=wanted):
        dgn.Selector.from_pretrained(tmp_path / "run")
