"""Frozen dataclasses as settings: each field has a help text, a type and, often, a range.

A field made with `setting` carries what the command line and the TOML reader need, so that a
setting is described in one place.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, get_args, get_origin, get_type_hints

from dgn.errors import InvalidInput
from dgn.parts import Registry


def setting(
    default: Any,
    help: str,  # noqa: A002
    *,
    choices: tuple[str, ...] = (),
    parts: Registry[Any] | None = None,
) -> Any:
    """A dataclass field with a help text and, if given, its allowed values.

    Args:
        default: The default value.
        help: What it is, for the command line.
        choices: All allowed values.
        parts: The registry of the parts that a text may name.
    """
    return dataclasses.field(
        default=default, metadata={"help": help, "choices": choices, "parts": parts}
    )


def types_of(kind: type) -> dict[str, Any]:
    """The type of each field of a settings class, by name."""
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind)}


def convert(name: str, kind: Any, value: Any) -> Any:
    """The value as the type wants it: TOML has no tuples, and an integer is a fine float.

    Raises:
        InvalidInput: The value has another type.
    """
    if get_origin(kind) is tuple and type(value) in (list, tuple):
        return tuple(convert(name, get_args(kind)[0], one) for one in value)
    if kind == tuple[str, ...] and type(value) is str:
        return (value,)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        wanted = "a list" if get_origin(kind) is tuple else f"a value of type {kind.__name__}"
        raise InvalidInput(name, found=repr(value), allowed=wanted)
    if kind is float and not math.isfinite(value):
        raise InvalidInput(name, found=str(value), allowed="a finite number")
    return value


def check_choices(settings: Any) -> None:
    """Raise InvalidInput if a field has a value that is not one of its choices, or no part."""
    for one in dataclasses.fields(settings):
        choices, found = one.metadata["choices"], getattr(settings, one.name)
        if one.metadata["parts"] is not None:
            one.metadata["parts"].check(found)
        if choices and found not in choices:
            raise InvalidInput(one.name, found=repr(found), allowed=f"one of {', '.join(choices)}")


def check_above(settings: Any, bound: float, *names: str) -> None:
    """Raise InvalidInput unless each of these fields is greater than the bound."""
    for name in names:
        if not getattr(settings, name) > bound:
            found = f"{getattr(settings, name)}"
            raise InvalidInput(name, found=found, allowed=f"greater than {bound:g}")


def check_at_least(settings: Any, bound: float, *names: str) -> None:
    """Raise InvalidInput unless each of these fields is at least the bound."""
    for name in names:
        if not getattr(settings, name) >= bound:
            raise InvalidInput(
                name, found=f"{getattr(settings, name)}", allowed=f"at least {bound:g}"
            )
