"""How the temperature changes from epoch to epoch."""

import pytest

from dgn.errors import InvalidInput
from dgn.training.schedules import Fixed, Geometric, Linear


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
