"""A real service: `dgn serve` in a process of its own, on a free port."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
if importlib.util.find_spec("schemathesis") is None:
    collect_ignore = ["schemathesis_hooks.py"]


@dataclass
class Running:
    """A service that runs."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def started(folder: Path, *options: str, **variables: str) -> Generator[Running]:
    log = folder / "service.log"
    environment = {k: v for k, v in os.environ.items() if k != "DGN_CHECK_SHAPES"} | variables
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "dgn", "serve", "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            env=environment,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("dgn: serving on http://"), log.read_text()
            yield Running(process, int(line.rpartition(":")[2].split()[0]), log)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with started(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[Running]]:
    """Start a service with options of the test's own."""
    return lambda *options, **variables: started(tmp_path, *options, **variables)
