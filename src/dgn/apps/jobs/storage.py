"""Where a job reads and writes: folders of this machine, or s3:// and other URLs, by pyarrow."""

from __future__ import annotations

import glob
import io
import os
import re
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any, final
from urllib.parse import urlencode, urlsplit

from dgn.errors import InvalidInput
from dgn.files import only_writer, open_atomically, open_to_write

_BUFFER = 2**20


def is_remote(location: str) -> bool:
    """Whether a location is a URL such as s3://bucket/folder."""
    return "://" in location


def matching_files(pattern: str) -> list[str]:
    """The files that match a glob, in the order of their names.

    Raises:
        InvalidInput: No file matches, or the storage cannot be read.
    """
    if is_remote(pattern):
        found = _matching_remote(pattern)
    else:
        found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise InvalidInput("queries", message=f"No file matches {pattern}.")
    return found


def state_of(file: str) -> dict[str, Any]:
    """The size of a remote file, and what its storage knows about its content.

    On S3 this is the ETag, which changes with the content; elsewhere it is the time of the last
    modification.
    """
    system, path = _opened(file)
    with _explained(file):
        info = system.get_file_info(path)
        with system.open_input_file(path) as stream:
            known: dict[str, bytes] = stream.metadata() or {}
    tags = (value.decode() for name, value in known.items() if name.lower() == "etag")
    content = next(tags, "") or f"modified {info.mtime_ns}"
    return {"bytes": int(info.size), "content": content}


@contextmanager
def open_input(file: str) -> Generator[IO[bytes]]:
    """A file, to read from any place; a remote one is read in parts, as needed."""
    if not is_remote(file):
        with Path(file).open("rb") as stream:
            yield stream
        return
    system, path = _opened(file)
    with _explained(file):
        raw = system.open_input_file(path)
    with io.BufferedReader(raw, _BUFFER) as stream:
        yield stream


@final
@dataclass(frozen=True)
class Folder:
    """A folder for results, on this machine or at a URL; it can be pickled.

    Args:
        location: A path, or a URL such as s3://bucket/folder.
    """

    location: str

    def __str__(self) -> str:
        return self.location

    def create(self) -> None:
        """Create the folder; where files have no folders, nothing is to be done."""
        if not is_remote(self.location):
            try:
                Path(self.location).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InvalidInput(
                    "out",
                    message=f"The folder {self.location} cannot be created ({error.strerror}).",
                ) from None

    @contextmanager
    def only_writer(self) -> Generator[None]:
        """Hold the lock of a folder of this machine; a bucket has none.

        Raises:
            InvalidInput: Another process holds the lock.
        """
        if is_remote(self.location):
            yield
            return
        with only_writer(Path(self.location)):
            for left in Path(self.location).glob("*/.*.partial"):
                left.unlink(missing_ok=True)
            yield

    def names(self) -> set[str]:
        """The names of the files and folders in it that are not hidden."""
        if not is_remote(self.location):
            folder = Path(self.location)
            found = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
            return {name for name in found if not name.startswith(".")}
        from pyarrow import fs

        files: Any = fs
        system, path = _opened(self.location)
        with _explained(self.location):
            found = system.get_file_info(files.FileSelector(path, allow_not_found=True))
        return {one.base_name for one in found}

    def read_text(self, name: str) -> str:
        """The content of a file."""
        with open_input(self._of(name)) as stream:
            return stream.read().decode(errors="replace")

    def write_text(self, name: str, content: str) -> None:
        """Write a file completely or not at all."""
        with self.writing(name) as stream:
            stream.write(content.encode())

    @contextmanager
    def writing(self, name: str) -> Generator[IO[bytes]]:
        """A stream for a file that appears only when the block ends without an error."""
        target = self._of(name)
        if not is_remote(target):
            Path(target).parent.mkdir(exist_ok=True)
            with open_atomically(Path(target)) as stream:
                yield stream
            return
        # A complete file is uploaded: a stream into a bucket would end as a file after an error.
        from pyarrow import fs

        files: Any = fs
        with tempfile.TemporaryDirectory(prefix="dgn-") as folder:
            local = Path(folder) / "part"
            with open_to_write(local) as stream:
                yield stream
            system, path = _opened(target)
            with _explained(target):
                files.copy_files(
                    str(local),
                    path,
                    source_filesystem=files.LocalFileSystem(),
                    destination_filesystem=system,
                )

    def _of(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"


def _matching_remote(pattern: str) -> list[str]:
    from pyarrow import fs

    files: Any = fs
    system, path = _opened(pattern)
    fixed = re.split(r"[*?\[]", path)[0]
    is_one_file = fixed == path
    start = str(Path(fixed).parent) if is_one_file or not fixed.endswith("/") else fixed.rstrip("/")
    with _explained(pattern):
        known = system.get_file_info(
            files.FileSelector(start, recursive=True, allow_not_found=True)
        )
    wanted = path.replace("**/", "*")
    opening = pattern[: pattern.index("://") + 3]
    # As in a shell, a star does not reach into folders below; two stars do.
    return sorted(
        opening + one.path
        for one in known
        if one.is_file
        and fnmatch(one.path, wanted)
        and ("**" in path or one.path.count("/") == path.count("/"))
    )


def _opened(location: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it; credentials come from the environment."""
    from pyarrow import fs

    files: Any = fs
    opening = location.partition("://")[0]
    if opening not in ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file"):
        raise InvalidInput(
            "location",
            message=f"{location} is on no storage that is known; use s3://, gs://, abfs://, "
            "hdfs:// or a path.",
        )
    with _explained(location):
        # The path is not a part of the URL, because a glob contains characters that a URL may not.
        host, _, path = location.partition("://")[2].partition("/")
        system, base = files.FileSystem.from_uri(f"{opening}://{host}/{_service(opening)}")
    return system, "/".join(part for part in (base.rstrip("/"), path) if part)


def _service(opening: str) -> str:
    """Another S3 service than Amazon's, named by the variable that its other clients read."""
    url = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if opening != "s3" or not url:
        return ""
    parts = urlsplit(url)
    return "?" + urlencode({"endpoint_override": parts.netloc, "scheme": parts.scheme})


@contextmanager
def _explained(location: str) -> Generator[None]:
    """Errors of a storage as one sentence."""
    import pyarrow

    arrow: Any = pyarrow
    problems: Any = (OSError, arrow.ArrowException)
    try:
        yield
    except problems as error:
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(
            "location", message=f"{location} cannot be reached or read: {reason}"
        ) from None
