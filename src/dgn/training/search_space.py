"""What a search tries: for each setting a range or some choices.

learning_rate=1e-4:1e-2:log      a range, searched by its logarithm
temperature=0.5:6                a range
optimizer=adam,adamw             choices
width=64:300                     the last layer of the encoder (`widths` but for its first)
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Any

from dgn.errors import InvalidInput
from dgn.training.config import SETTINGS, RunConfig

# The paper's random search: learning rate, encoder output and temperature.
PAPERS_SEARCH = ("learning_rate=1e-4:1e-2:log", "width=64:300", "temperature=0.5:6")
_FORMS = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=ONE,TWO,…"
# Every trial has the same data, machine and seed: a search compares settings, not luck.
_TYPES: dict[str, Any] = {
    **SETTINGS["network"],
    **{name: kind for name, kind in SETTINGS["fit"].items() if name != "seed"},
    "width": int,
}


@dataclass(frozen=True)
class Dimension:
    """One setting of the search: a range from low to high, or choices."""

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it takes whole numbers."""
        return _TYPES[self.name] is int


def parse_dimension(text: str) -> Dimension:
    """A dimension as the command line writes it."""
    name, _, values = text.partition("=")
    name = name.replace("-", "_")
    kind = _TYPES.get(name)
    if kind not in (int, float, str):
        near = difflib.get_close_matches(name, _TYPES, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise InvalidInput("search", found=f"{text!r}{hint}", allowed="settings of a run")
    if not values:
        raise InvalidInput("search", found=repr(text), allowed=_FORMS)
    try:
        if ":" not in values:
            return Dimension(name, choices=tuple(kind(value) for value in values.split(",")))
        low, high, *rest = values.split(":")
        if rest not in ([], ["log"]):
            raise ValueError
        dimension = Dimension(name, float(kind(low)), float(kind(high)), bool(rest))
    except ValueError:
        raise InvalidInput("search", found=repr(text), allowed=_FORMS) from None
    finite = math.isfinite(dimension.low) and math.isfinite(dimension.high)
    if not finite or dimension.low >= dimension.high or (dimension.log and dimension.low <= 0):
        raise InvalidInput("search", found=repr(text), allowed="LOW < HIGH; above 0 for log")
    return dimension


def config_of_trial(base: RunConfig, inputs: int, chosen: dict[str, Any]) -> RunConfig:
    """The base with what a trial chose."""
    settings = dict(chosen)
    if "width" in settings:
        first = base.network.widths[:-1] or (inputs,)
        settings["widths"] = [*first, settings.pop("width")]
    return base.with_settings(settings)
