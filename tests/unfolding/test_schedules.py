import pytest

from dgn.errors import InvalidInput
from dgn.unfolding import Fixed, Geometric, Linear


def test_fixed() -> None:
    assert Fixed(3.0).at(0) == Fixed(3.0).at(50) == 3.0


def test_geometric_falls_by_a_tenth_an_epoch_to_its_floor() -> None:
    schedule = Geometric(5.0)
    assert schedule.at(0) == 5.0
    assert schedule.at(2) == pytest.approx(5.0 * 0.81)
    assert schedule.at(10_000) == 0.01


def test_linear_reaches_its_end_and_stays() -> None:
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
def test_schedules_that_leave_the_temperatures_are_refused(make: object) -> None:
    with pytest.raises(InvalidInput):
        make()
