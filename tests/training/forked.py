"""Commands of dgn in processes of their own: forks of one that has imported torch, to save time."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

PRELOADED = [
    *("dgn.training.run", "dgn.training.tune", "torch._dynamo"),
    *("optuna.storages", "matplotlib.figure", "tensorboardX"),
]
_FORKS = multiprocessing.get_context("forkserver")


def context() -> Any:
    """A context of multiprocessing whose processes are forks of one that has imported torch."""
    _FORKS.set_forkserver_preload(PRELOADED)
    return _FORKS


def start(
    command: list[str], environment: dict[str, str] | None = None, messages: str = os.devnull
) -> BaseProcess:
    """Start a command of dgn; its messages go to a file."""
    process = context().Process(target=_run, args=(command, environment or {}, messages))
    process.start()
    return process


def start_two(command: list[str], folder: Path) -> list[BaseProcess]:
    """Start two processes that train together, with the environment that torchrun gives them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    return [
        start(
            command,
            {**address, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"},
            str(folder / f"messages{rank}"),
        )
        for rank in ("0", "1")
    ]


def run_two(command: list[str], folder: Path) -> list[tuple[int | None, str]]:
    """The exit code and the messages of each of two processes that train together."""
    processes = start_two(command, folder)
    for process in processes:
        process.join()
    messages = [(folder / f"messages{rank}").read_text() for rank in range(2)]
    return [(one.exitcode, text) for one, text in zip(processes, messages, strict=True)]


def _run(command: list[str], environment: dict[str, str], messages: str) -> None:
    from dgn.cli.main import main

    os.environ.update(environment)
    with open(messages, "w") as stream:
        os.dup2(stream.fileno(), 2)
    sys.exit(main(command))
