"""The examples in docstrings; only files that have some are imported."""

import doctest
import importlib
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
FILES = [path for path in sorted(SRC.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_examples_print_what_they_say(path: Path) -> None:
    name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed
