"""What a search tries: a range or some choices for each setting.

learning_rate=1e-4:1e-2:log      a range, searched on a logarithmic scale
temperature=0.5:6                a range
optimizer=adam,adamw             choices
width=64:300                     the last layer of the pooled encoder
concave=log,power(exponent=0.3)  choices of a part, with arguments
concave.exponent=0.1:0.9         an argument of a part
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Any

from dgn.errors import InvalidInput
from dgn.learn.config import SECTIONS, RunConfig
from dgn.learn.families import family_names, find_family
from dgn.parts import did_you_mean, with_argument
from dgn.settings import types_of

PAPER_SEARCH = ("learning_rate=1e-4:1e-2:log", "width=64:300", "temperature=0.5:6")
"""The random search of the paper: learning rate, encoder output and temperature."""

_COMMA = re.compile(r",(?![^(]*\))")
"""A comma that is not between the arguments of a part."""

_FORMS = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=ONE,TWO"


@dataclass(frozen=True)
class Dimension:
    """One setting of the search: a range from low to high, or some choices.

    The name "concave.exponent" stands for the argument `exponent` of the part that the setting
    `concave` names.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def least(self) -> float | int:
        """The lower end of the range."""
        return int(self.low) if self.is_whole else self.low

    @property
    def is_whole(self) -> bool:
        """Whether its values are integers."""
        if "." in self.name:
            return type(self.low) is int
        return _searchable()[self.name] is int


def parse_dimension(text: str) -> Dimension:
    """A dimension as the command line writes it.

    Every trial has the same data, machine and seed: a search compares settings, not luck.
    """
    name, _, values = text.partition("=")
    name, dot, argument = name.replace("-", "_").partition(".")
    kind = _searchable().get(name)
    is_part = _names_part(name)
    if kind not in (int, float, str) or (dot and not is_part):
        near = did_you_mean(name, _searchable())
        raise InvalidInput(
            "search", found=f"{text!r}{near}", allowed="a setting of a run that has one value"
        )
    if not values:
        raise InvalidInput("search", found=repr(text), allowed=f"of the form {_FORMS}")
    name, convert = (f"{name}.{argument}", _literal) if dot else (name, kind)
    try:
        if ":" not in values or (is_part and not dot):  # module:Class is not a range
            return Dimension(name, choices=tuple(map(convert, _COMMA.split(values))))
        low, high, *rest = values.split(":")
        if rest not in ([], ["log"]):
            raise ValueError
        dimension = Dimension(name, *_ends(convert(low), convert(high), dot), bool(rest))
    except (ValueError, SyntaxError, TypeError):
        raise InvalidInput("search", found=repr(text), allowed=f"of the form {_FORMS}") from None
    finite = math.isfinite(dimension.low) and math.isfinite(dimension.high)
    if not finite or dimension.low >= dimension.high or (dimension.log and dimension.low <= 0):
        raise InvalidInput(
            "search", found=repr(text), allowed="a range with LOW < HIGH, both above 0 for log"
        )
    return dimension


def config_of_trial(base: RunConfig, inputs: int, chosen: dict[str, Any]) -> RunConfig:
    """The base configuration with the settings of a trial."""
    settings = dict(chosen)
    if "width" in settings:
        first = getattr(base.encoder, "widths", ())[:-1] or (inputs,)
        settings["widths"] = [*first, settings.pop("width")]
    for name in [name for name in settings if "." in name]:
        part, _, argument = name.partition(".")
        text = settings.get(part, getattr(_section_with(base, part), part))
        settings[part] = with_argument(part, text, argument, settings.pop(name))
    return base.with_settings(settings)


def _searchable() -> dict[str, Any]:
    """The type of every setting that a search may vary."""
    kinds: dict[str, Any] = {"width": int}
    for name in family_names():
        kinds |= types_of(find_family(name).settings)
    kinds |= types_of(SECTIONS["network"]) | types_of(SECTIONS["fit"])
    del kinds["seed"]
    return kinds


def _section_with(config: RunConfig, name: str) -> Any:
    """The section of the configuration that has this setting."""
    sections = (config.network, config.fit, config.encoder)
    return next((one for one in sections if hasattr(one, name)), config.encoder)


def _names_part(name: str) -> bool:
    """Whether a setting names a part, which may have arguments."""
    kinds = [find_family(family).settings for family in family_names()]
    fields = [one for kind in (*kinds, *SECTIONS.values()) for one in dataclasses.fields(kind)]
    return any(one.name == name and one.metadata["parts"] is not None for one in fields)


def _literal(text: str) -> Any:
    return ast.literal_eval(text)


def _ends(low: Any, high: Any, is_argument: str) -> tuple[Any, Any]:
    """Both ends of a range; those of an argument are integers only if both are."""
    if is_argument and type(low) is type(high) is int:
        return low, high
    return float(low), float(high)
