"""Training on pooled vectors, from texts to a selector that needs no torch."""

from pathlib import Path

import numpy as np
import pytest

import dgn
from dgn.data import Dataset, Example
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn import RunConfig, load_network, parameter_count, select_all, to_device, train
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.features import build_features
from small_features import write_queries, write_vectors


class Texts:
    """Queries, their features, and the vectors that the features were made with."""

    def __init__(self, folder: Path, *, unit: bool) -> None:
        self.vectors = write_vectors(folder / "words.vec")
        self.datasets = [
            Dataset(write_queries(folder / f"{name}.jsonl", count, seed))
            for name, count, seed in (("train", 60, 1), ("validation", 30, 2))
        ]
        options = FeatureOptions(str(self.vectors), unit=unit)
        self.features = [str(folder / name) for name in ("train", "validation")]
        for dataset, out in zip(self.datasets, self.features, strict=True):
            assert build_features(dataset, Path(out), options, workers=1).made

    @property
    def examples(self) -> list[Example]:
        return list(self.datasets[1].examples())

    def config(self, **settings: object) -> RunConfig:
        few = {"epochs": 4, "batch_size": 8, "layers": 3, "eval_ks": [1, 3], "learning_rate": 0.01}
        data = {"train": [self.features[0]], "validation": self.features[1], "device": "cpu"}
        return RunConfig().with_settings({**few, **data, "scale": 5.0, **settings})


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "unit"])
def texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Texts:
    return Texts(tmp_path_factory.mktemp("texts"), unit=request.param)


def selections_of(selector: dgn.Selector, examples: list[Example], k: int) -> np.ndarray:
    found = np.full((len(examples), k), -1)
    selected = selector.select_queries([example.query for example in examples], dgn.Limits(k=k))
    for row, one in enumerate(selected):
        found[row, : len(one)] = one.indices
    return found


@pytest.mark.parametrize("architecture", ["dgn", "encoder", "deep-encoder"])
def test_selector_agrees_with_the_network(texts: Texts, tmp_path: Path, architecture: str) -> None:
    result = train(texts.config(architecture=architecture), tmp_path / "run")
    assert result.best_epoch > 0
    batches = PooledBatches(PooledTable.load(texts.features[1]), 8, 0, to_device("cpu"))
    by_torch = select_all(result.network, batches, 5)[0]
    selector = dgn.Selector.from_pretrained(tmp_path / "run")
    assert np.array_equal(selections_of(selector, texts.examples, 5), by_torch)
    assert np.array_equal(select_all(load_network(tmp_path / "run"), batches, 5)[0], by_torch)
    assert selector.encoder.parameters == parameter_count(result.network)
    assert selector.card == (tmp_path / "run" / "README.md").read_text()


def test_saved_selector_selects_the_same(texts: Texts, tmp_path: Path) -> None:
    train(texts.config(epochs=1), tmp_path / "run")
    selector = dgn.Selector.from_pretrained(tmp_path / "run")
    selector.save_pretrained(tmp_path / "copy")
    copy = dgn.Selector.from_pretrained(tmp_path / "copy")
    expected = selections_of(selector, texts.examples, 3)
    assert np.array_equal(selections_of(copy, texts.examples, 3), expected)


def test_vectors_that_have_moved_can_be_passed(texts: Texts, tmp_path: Path) -> None:
    train(texts.config(epochs=1), tmp_path / "run")
    expected = selections_of(dgn.Selector.from_pretrained(tmp_path / "run"), texts.examples, 3)
    moved = tmp_path / "moved.vec"
    moved.write_bytes(texts.vectors.read_bytes())
    away = texts.vectors.rename(texts.vectors.with_name("away.vec"))
    try:
        with pytest.raises(BrokenInput, match="The vectors of the model cannot be opened"):
            dgn.Selector.from_pretrained(tmp_path / "run")
        selector = dgn.Selector.from_pretrained(tmp_path / "run", vectors=str(moved))
        assert np.array_equal(selections_of(selector, texts.examples, 3), expected)
    finally:
        away.rename(texts.vectors)
    other = write_vectors(tmp_path / "other.vec", dimension=7)
    with pytest.raises(InvalidInput, match="is not what the model was trained with"):
        dgn.Selector.from_pretrained(tmp_path / "run", vectors=str(other))
