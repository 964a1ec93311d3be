"""Lines of files of any size, compressed or not, and what to do about broken ones.

Lines are read as bytes, one at a time. `.gz`, `.xz` and `.zip` are read directly. Every error says
the file and the line.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar, cast

from dgn.errors import BrokenInput

if TYPE_CHECKING:  # reading lines is for all; decoding records needs the extra `data`
    import msgspec

_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
_MOST_KEPT = 1000

T = TypeVar("T")


@dataclass(slots=True)
class Problems:
    """What to do about broken input: raise the first, or skip all and remember them.

    skip: go on after a broken line. count: how many there were; kept: the first thousand of them.
    """

    skip: bool = False
    count: int = 0
    kept: list[BrokenInput] = field(default_factory=list[BrokenInput])

    def report(self, problem: BrokenInput) -> None:
        """Raise it, or count it and go on."""
        if not self.skip:
            raise problem
        self.count += 1
        if len(self.kept) < _MOST_KEPT:
            self.kept.append(problem)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file, without its end."""

    file: str
    number: int
    content: bytes

    def problem(self, found: str, allowed: str) -> BrokenInput:
        """The error that names this line."""
        return BrokenInput(self.file, self.number, found=found, allowed=allowed)


def read_lines(path: Path, problems: Problems) -> Iterator[Line]:
    """The lines of a file that are not blank; for a `.zip`, those of all its `.jsonl` members."""
    if path.suffix == ".zip":
        yield from _zip_lines(path, problems)
        return
    try:
        with _open(path) as stream:
            yield from _lines_of(stream, str(path), problems)
    except OSError as error:
        raise _unreadable(path, error) from error


def stream_lines(stream: IO[bytes], name: str, problems: Problems) -> Iterator[Line]:
    """The lines that are not blank of an open stream, such as standard input."""
    return _lines_of(stream, name, problems)


def is_hidden(name: str) -> bool:
    """Whether a file is one that macOS and others leave beside the real ones."""
    return Path(name).name.startswith(".") or name.startswith("__MACOSX/")


def decode_line(line: Line, decoder: msgspec.json.Decoder[T], allowed: str) -> T:
    """The record that a line holds; BrokenInput if it holds something else."""
    import msgspec

    try:
        return decoder.decode(line.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise line.problem(_in_words(error), allowed) from error


def _in_words(error: Exception) -> str:
    import msgspec

    if isinstance(error, msgspec.ValidationError):
        return f"a record that does not fit ({error})"
    if isinstance(error, RecursionError):
        return "JSON nested too deeply"
    return f"no valid JSON ({error})"


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
                    with archive.open(member) as stream:
                        yield from _lines_of(stream, f"{path}/{member.filename}", problems)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        # The latter two: encrypted, or packed by a method that Python does not know.
        problems.report(_damaged(str(path), None, error))
    except OSError as error:
        raise _unreadable(path, error) from error


def _lines_of(stream: IO[bytes], name: str, problems: Problems) -> Iterator[Line]:
    number = 0
    try:
        for content in stream:
            number += 1
            if number == 1:
                content = content.removeprefix(codecs.BOM_UTF8)
            if content.strip():
                yield Line(name, number, content.rstrip(b"\r\n"))
    except _DAMAGED as error:
        problems.report(_damaged(name, number + 1, error))


def _damaged(name: str, line: int | None, error: Exception) -> BrokenInput:
    return BrokenInput(
        name,
        line,
        found=f"a damaged or truncated archive ({error or type(error).__name__})",
        allowed="a whole file; fetch it again",
    )


def _unreadable(path: Path, error: OSError) -> BrokenInput:
    return BrokenInput(path, None, found=f"{error.strerror or error}", allowed="a readable file")
