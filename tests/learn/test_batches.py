import numpy as np
import pytest
import torch

from dgn.errors import InvalidInput
from dgn.learn.batches import DenseTable


def table(count: int = 37) -> DenseTable:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 9, count)
    mask = torch.from_numpy(np.arange(8) < lengths[:, None])
    x = torch.arange(count).float()[:, None, None].expand(count, 8, 3)
    return DenseTable(x, mask, mask)


def numbers(sets: DenseTable, seed: int, epoch: int) -> list[list[int]]:
    return [batch.x[:, 0, 0].long().tolist() for batch in sets.shuffled(4, seed=seed, epoch=epoch)]


def test_an_epoch_contains_every_set_once() -> None:
    sets = table()
    found = numbers(sets, 0, 0)
    assert sorted(row for rows in found for row in rows) == list(range(37))
    assert len(found) == sets.steps(4) == 10


def test_the_seed_and_the_epoch_determine_the_order() -> None:
    sets = table()
    assert numbers(sets, 0, 0) == numbers(sets, 0, 0)
    assert numbers(sets, 0, 0) != numbers(sets, 0, 1)
    assert numbers(sets, 0, 0) != numbers(sets, 1, 0)


def test_sets_of_similar_length_are_together() -> None:
    sets = table(200)
    spread = [float(np.ptp(batch.mask.sum(dim=1).numpy())) for batch in sets.shuffled(4, 0, 0)]
    assert max(spread) <= 1


def test_once_goes_by_length() -> None:
    sets = table()
    rows = [row for numbers, _ in sets.once(5) for row in numbers.tolist()]
    assert sorted(rows) == list(range(37))
    assert (np.diff(sets.lengths[rows]) >= 0).all()


def test_gold_outside_of_the_mask_does_not_count() -> None:
    mask = torch.tensor([[True, False]])
    batch = DenseTable(torch.ones(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), mask).batch(
        np.array([0])
    )
    assert batch.gold.tolist() == [[True, False]]


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"table must be x of \[sets, items, inputs\]"):
        DenseTable(torch.ones(2, 3, 4), torch.ones(2, 4, dtype=torch.bool))
