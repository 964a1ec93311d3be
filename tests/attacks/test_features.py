"""Attacks on features: whatever is wrong with them is one sentence, and no model is written."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgn import BrokenInput, InvalidInput
from dgn.apps.cli.main import main
from dgn.data import Dataset, DenseBatches
from dgn.learn import (
    DifferentiableGreedyNetwork,
    FeatureEncoder,
    FeedForward,
    FitConfig,
    LearnedWeights,
    fit,
    to_device,
)
from dgn.learn.families import FeatureOptions
from dgn.learn.families.facets_table import MatchTable
from dgn.learn.families.pooled_table import PooledTable
from dgn.learn.features import build_features
from small_features import write_queries, write_table

Change = Callable[[Any], Any]


def with_number(index: int, value: Any) -> Change:
    """The array with one other number."""

    def change(array: Any) -> Any:
        changed = array.copy()
        changed.reshape(-1)[index] = value
        return changed

    return change


def shifted(array: Any) -> Any:
    return array - array.max() - 1


POOLED: dict[str, tuple[str, Change]] = {
    "candidates out of range": ("candidates", with_number(3, 10_000)),
    "negative candidates": ("candidates", with_number(0, -1)),
    "short candidates": ("candidates", lambda array: array[:-1]),
    "floats as candidates": ("candidates", lambda array: array.astype(np.float32)),
    "short gold": ("gold", lambda array: array[:-1]),
    "gold of numbers": ("gold", lambda array: array.astype(np.int64)),
    "two columns of gold": ("gold", lambda array: np.stack([array, array], axis=1)),
    "transposed queries": ("queries", np.transpose),
    "transposed passages": ("passages", np.transpose),
    "flat queries": ("queries", np.ravel),
    "NaN in a query": ("queries", with_number(5, np.nan)),
    "infinity in a passage": ("passages", with_number(-1, -np.inf)),
    "complex queries": ("queries", lambda array: array.astype(np.complex64)),
    "another byte order": ("queries", lambda array: array.astype(">f4")),
    "decreasing offsets": ("offsets", lambda array: array[::-1].copy()),
    "negative offsets": ("offsets", shifted),
    "short offsets": ("offsets", lambda array: array[:-1]),
    "offsets beyond the end": ("offsets", with_number(-1, 10_000)),
    "a query without passages": ("offsets", with_number(1, 0)),
    "a few ids": ("ids", lambda array: array[:3]),
    "no query": ("queries", lambda array: array[:0]),
}

FACETS: dict[str, tuple[str, Change]] = {
    "words out of range": ("query", with_number(0, 10_000)),
    "negative words": ("query", with_number(-1, -2)),
    "short similarity": ("similarity", lambda array: array[:-1]),
    "similarity above one": ("similarity", with_number(0, 7)),
    "NaN similarity": ("similarity", with_number(0, np.nan)),
    "negative length": ("length", with_number(0, -3)),
    "transposed vectors": ("vectors", np.transpose),
    "too many facts": ("facts", lambda array: np.concatenate([array, array], axis=1)),
    "short gold": ("gold", lambda array: array[:-1]),
    "negative items": ("items", with_number(0, -5)),
    "huge items": ("items", with_number(0, 2**62)),
    "no tokens": ("tokens", with_number(0, 0)),
    "huge tokens": ("tokens", with_number(0, 2**62)),
    "transposed passages": ("passages", np.transpose),
    "an infinite teacher": ("teacher_logits", lambda _: np.full(40, np.inf, np.float32)),
}


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(write_table(tmp_path_factory.mktemp("pooled") / "features", 20, 0))


@pytest.fixture(scope="module")
def facets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facets")
    data = Dataset(write_queries(folder / "rows.jsonl", 8, 0))
    build_features(data, folder / "features", FeatureOptions(encoder="facets"))
    return folder / "features"


def changed_copy(features: Path, folder: Path, name: str, change: Change) -> Path:
    shutil.copytree(features, folder)
    file = folder / f"{name}.npy"
    np.save(file, change(np.load(file) if file.exists() else None))
    return folder


@pytest.mark.parametrize("case", sorted(POOLED))
def test_pooled_features(pooled: Path, tmp_path: Path, case: str) -> None:
    broken = changed_copy(pooled, tmp_path / "broken", *POOLED[case])
    with pytest.raises(BrokenInput, match=r"\.npy: .*Run dgn data features again"):
        PooledTable.load(broken)


@pytest.mark.parametrize("case", sorted(FACETS))
def test_facets_features(facets: Path, tmp_path: Path, case: str) -> None:
    broken = changed_copy(facets, tmp_path / "broken", *FACETS[case])
    with pytest.raises(BrokenInput, match=r"\.npy: "):
        MatchTable.load(broken)


def test_good_features_pass(pooled: Path, facets: Path) -> None:
    assert len(PooledTable.load(pooled)) == 20
    assert len(MatchTable.load(facets)) == 8


def test_files_that_are_no_arrays(pooled: Path, tmp_path: Path) -> None:
    archive, pickled = io.BytesIO(), io.BytesIO()
    np.savez(archive, a=np.zeros(3))
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    good = (pooled / "gold.npy").read_bytes()
    huge = good.replace(b"'shape': (", b"'shape': (99999999999, ", 1)
    for content in (b"", b"PK", archive.getvalue(), pickled.getvalue(), good[:50], huge):
        broken = tmp_path / "broken"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(pooled, broken)
        (broken / "gold.npy").write_bytes(content)
        with pytest.raises(BrokenInput, match=r"gold\.npy: .*Run dgn data features again"):
            PooledTable.load(broken)


def test_the_command_writes_no_model(
    pooled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nan = changed_copy(pooled, tmp_path / "nan", *POOLED["NaN in a query"])
    no_gold = changed_copy(pooled, tmp_path / "no-gold", "gold", np.zeros_like)
    for train, validation, said in (
        (nan, pooled, "nan/queries.npy: expected finite numbers; found nan at [0, 5]."),
        (pooled, nan, "nan/queries.npy: expected finite numbers"),
        (no_gold, pooled, "No passage of the train features is gold"),
        (pooled, no_gold, "No passage of the validation features is gold"),
    ):
        out = tmp_path / "run"
        command = ["train", "--train", str(train), "--validation", str(validation)]
        assert main([*command, "--epochs", "1", "--out", str(out)]) in (1, 2)
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
        assert not list(tmp_path.rglob("model.safetensors"))


def encoder() -> FeatureEncoder:
    return FeatureEncoder(FeedForward((4, 4, 4)), LearnedWeights(4))


def test_sets_in_memory_without_gold() -> None:
    x = np.random.default_rng(0).standard_normal((6, 5, 4)).astype(np.float32)
    gold, mask = np.zeros((6, 5), bool), np.ones((6, 5), bool)
    none = DenseBatches(x, gold, mask, 3, 0, to_device("cpu"))
    some = DenseBatches(x, x[:, :, 0] > 0, mask, 3, 0, to_device("cpu"))
    for train, validation in ((none, some), (some, none)):
        with pytest.raises(InvalidInput, match="gold"):
            fit(DifferentiableGreedyNetwork(encoder()), train, validation, FitConfig(epochs=1))
