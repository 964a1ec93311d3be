"""The inputs of a job: files of queries, divided into partitions, and the rows of a partition."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dgn.apps.jobs.storage import is_remote, open_input, state_of
from dgn.data import Problems, Row, parse_row
from dgn.data.lines import LONGEST_LINE, Line, stream_lines, too_long
from dgn.errors import BrokenInput, InvalidInput

_PLAIN = ".jsonl"
_SUFFIXES = (_PLAIN, ".jsonl.gz", ".jsonl.xz", ".parquet")
_BLOCK = 1 << 20
_ROWS_PER_READ = 32


@dataclass(frozen=True)
class Partition:
    """Consecutive rows of one file.

    Attributes:
        number: Its number in the job, from 0.
        file: The input.
        start: The first byte of a plain JSONL file, or the first row group of a Parquet file.
        end: The byte, or row group, after the last one; None for all of a compressed file.
        first_row: The number of the first row or line, from 1.
    """

    number: int
    file: str
    start: int = 0
    end: int | None = None
    first_row: int = 1

    @property
    def name(self) -> str:
        """The name of its files, without the suffix."""
        return f"part-{self.number:05}"


def check_files(files: list[str]) -> None:
    """Raise an error unless all files can be read and Parquet files have the same columns."""
    for file in files:
        if not file.endswith(_SUFFIXES):
            allowed = f"files that end with {', '.join(_SUFFIXES)}"
            raise InvalidInput("queries", found=file, allowed=allowed)
    _check_columns([file for file in files if file.endswith(".parquet")])


def describe(file: str) -> dict[str, Any]:
    """What identifies the content of an input, for the manifest.

    A file of this machine is read completely; a storage is asked for what it knows (on S3, the
    ETag).
    """
    if is_remote(file):
        return {"file": file, **state_of(file)}
    digest, size = hashlib.blake2b(digest_size=16), 0
    with _readable(file), open_input(file) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return {"file": file, "bytes": size, "content": digest.hexdigest()}


def divided(files: list[str], most_bytes: int) -> Iterator[Partition]:
    """The partitions of these files, each of about so many bytes."""
    number = 0
    for file in files:
        if file.endswith(".parquet"):
            parts = _parquet_parts(file, most_bytes)
        elif file.endswith(_PLAIN):
            parts = _plain_parts(file, most_bytes)
        else:
            parts = iter([(0, None, 1)])
        for start, end, first_row in parts:
            yield Partition(number, file, start, end, first_row)
            number += 1


def rows_of(partition: Partition, problems: Problems) -> Iterator[Row]:
    """The rows of a partition; broken ones are reported.

    Raises:
        BrokenInput: The file is damaged, even if broken rows are skipped.
    """
    lines = _parquet_lines if partition.file.endswith(".parquet") else _json_lines
    for line in lines(partition, problems):
        try:
            yield parse_row(line)
        except BrokenInput as problem:
            problems.report(problem)


def _json_lines(partition: Partition, problems: Problems) -> Iterator[Line]:
    file, end = partition.file, partition.end
    with _readable(file), open_input(file) as stream:
        if end is None:
            unpack: Any = gzip.open if file.endswith(".gz") else lzma.open
            with unpack(stream, "rb") as unpacked:
                yield from stream_lines(unpacked, file, problems)
        else:
            stream.seek(partition.start)
            yield from stream_lines(stream, file, problems, first=partition.first_row, end=end)
            if stream.tell() != end:
                raise BrokenInput(file, None, message="it has changed since the job was planned.")


def _parquet_lines(partition: Partition, problems: Problems) -> Iterator[Line]:
    """The rows as lines of JSON, so that they are checked as all others are."""
    import pyarrow.parquet as pq

    parquet: Any = pq
    number = partition.first_row
    with (
        _readable(partition.file),
        open_input(partition.file) as stream,
        parquet.ParquetFile(stream) as table,
    ):
        groups = list(range(partition.start, partition.end or table.num_row_groups))
        for batch in table.iter_batches(batch_size=_ROWS_PER_READ, row_groups=groups):
            for index in range(batch.num_rows):
                line = _parquet_line(batch, index, partition.file, number, problems)
                if line is not None:
                    yield line
                number += 1


def _parquet_line(
    batch: Any, index: int, file: str, number: int, problems: Problems
) -> Line | None:
    try:
        (row,) = batch.slice(index, 1).to_pylist()
        content = json.dumps(row, ensure_ascii=False, default=str).encode()
    except (ValueError, OverflowError) as error:  # text that is not UTF-8, a date out of range
        problems.report(BrokenInput(file, number, message=f"the row cannot be read ({error})."))
        return None
    if len(content) > LONGEST_LINE:
        problems.report(too_long(file, number))
        return None
    return Line(file, number, content)


def _plain_parts(file: str, most_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Parts that end with a line; to find them, the file is read once."""
    start, row, lines, position = 0, 1, 0, 0
    with _readable(file), open_input(file) as stream:
        # A line may be longer than the memory: what it consists of is never joined.
        while content := stream.readline(_BLOCK):
            position += len(content)
            if not content.endswith(b"\n"):
                continue
            lines += 1
            if position - start >= most_bytes:
                yield start, position, row
                start, row = position, lines + 1
    if position > start:
        yield start, position, row


def _parquet_parts(file: str, most_bytes: int) -> Iterator[tuple[int, int, int]]:
    import pyarrow.parquet as pq

    parquet: Any = pq
    with _readable(file), open_input(file) as stream:
        about: Any = parquet.read_metadata(stream)
    start, row, size, rows = 0, 1, 0, 0
    for group in range(about.num_row_groups):
        size += about.row_group(group).total_byte_size
        rows += about.row_group(group).num_rows
        if size >= most_bytes or group == about.num_row_groups - 1:
            yield start, group + 1, row
            start, row, size, rows = group + 1, row + rows, 0, 0


def _check_columns(files: list[str]) -> None:
    """All Parquet files must have the columns of the first one, and those that are needed."""
    import pyarrow.parquet as pq

    parquet: Any = pq
    known: Any = None
    for file in files:
        with _readable(file), open_input(file) as stream:
            schema = parquet.read_schema(stream)
        names = set(schema.names)
        if not names & {"query", "claim"} or not names & {"passages", "documents", "sentences"}:
            found = ", ".join(schema.names)
            allowed = "the columns query and passages (or documents)"
            raise BrokenInput(file, None, found=f"the columns {found}", allowed=allowed)
        if known is not None and not schema.equals(known):
            raise BrokenInput(file, None, message=f"its columns are not those of {files[0]}.")
        known = schema


@contextmanager
def _readable(file: str) -> Generator[None]:
    """What Arrow and the operating system say about a file they cannot read, as one sentence."""
    import pyarrow

    arrow: Any = pyarrow
    broken: Any = (OSError, arrow.ArrowException, UnicodeDecodeError)  # the last of a name
    try:
        yield
    except broken as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
        what = "it is not a Parquet file, or damaged" if file.endswith(".parquet") else "unreadable"
        raise BrokenInput(file, None, message=f"{what} ({reason}).") from None
