"""The inputs of a job: files of queries, divided into partitions, and the rows of a partition."""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dgn.apps.jobs.storage import open_input
from dgn.data import Problems, Row, parse_row
from dgn.data.lines import Line, stream_lines
from dgn.errors import BrokenInput, InvalidInput

_PLAIN = ".jsonl"
_SUFFIXES = (_PLAIN, ".jsonl.gz", ".jsonl.xz", ".parquet")


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


def rows_of(partition: Partition, problems: Problems, bad: list[BrokenInput]) -> Iterator[Row]:
    """The rows of a partition; broken ones are reported to `problems` and added to `bad`."""
    lines = _parquet_lines if partition.file.endswith(".parquet") else _json_lines
    for line in lines(partition, problems):
        try:
            yield parse_row(line)
        except BrokenInput as problem:
            problems.report(problem)
            bad.append(problem)


def _json_lines(partition: Partition, problems: Problems) -> Iterator[Line]:
    with open_input(partition.file) as stream:
        if partition.end is None:
            unpack: Any = gzip.open if partition.file.endswith(".gz") else lzma.open
            with unpack(stream, "rb") as unpacked:
                yield from stream_lines(unpacked, partition.file, problems)
            return
        stream.seek(partition.start)
        number = partition.first_row
        while stream.tell() < partition.end:
            content = stream.readline()
            if number == 1:
                content = content.removeprefix(codecs.BOM_UTF8)
            if content.strip():
                yield Line(partition.file, number, content.rstrip(b"\r\n"))
            number += 1


def _parquet_lines(partition: Partition, problems: Problems) -> Iterator[Line]:
    """The rows as lines of JSON, so that they are checked as all others are."""
    del problems
    import pyarrow.parquet as pq

    parquet: Any = pq
    number = partition.first_row
    with open_input(partition.file) as stream, parquet.ParquetFile(stream) as table:
        groups = list(range(partition.start, partition.end or table.num_row_groups))
        for batch in table.iter_batches(batch_size=256, row_groups=groups):
            for row in batch.to_pylist():
                content = json.dumps(row, ensure_ascii=False, default=str)
                yield Line(partition.file, number, content.encode())
                number += 1


def _plain_parts(file: str, most_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Parts that end with a line; to find them, the file is read once."""
    start, row, line = 0, 1, 1
    with open_input(file) as stream:
        while stream.readline():
            line += 1
            if stream.tell() - start >= most_bytes:
                yield start, stream.tell(), row
                start, row = stream.tell(), line
        if stream.tell() > start:
            yield start, stream.tell(), row


def _parquet_parts(file: str, most_bytes: int) -> Iterator[tuple[int, int, int]]:
    import pyarrow.parquet as pq

    parquet: Any = pq
    with open_input(file) as stream:
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
    import pyarrow
    import pyarrow.parquet as pq

    arrow: Any = pyarrow
    parquet: Any = pq
    broken: Any = (OSError, arrow.ArrowException)
    known: Any = None
    for file in files:
        try:
            with open_input(file) as stream:
                schema = parquet.read_schema(stream)
        except broken as error:
            reason = " ".join(str(error).split())[:200]
            raise BrokenInput(file, None, message=f"it is not a Parquet file ({reason}).") from None
        names = set(schema.names)
        if not names & {"query", "claim"} or not names & {"passages", "documents", "sentences"}:
            found = ", ".join(schema.names)
            allowed = "the columns query and passages (or documents)"
            raise BrokenInput(file, None, found=f"the columns {found}", allowed=allowed)
        if known is not None and not schema.equals(known):
            raise BrokenInput(file, None, message=f"its columns are not those of {files[0]}.")
        known = schema
