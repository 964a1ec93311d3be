"""The encoder families by name."""

from __future__ import annotations

from dgn.encoders.base import EncoderFamily
from dgn.errors import InvalidInput

_FAMILIES: dict[str, EncoderFamily] = {}


def register_family(family: EncoderFamily) -> None:
    """Make a family available to `dgn data features`, `dgn train` and `Selector.from_pretrained`.

    Args:
        family: The family; it replaces one with the same name.
    """
    _FAMILIES[family.name] = family


def find_family(name: str) -> EncoderFamily:
    """The family with this name."""
    if name not in _FAMILIES:
        raise InvalidInput("encoder", found=repr(name), allowed=f"one of {', '.join(_FAMILIES)}")
    return _FAMILIES[name]


def family_names() -> tuple[str, ...]:
    """The names of all registered families."""
    return tuple(_FAMILIES)
