import numpy as np
import pytest
import torch

from dgn.data.batches import ClaimBatches, DenseBatches, Position
from dgn.data.feature_table import FeatureTable
from dgn.errors import InvalidInput


@pytest.fixture
def table() -> FeatureTable:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 12, 137)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return FeatureTable(
        claims=random.standard_normal((137, 8)).astype(np.float16),
        sentences=random.standard_normal((60, 8)).astype(np.float16),
        offsets=offsets,
        candidates=random.integers(0, 60, offsets[-1]).astype(np.int32),
        gold=random.random(offsets[-1]) < 0.2,
        ids=np.array([f"c{n}" for n in range(137)]),
    )


def test_a_batch_is_claim_times_sentence_with_padding(table: FeatureTable) -> None:
    batch = ClaimBatches(table, 4, seed=0).batch(np.array([5, 90]))
    for row, claim in enumerate((5, 90)):
        start, end = table.offsets[claim], table.offsets[claim + 1]
        assert batch.mask[row].sum() == end - start
        expected = table.claims[claim].astype(np.float32) * table.sentences[
            table.candidates[start:end]
        ].astype(np.float32)
        np.testing.assert_allclose(batch.x[row][batch.mask[row]], expected)
        assert batch.gold[row][batch.mask[row]].tolist() == table.gold[start:end].tolist()
        assert not batch.gold[row][~batch.mask[row]].any()


def test_an_epoch_has_every_claim_once_in_batches_of_like_length(table: FeatureTable) -> None:
    batches = ClaimBatches(table, 10, seed=3)
    epoch = [batch for _, batch in batches.from_position(Position())]
    assert len(epoch) == len(batches) == 14
    rows = np.concatenate([batch.rows for batch in epoch])
    assert sorted(rows) == list(range(137))
    padding = sum((~batch.mask).sum() for batch in epoch) / sum(b.mask.size for b in epoch)
    assert padding < 0.15


def test_the_order_is_the_seeds_and_the_epochs(table: FeatureTable) -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        batches = ClaimBatches(table, 10, seed).from_position(Position(epoch))
        return [batch.rows.tolist() for _, batch in batches]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(2, 0)
    assert order(1, 0) != order(1, 1)


def test_an_epoch_goes_on_exactly_where_it_stopped(table: FeatureTable) -> None:
    batches = ClaimBatches(table, 10, seed=5)
    whole = list(batches.from_position(Position(2)))
    position = whole[5][0]
    assert position == Position(2, 6)
    again = list(ClaimBatches(table, 10, seed=5).from_position(position))
    assert len(again) == len(whole) - 6
    for (_, one), (_, other) in zip(whole[6:], again, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.x, other.x)


def test_torch_tables_give_torch_batches_of_the_same_numbers(table: FeatureTable) -> None:
    ours = ClaimBatches(table, 10, seed=0)
    theirs = ClaimBatches(table, 10, 0, torch.from_numpy)
    pairs = zip(ours.from_position(Position()), theirs.from_position(Position()), strict=True)
    for (_, one), (_, other) in pairs:
        assert isinstance(other.x, torch.Tensor)
        assert other.x.dtype == torch.float32
        np.testing.assert_array_equal(one.x, other.x.numpy())
        np.testing.assert_array_equal(one.gold, other.gold.numpy())
        np.testing.assert_array_equal(one.mask, other.mask.numpy())


def test_evaluation_sees_every_claim_once_and_little_padding(table: FeatureTable) -> None:
    batches = list(ClaimBatches(table, 10, seed=3).once())
    assert sorted(np.concatenate([batch.rows for batch in batches])) == list(range(137))
    assert sum((~b.mask).sum() for b in batches) / sum(b.mask.size for b in batches) < 0.1


def test_dense_batches_are_rows_of_their_arrays() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((7, 5, 3)).astype(np.float32)
    mask = random.random((7, 5)) < 0.7
    gold = (random.random((7, 5)) < 0.3) & mask
    batches = DenseBatches(x, gold, mask, 3, seed=1)
    assert len(batches) == 3
    for _, batch in batches.from_position(Position()):
        np.testing.assert_array_equal(batch.x, x[batch.rows])
        np.testing.assert_array_equal(batch.gold, gold[batch.rows])
        np.testing.assert_array_equal(batch.mask, mask[batch.rows])


def batch_of(table: FeatureTable, claim: int) -> tuple[list, list]:
    batch = ClaimBatches(table, 1, seed=0).batch(np.array([claim]))
    return batch.x.tolist(), batch.gold.tolist()


def test_tables_join_and_part(table: FeatureTable) -> None:
    rows = np.array([90, 5, 41])
    some = table.of_claims(rows)
    both = FeatureTable.join([table, some])
    assert both.ids.tolist() == [*table.ids, "c90", "c5", "c41"]
    for place, claim in enumerate(rows):
        assert batch_of(some, place) == batch_of(table, claim)
        assert batch_of(both, 137 + place) == batch_of(table, claim)
    assert batch_of(both, 90) == batch_of(table, 90)
    with pytest.raises(InvalidInput, match="tables: found no table"):
        FeatureTable.join([])


def test_bad_input(table: FeatureTable, tmp_path: object) -> None:
    with pytest.raises(InvalidInput, match="batch_size: found 0"):
        ClaimBatches(table, 0, seed=0)
    with pytest.raises(InvalidInput, match="no features in"):
        FeatureTable.load(tmp_path)
