"""What a search tries: a range or some choices for each setting.

learning_rate=1e-4:1e-2:log      a range, searched on a logarithmic scale
temperature=0.5:6                a range
optimizer=adam,adamw             choices
width=64:300                     the last layer of the pooled encoder
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Any

from dgn.errors import InvalidInput
from dgn.learn.config import SECTIONS, RunConfig
from dgn.learn.families import family_names, find_family
from dgn.settings import types_of

PAPER_SEARCH = ("learning_rate=1e-4:1e-2:log", "width=64:300", "temperature=0.5:6")
"""The random search of the paper: learning rate, encoder output and temperature."""

_FORMS = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=ONE,TWO"


@dataclass(frozen=True)
class Dimension:
    """One setting of the search: a range from low to high, or some choices."""

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
        return _searchable()[self.name] is int


def parse_dimension(text: str) -> Dimension:
    """A dimension as the command line writes it.

    Every trial has the same data, machine and seed: a search compares settings, not luck.
    """
    name, _, values = text.partition("=")
    name = name.replace("-", "_")
    kind = _searchable().get(name)
    if kind not in (int, float, str):
        near = difflib.get_close_matches(name, _searchable(), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InvalidInput(
            "search", found=f"{text!r}{hint}", allowed="a setting of a run that has one value"
        )
    if not values:
        raise InvalidInput("search", found=repr(text), allowed=f"of the form {_FORMS}")
    try:
        if ":" not in values:
            return Dimension(name, choices=tuple(kind(value) for value in values.split(",")))
        low, high, *rest = values.split(":")
        if rest not in ([], ["log"]):
            raise ValueError
        dimension = Dimension(name, float(kind(low)), float(kind(high)), bool(rest))
    except ValueError:
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
    return base.with_settings(settings)


def _searchable() -> dict[str, Any]:
    """The type of every setting that a search may vary."""
    kinds: dict[str, Any] = {"width": int}
    for name in family_names():
        kinds |= types_of(find_family(name).settings)
    kinds |= types_of(SECTIONS["network"]) | types_of(SECTIONS["fit"])
    del kinds["seed"]
    return kinds
