"""A job: the queries of many files, in partitions, into a folder of Parquet files.

    out/manifest.json          what the job is: inputs, settings, partitions
    out/part-00000.parquet     the selections of one partition; it appears only when it is complete
    out/bad/part-00000.jsonl   its broken rows, with file and line, if they are to be skipped

A partition is done when its file is there. A job that was interrupted therefore continues where it
stopped, and nothing is ever half written. Who runs the partitions, this machine or Ray, makes no
difference for what is in the files.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dgn.data import Problems, Row, parse_row
from dgn.data.lines import Line, read_lines
from dgn.errors import BrokenInput, InvalidInput, require_extra
from dgn.files import open_atomically, write_atomically
from dgn.selector import PassageSelection, Selector

MANIFEST = "manifest.json"
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


@dataclass(frozen=True)
class Job:
    """What is to be done; it can be pickled and sent to other machines.

    Attributes:
        out: The folder of the results.
        partitions: All partitions, in the order of the inputs.
        model: As in `Selector.from_pretrained`.
        limits: k, max_tokens, coverage, min_relevance and score_weight of `Selector.select`.
        skip_bad: Whether broken rows are written to a side file; otherwise the first one stops
            the job.
        batch_size: Queries that are selected together.
    """

    out: Path
    partitions: tuple[Partition, ...]
    model: str | None = None
    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    skip_bad: bool = False
    batch_size: int = 64

    def missing(self) -> list[Partition]:
        """The partitions that are not done."""
        return [one for one in self.partitions if not self.part(one).exists()]

    def part(self, partition: Partition) -> Path:
        """The file of a partition."""
        return self.out / f"{partition.name}.parquet"

    def bad(self, partition: Partition) -> Path:
        """The file of the broken rows of a partition."""
        return self.out / "bad" / f"{partition.name}.jsonl"


@dataclass(frozen=True)
class Done:
    """What a partition contained."""

    rows: int
    bad: int


def plan_job(
    queries: str,
    out: Path,
    *,
    model: str | None = None,
    limits: dict[str, Any] | None = None,
    skip_bad: bool = False,
    batch_size: int = 64,
    partition_bytes: int = 32 * 2**20,
) -> Job:
    """Divide the inputs, and write the plan into the folder; or take up the plan that is there.

    Args:
        queries: A file, or a glob such as `data/*.jsonl`: JSONL (also .gz and .xz) and Parquet.
        out: The folder of the results, which is created.
        model: As in `Selector.from_pretrained`.
        limits: The limits of `Selector.select`.
        skip_bad: Whether broken rows are skipped and written to a side file.
        batch_size: Queries that are selected together.
        partition_bytes: About how much of an input is one partition.

    Raises:
        InvalidInput: There are no inputs, or the folder contains another job.
    """
    require_extra("A job of many files", package="pyarrow", extra="ray")
    files = sorted(glob.glob(queries, recursive=True))
    if not files:
        raise InvalidInput("queries", message=f"No file matches {queries}.")
    for file in files:
        if not file.endswith(_SUFFIXES):
            allowed = f"files that end with {', '.join(_SUFFIXES)}"
            raise InvalidInput("queries", found=file, allowed=allowed)
    _check_columns([file for file in files if file.endswith(".parquet")])
    settings = {"model": model, "limits": limits or {}, "skip_bad": skip_bad}
    inputs = [{"file": file, "bytes": os.path.getsize(file)} for file in files]
    manifest = out / MANIFEST
    known = _manifest_of(manifest)
    if known is not None:
        if known["inputs"] != inputs or known["settings"] != settings:
            what = "inputs" if known["inputs"] != inputs else "settings"
            raise InvalidInput(
                "out",
                message=f"{out} contains a job with other {what}; choose another folder, or remove "
                "it.",
            )
        partitions = tuple(Partition(**one) for one in known["partitions"])
    else:
        if out.is_dir() and any(out.iterdir()):
            raise InvalidInput("out", message=f"{out} is not empty; choose another folder.")
        partitions = tuple(_partitions_of(files, partition_bytes))
        out.mkdir(parents=True, exist_ok=True)
        content = {
            "version": 1,
            "inputs": inputs,
            "settings": settings,
            "partitions": [asdict(one) for one in partitions],
        }
        write_atomically(manifest, json.dumps(content, indent=1))
    return Job(out, partitions, model, limits or {}, skip_bad, batch_size)


def run_partition(job: Job, partition: Partition) -> Done:
    """Select for the rows of a partition, and write them; memory for one batch is needed.

    Raises:
        BrokenInput: A row is broken, and broken rows are not to be skipped.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow: Any = pa
    parquet: Any = pq
    selector = _loaded(job.model)
    problems = Problems(skip=job.skip_bad)
    bad: list[BrokenInput] = []
    schema = _schema(arrow)
    count = 0
    with open_atomically(job.part(partition)) as stream:
        with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            waiting: list[Row] = []
            for row in _rows(partition, problems, bad):
                waiting.append(row)
                if len(waiting) == job.batch_size:
                    writer.write_batch(_selected(selector, waiting, job, arrow, schema))
                    count += len(waiting)
                    waiting = []
            if waiting:
                writer.write_batch(_selected(selector, waiting, job, arrow, schema))
                count += len(waiting)
        if bad:
            # Before the part appears: a partition that is done has its broken rows, too.
            job.bad(partition).parent.mkdir(exist_ok=True)
            lines = (
                json.dumps({"file": one.file, "line": one.line, "problem": str(one)}) for one in bad
            )
            write_atomically(job.bad(partition), "\n".join(lines) + "\n")
    return Done(count, len(bad))


@cache
def _loaded(model: str | None) -> Selector:
    return Selector.from_pretrained(model)


def _schema(arrow: Any) -> Any:
    kinds = {
        "id": arrow.string(),
        "query": arrow.string(),
        "selected": arrow.list_(arrow.int64()),
        "selected_texts": arrow.list_(arrow.string()),
        "gains": arrow.list_(arrow.float64()),
        "scores": arrow.list_(arrow.float64()),
        "coverage": arrow.float64(),
        "certificate": arrow.float64(),
    }
    return arrow.schema(list(kinds.items()))


def _selected(selector: Selector, rows: list[Row], job: Job, arrow: Any, schema: Any) -> Any:
    found = selector.select_queries([row.query for row in rows], **job.limits)
    return arrow.RecordBatch.from_pylist([_record(one) for one in found], schema)


def _record(one: PassageSelection) -> dict[str, Any]:
    return {
        "id": one.query.id,
        "query": one.query.text,
        "selected": list(one.indices),
        "selected_texts": list(one.texts),
        "gains": list(one.gains),
        "scores": [one.scores[index] for index in one.indices],
        "coverage": one.coverage,
        "certificate": one.certificate.ratio,
    }


def _rows(partition: Partition, problems: Problems, bad: list[BrokenInput]) -> Iterator[Row]:
    lines = _parquet_lines if partition.file.endswith(".parquet") else _json_lines
    for line in lines(partition, problems):
        try:
            yield parse_row(line)
        except BrokenInput as problem:
            problems.report(problem)
            bad.append(problem)


def _json_lines(partition: Partition, problems: Problems) -> Iterator[Line]:
    if partition.end is None:
        yield from read_lines(Path(partition.file), problems)
        return
    with Path(partition.file).open("rb") as stream:
        stream.seek(partition.start)
        number = partition.first_row
        while stream.tell() < partition.end:
            content = stream.readline()
            if number == 1:
                content = content.removeprefix(b"\xef\xbb\xbf")
            if content.strip():
                yield Line(partition.file, number, content.rstrip(b"\r\n"))
            number += 1


def _parquet_lines(partition: Partition, problems: Problems) -> Iterator[Line]:
    """The rows as lines of JSON, so that they are checked as all others are."""
    del problems
    import pyarrow.parquet as pq

    parquet: Any = pq
    number = partition.first_row
    with parquet.ParquetFile(partition.file) as table:
        groups = list(range(partition.start, partition.end or table.num_row_groups))
        for batch in table.iter_batches(batch_size=256, row_groups=groups):
            for row in batch.to_pylist():
                content = json.dumps(row, ensure_ascii=False, default=str)
                yield Line(partition.file, number, content.encode())
                number += 1


def _partitions_of(files: list[str], most_bytes: int) -> Iterator[Partition]:
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


def _plain_parts(file: str, most_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Parts that end with a line; to find them, the file is read once."""
    start, row, line = 0, 1, 1
    with Path(file).open("rb") as stream:
        while content := stream.readline():
            line += 1
            del content
            if stream.tell() - start >= most_bytes:
                yield start, stream.tell(), row
                start, row = stream.tell(), line
        if stream.tell() > start:
            yield start, stream.tell(), row


def _parquet_parts(file: str, most_bytes: int) -> Iterator[tuple[int, int, int]]:
    import pyarrow.parquet as pq

    parquet: Any = pq
    about: Any = parquet.read_metadata(file)
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
            schema = parquet.read_schema(file)
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


def _manifest_of(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise BrokenInput(path, None, message="it is not the manifest of a job.") from None
