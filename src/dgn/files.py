"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all, also when the machine stops in the middle of it."""
    content = content.encode() if isinstance(content, str) else content
    # Always the same name: what a killed process left behind, the next one overwrites.
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
