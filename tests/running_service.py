"""A service of `dgn serve` in a process of its own, for the tests."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Running:
    """A service that runs."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def memory_of(process: int) -> int:
    """The resident bytes of a process and of its children."""
    status = Path(f"/proc/{process}/status").read_text()
    own = int(status.partition("VmRSS:")[2].split()[0]) * 1024
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return own + sum(memory_of(int(child)) for child in children)


@contextlib.contextmanager
def started(folder: Path, *options: str, **variables: str) -> Generator[Running]:
    log = folder / "service.log"
    command = [sys.executable, "-m", "dgn", "serve", "--port", "0"]
    if "--workers" not in options:
        command += ["--workers", "1"]
    environment = {k: v for k, v in os.environ.items() if k != "DGN_CHECK_SHAPES"} | variables
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*command, *options],
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
            process.kill()  # its workers end with it
            process.wait()
            process.stdout.close()
