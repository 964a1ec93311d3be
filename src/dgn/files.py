"""Files that are written completely or not at all, and short fingerprints of what they contain."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dgn.errors import InvalidInput

try:
    import fcntl
except ImportError:  # Windows has no such locks; there, folders are not protected
    fcntl = None

_BLOCK = 1 << 20


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file so that other processes see the old or the new content, never a part.

    A symbolic link is followed: the file that it points to is replaced, not the link.
    """
    data = content.encode() if isinstance(content, str) else content
    with open_atomically(path) as stream:
        stream.write(data)


@contextmanager
def open_atomically(path: Path) -> Generator[IO[bytes]]:
    """Open a file for writing; it replaces the old one only when the block ends without an error.

    Pipes and devices cannot be replaced and are written directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    target = path.resolve()
    with temporary_sibling(target) as partial:
        with partial.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)


@contextmanager
def temporary_sibling(path: Path) -> Generator[Path]:
    """A hidden path next to `path` that nobody else uses; removed at the end of the block."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def save_figure(figure: Any, path: Path, **options: Any) -> None:
    """Save a Matplotlib figure atomically, in the format that the suffix of the path names."""
    target = path.resolve()
    with temporary_sibling(target) as partial:
        figure.savefig(partial, format=path.suffix.lstrip(".").lower(), **options)
        partial.replace(target)


@contextmanager
def only_writer(folder: Path) -> Generator[None]:
    """Hold the folder's lock, and remove partial files that a killed process has left there.

    The operating system releases the lock when the process ends, however it ends.

    Raises:
        InvalidInput: Another process holds the lock.
    """
    with (folder / ".lock").open("w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidInput(
                    "out",
                    message=f"Another process is writing to {folder}; wait for it, or choose "
                    "another folder.",
                ) from None
        for left in folder.glob(".*.partial"):
            left.unlink(missing_ok=True)
        yield
        (folder / ".lock").unlink(missing_ok=True)


def fingerprint_of(path: Path) -> str:
    """A hash that changes when the content of a file or a folder changes.

    A file is read completely. A folder is identified by the names, sizes and modification times of
    its files.
    """
    if path.is_dir():
        return _fingerprint_of_folder(path)
    digest = hashlib.blake2b(str(path.stat().st_size).encode(), digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def sampled_fingerprint_of(path: Path) -> str:
    """The hash of the size of a file and of a megabyte each of its beginning, middle and end.

    It takes a millisecond at any size. Use it for files that nobody edits: those of an installed
    package, and those of a cache. Up to three megabytes, it is `fingerprint_of`.
    """
    size = path.stat().st_size
    if size <= 3 * _BLOCK:
        return fingerprint_of(path)
    digest = hashlib.blake2b(str(size).encode(), digest_size=16)
    with path.open("rb") as stream:
        for offset in (0, (size - _BLOCK) // 2, size - _BLOCK):
            stream.seek(offset)
            digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


def _fingerprint_of_folder(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        status = file.stat()
        digest.update(f"{file.name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
