"""`dgn verify`: compute a receipt again."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, cast

from dgn.errors import BrokenInput

_LARGEST = 256 * 2**20
_NAMES = {"default": None, **{name: name for name in ("untrained", "minilm", "minilm-words")}}
"""Models that may be loaded because a receipt names them; others must be named by the user."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn verify`."""
    parser.description = (
        "Compute a receipt again: the same model and the same input must give the same selection. "
        "The exit code is 0 if the receipt is right, and 1 if it is not."
    )
    parser.epilog = "example: dgn verify receipt.json"
    parser.add_argument("receipt", type=Path, metavar="RECEIPT", help="JSON file")
    parser.add_argument(
        "--model", metavar="MODEL", help="model folder, if the receipt was made with one"
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    from dgn.errors import InvalidInput
    from dgn.selector import Selector
    from dgn.selector.receipt import verify_receipt

    content = _content(options.receipt)
    model = options.model
    if model is None:
        name = _name_of(_name_of(content, "model"), "name")
        if name not in _NAMES:
            raise InvalidInput(
                "model",
                message=f"The receipt was made with the model {name!r:.60}; pass --model.",
            )
        model = _NAMES[name]
    differences = verify_receipt(content, Selector.from_pretrained(model))
    for one in differences:
        print(f"dgn: {one}", file=sys.stderr)
    if not differences:
        print(f"{options.receipt} is right: the same selection was computed again.")
    return 1 if differences else 0


def _name_of(content: Any, key: str) -> Any:
    """The value of a key, if the content is an object that has it."""
    return cast("dict[str, Any]", content).get(key) if isinstance(content, dict) else None


def _content(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST:
            raise BrokenInput(path, None, message="the receipt is larger than 256 MiB.")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise BrokenInput(path, None, message=f"the receipt cannot be read ({reason}).") from None
    except (ValueError, RecursionError) as error:
        raise BrokenInput(path, None, message=f"the receipt is not JSON ({error}).") from None
