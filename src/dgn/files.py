"""Files that are written completely or not at all, and short fingerprints of what they contain.

An error while a file is written, such as a full disk, names the file.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast, final

from dgn.errors import InvalidInput

try:
    import fcntl
except ImportError:  # Windows has no such locks; there, folders are not protected
    fcntl = None

_BLOCK = 1 << 20
_BUFFER = 1 << 16


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
        with open_to_write(path) as stream:
            yield stream
        return
    target = path.resolve()
    with temporary_sibling(target) as partial:
        with open_to_write(partial, target) as stream:
            yield stream
            stream.flush()
            with _naming(target):
                os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)


def open_to_write(path: Path, name: Path | None = None, mode: str = "wb") -> IO[bytes]:
    """Open a file for writing; unlike those of `Path.open`, its errors always name the file.

    Args:
        path: The file.
        name: The file that errors name; by default the same one.
        mode: "wb" to begin the file, "ab" to add to it.
    """
    raw = _NamedFile(path, path if name is None else name, mode)
    return cast("IO[bytes]", io.BufferedWriter(raw, _BUFFER))


@final
class _NamedFile(io.FileIO):
    """A file to write, whose errors name it."""

    def __init__(self, path: Path, name: Path, mode: str) -> None:
        self._target = name
        with _naming(name):
            super().__init__(path, mode)

    def write(self, data: Any, /) -> int:
        with _naming(self._target):
            return super().write(data)


@contextmanager
def _naming(path: Path) -> Generator[None]:
    """Errors of the operating system in this block name this file."""
    try:
        yield
    except OSError as error:
        number, reason = error.errno or errno.EIO, error.strerror or str(error)
        raise OSError(number, reason, str(path)) from None


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
        with open_to_write(partial, target) as stream:
            figure.savefig(stream, format=path.suffix.lstrip(".").lower(), **options)
        partial.replace(target)


@contextmanager
def only_writer(folder: Path) -> Generator[None]:
    """Hold the folder's lock, and remove partial files that a killed process has left there.

    The operating system releases the lock when the process ends, however it ends.

    Raises:
        InvalidInput: Another process holds the lock.
    """
    path = folder / ".lock"
    with path.open("w") as lock:
        if not _is_locked(lock, path):
            raise InvalidInput(
                "out",
                message=f"Another process is writing to {folder}; wait for it, or choose another "
                "folder.",
            )
        for left in folder.glob(".*.partial"):
            left.unlink(missing_ok=True)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _is_locked(lock: IO[str], path: Path) -> bool:
    """Take the lock, if nobody has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks; there, folders are not protected
    try:
        # A process that has just ended may have removed the file after we opened it.
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except FileNotFoundError:
        return False


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
