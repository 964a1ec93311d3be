"""A real service: `dgn serve` in a process of its own, on a free port."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from running_service import Running, started

pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
if importlib.util.find_spec("schemathesis") is None:
    collect_ignore = ["schemathesis_hooks.py"]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with started(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[Running]]:
    """Start a service with options of the test's own."""
    return lambda *options, **variables: started(tmp_path, *options, **variables)
