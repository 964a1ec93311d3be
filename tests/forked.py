"""Commands of dgn in processes of their own: forks of one that has imported torch, to save time."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from typing import Any

PRELOADED = [
    *("dgn.learn.run", "dgn.learn.tune", "torch._dynamo"),
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


def _run(command: list[str], environment: dict[str, str], messages: str) -> None:
    from dgn.apps.cli.main import main

    os.environ.update(environment)
    with open(messages, "w") as stream:
        os.dup2(stream.fileno(), 2)
    sys.exit(main(command))
