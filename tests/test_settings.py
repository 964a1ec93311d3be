"""Settings: their types, conversions and ranges."""

from dataclasses import dataclass, fields

import pytest

from dgn.errors import InvalidInput
from dgn.settings import check_above, check_at_least, check_choices, convert, setting, types_of


@dataclass(frozen=True)
class Example:
    name: str = setting("one", "a name", choices=("one", "two"))
    rate: float = setting(0.5, "a rate")
    sizes: tuple[int, ...] = setting((), "some sizes")


def test_a_setting_carries_its_help_and_choices() -> None:
    name, rate, _ = fields(Example)
    assert name.metadata["help"] == "a name"
    assert name.metadata["choices"] == ("one", "two")
    assert (rate.default, rate.metadata["choices"]) == (0.5, ())


def test_types_are_found_by_name() -> None:
    assert types_of(Example) == {"name": str, "rate": float, "sizes": tuple[int, ...]}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (float, 1, 1.0),
        (float, 0.5, 0.5),
        (int, 3, 3),
        (str, "x", "x"),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[float, ...], (1, 2.5), (1.0, 2.5)),
        (tuple[str, ...], "folder", ("folder",)),
    ],
)
def test_values_are_converted(kind: object, value: object, expected: object) -> None:
    converted = convert("name", kind, value)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, 1.5, "epochs must be a value of type int; got 1.5"),
        (int, True, "epochs must be a value of type int; got True"),
        (str, 3, "epochs must be a value of type str; got 3"),
        (float, "1", "epochs must be a value of type float; got '1'"),
        (float, float("nan"), "epochs must be a finite number; got nan"),
        (float, float("inf"), "epochs must be a finite number; got inf"),
        (tuple[int, ...], 3, "epochs must be a list; got 3"),
        (tuple[int, ...], [1.5], "epochs must be a value of type int; got 1.5"),
        (tuple[int, ...], "ab", "epochs must be a list; got 'ab'"),
    ],
)
def test_values_of_another_type_are_refused(kind: object, value: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        convert("epochs", kind, value)


def test_choices_are_checked() -> None:
    check_choices(Example())
    with pytest.raises(InvalidInput, match="name must be one of one, two; got 'three'"):
        check_choices(Example(name="three"))


def test_ranges_are_checked() -> None:
    check_above(Example(), 0, "rate")
    check_at_least(Example(), 0.5, "rate")
    with pytest.raises(InvalidInput, match=r"rate must be greater than 0\.5; got 0\.5"):
        check_above(Example(), 0.5, "rate")
    with pytest.raises(InvalidInput, match=r"rate must be at least 1; got 0\.5"):
        check_at_least(Example(), 1, "rate")
    with pytest.raises(InvalidInput, match="rate must be at least 1; got nan"):
        check_at_least(Example(rate=float("nan")), 1, "rate")
