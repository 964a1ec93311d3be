"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dgn.errors import InvalidInput

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nobody guards a folder
    fcntl = None


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all, also when the machine stops in the middle of it."""
    content = content.encode() if isinstance(content, str) else content
    # Each process has a name of its own: two that write one file must not share a half of it.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def only_writer(folder: Path) -> Generator[None]:
    """Within, no other process writes to this folder; what a killed one left is cleared away.

    The lock goes with the process that holds it, however that ends.
    """
    with (folder / ".lock").open("w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidInput(
                    "out", found=f"another process at work in {folder}", allowed="another folder"
                ) from None
        for left in folder.glob(".*.partial"):
            left.unlink(missing_ok=True)
        yield
        (folder / ".lock").unlink(missing_ok=True)
