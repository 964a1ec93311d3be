"""Lines of files of any size, compressed or not, and what to do about broken ones.

Lines are read as bytes, one at a time, and a line has a limit, so that a small archive cannot fill
the memory. `.gz`, `.xz` and `.zip` files are read directly. Every error names the file and the
line. A broken line can be skipped; a damaged archive cannot, because nobody knows what it has lost.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from dgn.errors import BrokenInput

LONGEST_LINE = 64 * 2**20
"""The most bytes of a line, its end included."""

_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
_MOST_KEPT = 1000
_BUFFER = 1 << 16


@dataclass(slots=True)
class Problems:
    """What to do about broken input: raise the first problem, or skip all and count them.

    Attributes:
        skip: Whether to continue after a problem.
        on_skip: Called with every problem that is skipped.
        count: The number of problems so far.
        kept: The first thousand of them.
    """

    skip: bool = False
    on_skip: Callable[[BrokenInput], None] = lambda _: None
    count: int = 0
    kept: list[BrokenInput] = field(default_factory=list[BrokenInput])

    def report(self, problem: BrokenInput) -> None:
        """Raise the problem, or count it and continue."""
        if not self.skip:
            raise problem
        self.count += 1
        self.on_skip(problem)
        if len(self.kept) < _MOST_KEPT:
            self.kept.append(problem)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, without its end."""

    file: str
    number: int
    content: bytes

    def problem(self, found: str, allowed: str) -> BrokenInput:
        """The error that names this line: expected `allowed`, found `found`."""
        return BrokenInput(self.file, self.number, found=found, allowed=allowed)

    def error(self, message: str) -> BrokenInput:
        """The error that names this line, with a message of its own."""
        return BrokenInput(self.file, self.number, message=message)


def read_lines(path: Path, problems: Problems) -> Iterator[Line]:
    """The lines of a file that are not blank; for a `.zip`, those of all its `.jsonl` members."""
    if path.suffix == ".zip":
        yield from _zip_lines(path, problems)
        return
    try:
        with _open(path) as stream:
            yield from stream_lines(stream, str(path), problems)
    except OSError as error:
        raise _unreadable(path, error) from error


def stream_lines(stream: IO[bytes], name: str, problems: Problems) -> Iterator[Line]:
    """The lines of an open stream, such as standard input, that are not blank.

    Args:
        stream: A stream at the beginning of a line.
        name: Its name in errors.
        problems: What to do about a line that is too long.

    Raises:
        BrokenInput: The stream is a damaged archive, even if broken lines are skipped.
    """
    number = 0
    try:
        while content := stream.readline(LONGEST_LINE + 1):
            number += 1
            if len(content) > LONGEST_LINE:
                problems.report(too_long(name, number))
                while content and not content.endswith(b"\n"):
                    content = stream.readline(_BUFFER)
                continue
            if number == 1:
                content = content.removeprefix(codecs.BOM_UTF8)
            if content.strip():
                yield Line(name, number, content.rstrip(b"\r\n"))
    except _DAMAGED as error:
        raise _damaged(name, number + 1, error) from None


def too_long(name: str, line: int) -> BrokenInput:
    """The error for a line that is longer than LONGEST_LINE."""
    return BrokenInput(
        name, line, message=f"the line is longer than {LONGEST_LINE // 2**20} MiB; divide it."
    )


def is_hidden(name: str) -> bool:
    """Whether a file is one that macOS and others leave next to the real ones."""
    return Path(name).name.startswith(".") or name.startswith("__MACOSX/")


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    return path.open("rb")


def _zip_lines(path: Path, problems: Problems) -> Iterator[Line]:
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".jsonl") and not is_hidden(member.filename):
                    name = f"{path}/{member.filename}"
                    with archive.open(member) as raw:
                        # Buffered: zipfile reads lines of a limited length byte by byte.
                        stream = io.BufferedReader(cast("io.RawIOBase", raw), _BUFFER)
                        yield from stream_lines(stream, name, problems)
    except (*_DAMAGED, struct.error, ValueError, OverflowError) as error:
        if isinstance(error, BrokenInput):
            raise
        raise _damaged(str(path), None, error) from None
    except (RuntimeError, NotImplementedError) as error:
        # zipfile raises these for a password and for a compression that it does not know.
        unpack = f"the archive cannot be opened ({error}); unpack it first."
        raise BrokenInput(path, None, message=unpack) from None
    except OSError as error:
        raise _unreadable(path, error) from error


def _damaged(name: str, line: int | None, error: Exception) -> BrokenInput:
    reason = error or type(error).__name__
    return BrokenInput(
        name,
        line,
        message=f"the archive is damaged or truncated ({reason}); download it again.",
    )


def _unreadable(path: Path, error: OSError) -> BrokenInput:
    return BrokenInput(path, None, message=f"the file cannot be read ({error.strerror or error}).")
