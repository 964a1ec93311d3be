import numpy as np
import pytest
import torch

from dgn.data import Batch, DenseBatches, Position
from dgn.errors import InvalidInput

QUERIES, ITEMS, INPUTS = 137, 11, 3


def batches(size: int = 10, seed: int = 0, **options: object) -> DenseBatches:
    random = np.random.default_rng(0)
    x = random.standard_normal((QUERIES, ITEMS, INPUTS)).astype(np.float32)
    mask = np.arange(ITEMS) < random.integers(1, ITEMS + 1, QUERIES)[:, None]
    gold = (random.random((QUERIES, ITEMS)) < 0.3) & mask
    return DenseBatches(x, gold, mask, size, seed, **options)


def epoch_of(source: DenseBatches, position: Position) -> list[Batch]:
    return [source.batch(rows) for _, rows in source.rows_from(position)]


def padding_of(some: list[Batch], source: DenseBatches) -> float:
    """The share of padding if each batch were as wide as its longest query."""
    lengths = [source.lengths[batch.rows] for batch in some]
    return 1 - sum(n.sum() for n in lengths) / sum(n.max() * len(n) for n in lengths)


def test_epoch_has_every_query_once_in_batches_of_similar_length() -> None:
    source = batches(10, seed=3)
    epoch = epoch_of(source, Position())
    assert len(epoch) == len(source) == 14
    assert source.query_count == QUERIES
    rows = np.concatenate([batch.rows for batch in epoch])
    assert sorted(rows) == list(range(QUERIES))
    assert padding_of(epoch, source) < 0.15


def test_order_depends_on_the_seed_and_the_epoch() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return [rows.tolist() for _, rows in batches(10, seed).rows_from(Position(epoch))]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(2, 0)
    assert order(1, 0) != order(1, 1)


def test_epoch_resumes_exactly_where_it_stopped() -> None:
    whole = list(batches(10, seed=5).rows_from(Position(2)))
    position = whole[5][0]
    assert position == Position(2, 6)
    again = list(batches(10, seed=5).rows_from(position))
    assert len(again) == len(whole) - 6
    for (place, rows), (other_place, others) in zip(whole[6:], again, strict=True):
        assert place == other_place
        np.testing.assert_array_equal(rows, others)


def test_evaluation_sees_every_query_once_with_little_padding() -> None:
    source = batches(10, seed=3)
    some = list(source.once())
    assert sorted(np.concatenate([batch.rows for batch in some])) == list(range(QUERIES))
    assert padding_of(some, source) < 0.1


def test_batches_are_rows_of_the_arrays() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((7, 5, 3)).astype(np.float32)
    mask = random.random((7, 5)) < 0.7
    gold = (random.random((7, 5)) < 0.3) & mask
    source = DenseBatches(x, gold, mask, 3, seed=1)
    assert len(source) == 3
    for batch in epoch_of(source, Position()):
        np.testing.assert_array_equal(batch.x, x[batch.rows])
        np.testing.assert_array_equal(batch.gold, gold[batch.rows])
        np.testing.assert_array_equal(batch.mask, mask[batch.rows])
        assert batch.negative_weight is None
        assert batch.teacher_logits is None


def test_torch_batches_have_the_same_numbers() -> None:
    ours, theirs = batches(10), batches(10, to_device=torch.from_numpy)
    pairs = zip(epoch_of(ours, Position()), epoch_of(theirs, Position()), strict=True)
    for one, other in pairs:
        assert isinstance(other.x, torch.Tensor)
        assert other.x.dtype == torch.float32
        np.testing.assert_array_equal(one.x, other.x.numpy())
        np.testing.assert_array_equal(one.gold, other.gold.numpy())
        np.testing.assert_array_equal(one.mask, other.mask.numpy())


def test_batch_size_is_checked() -> None:
    with pytest.raises(InvalidInput, match="batch_size must be at least 1; got 0"):
        batches(0)
