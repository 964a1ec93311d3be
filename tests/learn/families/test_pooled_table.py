from pathlib import Path

import numpy as np
import pytest
import torch

from dgn.data import Dataset, Position
from dgn.data.store import build_store
from dgn.errors import BrokenInput, InvalidInput
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled_table import PooledBatches, PooledTable
from dgn.learn.features import build_features
from dgn.text.vectors import unit_rows
from fever_files import write_claims, write_wiki
from models import wordllama


@pytest.fixture
def table() -> PooledTable:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 12, 137)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return PooledTable(
        queries=random.standard_normal((137, 8)).astype(np.float16),
        passages=random.standard_normal((60, 8)).astype(np.float16),
        offsets=offsets,
        candidates=random.integers(0, 60, offsets[-1]).astype(np.int32),
        gold=random.random(offsets[-1]) < 0.2,
        ids=np.array([f"c{n}" for n in range(137)]),
    )


def test_batch_is_query_times_passage_with_padding(table: PooledTable) -> None:
    batch = PooledBatches(table, 4, seed=0).batch(np.array([5, 90]))
    for row, query in enumerate((5, 90)):
        start, end = table.offsets[query], table.offsets[query + 1]
        assert batch.mask[row].sum() == end - start
        expected = table.queries[query].astype(np.float32) * table.passages[
            table.candidates[start:end]
        ].astype(np.float32)
        np.testing.assert_allclose(batch.x[row][batch.mask[row]], expected)
        assert batch.gold[row][batch.mask[row]].tolist() == table.gold[start:end].tolist()
        assert not batch.gold[row][~batch.mask[row]].any()


def test_epoch_has_every_query_once_with_little_padding(table: PooledTable) -> None:
    source = PooledBatches(table, 10, seed=3)
    assert source.query_count == 137
    for some in (
        [source.batch(rows) for _, rows in source.rows_from(Position())],
        list(source.once()),
    ):
        assert len(some) == len(source) == 14
        assert sorted(np.concatenate([batch.rows for batch in some])) == list(range(137))
        assert sum((~b.mask).sum() for b in some) / sum(b.mask.size for b in some) < 0.15


def test_resumed_epoch_has_the_same_batches(table: PooledTable) -> None:
    source = PooledBatches(table, 10, seed=5)
    whole = list(source.rows_from(Position(2)))
    again = list(PooledBatches(table, 10, seed=5).rows_from(whole[5][0]))
    assert len(again) == len(whole) - 6
    for (_, rows), (_, others) in zip(whole[6:], again, strict=True):
        np.testing.assert_array_equal(source.batch(rows).x, source.batch(others).x)


def test_torch_tables_give_torch_batches_of_the_same_numbers(table: PooledTable) -> None:
    ours = PooledBatches(table, 10, seed=0)
    theirs = PooledBatches(table, 10, 0, torch.from_numpy)
    for _, rows in ours.rows_from(Position()):
        one, other = ours.batch(rows), theirs.batch(rows)
        assert isinstance(other.x, torch.Tensor)
        assert other.x.dtype == torch.float32
        np.testing.assert_array_equal(one.x, other.x.numpy())
        np.testing.assert_array_equal(one.gold, other.gold.numpy())
        np.testing.assert_array_equal(one.mask, other.mask.numpy())


def batch_of(table: PooledTable, query: int) -> tuple[list, list]:
    batch = PooledBatches(table, 1, seed=0).batch(np.array([query]))
    return batch.x.tolist(), batch.gold.tolist()


def test_joined_and_divided_tables_have_the_same_queries(table: PooledTable) -> None:
    rows = np.array([90, 5, 41])
    some = table.rows(rows)
    both = PooledTable.join([table, some])
    assert len(both) == 140
    assert both.ids.tolist() == [*table.ids, "c90", "c5", "c41"]
    for place, query in enumerate(rows):
        assert batch_of(some, place) == batch_of(table, query)
        assert batch_of(both, 137 + place) == batch_of(table, query)
    assert batch_of(both, 90) == batch_of(table, 90)


def test_mistakes_are_named(table: PooledTable, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="tables of one dimension; got none"):
        PooledTable.join([])
    with pytest.raises(InvalidInput, match="batch_size must be at least 1; got 0"):
        PooledBatches(table, 0, seed=0)
    with pytest.raises(BrokenInput, match=r"queries\.npy: .*Run dgn data features again"):
        PooledTable.load(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    build_store(write_wiki(tmp_path / "wiki-pages"), tmp_path / "pages.db")
    return Dataset(write_claims(tmp_path / "dev.jsonl"), tmp_path / "pages.db")


@pytest.mark.parametrize("unit", [False, True])
def test_written_features_are_pooled_vectors(data: Dataset, tmp_path: Path, unit: bool) -> None:
    build_features(data, tmp_path / "features", FeatureOptions(unit=unit), workers=1)
    table = PooledTable.load(tmp_path / "features")
    assert table.queries.dtype == table.passages.dtype == np.float16
    batch = PooledBatches(table, 2, seed=0).batch(np.arange(2))
    for row, example in enumerate(data.examples()):
        texts = example.query.texts
        query, passages = wordllama().pooled([example.claim.text]), wordllama().pooled(texts)
        if unit:
            query, passages = unit_rows(query), unit_rows(passages)
        np.testing.assert_allclose(batch.x[row, : len(texts)], query * passages, atol=2e-2)
        assert batch.gold[row, : len(texts)].tolist() == list(example.gold)
        assert table.ids[row] == example.claim.id


def test_two_workers_write_what_one_writes(data: Dataset, tmp_path: Path) -> None:
    build_features(data, tmp_path / "one", FeatureOptions(), workers=1)
    build_features(data, tmp_path / "two", FeatureOptions(), workers=2)
    for name in ("queries", "passages", "offsets", "candidates", "gold", "ids"):
        one, two = (np.load(tmp_path / folder / f"{name}.npy") for folder in ("one", "two"))
        np.testing.assert_array_equal(one, two)
