"""A further row for parts of the user: the paper's DGN with other settings, searched like the rest.

    python -m experiments.reproduce DATA --out FOLDER \
        --own relaxation=my_parts:Sharp "concave=my_parts:Root(power=0.3)"

The row is named after its settings. Modules of the parts are imported, also from the current
folder, and worker processes import them, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from dgn.errors import InvalidInput
from dgn.learn import RunConfig
from dgn.learn.config import import_named
from experiments.reproduce.plan import MODELS, RECIPES

FLAG = "--own"


def take_own_parts(arguments: Sequence[str] | None) -> list[str]:
    """The arguments without --own NAME=VALUE ...; the row that it describes is in MODELS."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if FLAG not in given:
        return given
    start = given.index(FLAG)
    end = start + 1
    while end < len(given) and not given[end].startswith("-") and "=" in given[end]:
        end += 1
    add_own_model(given[start + 1 : end])
    return given[:start] + given[end:]


def add_own_model(settings: Sequence[str]) -> str:
    """Add the row, and return its name.

    Args:
        settings: Parts, in the form NAME=VALUE.

    Raises:
        InvalidInput: A setting or a part is not known.
    """
    own = dict(text.split("=", maxsplit=1) for text in settings if "=" in text)
    if not own:
        raise InvalidInput("own", message=f"{FLAG} needs settings: {FLAG} relaxation=sparsemax.")
    import_named(own)
    RunConfig().with_settings(own)
    name = "DGN, " + ", ".join(f"{key} {value}" for key, value in own.items())
    paper = MODELS["DGN"]
    MODELS[name] = replace(paper, name=name, settings={**paper.settings, **own})
    RECIPES["paper"] = tuple(dict.fromkeys((*RECIPES["paper"], name)))
    return name
