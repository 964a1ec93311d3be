"""A job: the queries of many files, in partitions, into a folder of Parquet files.

    out/manifest.json          what the job is: inputs, settings, partitions
    out/part-00000.parquet     the selections of one partition; it appears only when it is complete
    out/bad/part-00000.jsonl   its broken rows, with file and line, if they are to be skipped

A partition is done when its file is there. A job that was interrupted therefore continues where it
stopped, and nothing is ever half written. Who runs the partitions, this machine or Ray, makes no
difference for what is in the files.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dgn.apps.jobs.inputs import Partition, check_files, divided, rows_of
from dgn.apps.jobs.storage import Folder, matching_files, size_of
from dgn.data import Problems, Row
from dgn.errors import BrokenInput, InvalidInput, require_extra
from dgn.selector import Limits, PassageSelection, Selector

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Job:
    """What is to be done; it can be pickled and sent to other machines.

    Attributes:
        out: The folder of the results.
        partitions: All partitions, in the order of the inputs.
        model: As in `Selector.from_pretrained`.
        limits: How much to select.
        skip_bad: Whether broken rows are written to a side file; otherwise the first one stops
            the job.
        batch_size: Queries that are selected together.
    """

    out: Folder
    partitions: tuple[Partition, ...]
    model: str | None = None
    limits: Limits = field(default_factory=Limits)
    skip_bad: bool = False
    batch_size: int = 64

    def missing(self) -> list[Partition]:
        """The partitions that are not done."""
        done = self.out.names()
        return [one for one in self.partitions if f"{one.name}.parquet" not in done]


@dataclass(frozen=True)
class Done:
    """What a partition contained."""

    rows: int
    bad: int


def plan_job(
    queries: str,
    out: Path | str,
    *,
    model: str | None = None,
    limits: Limits | None = None,
    skip_bad: bool = False,
    batch_size: int = 64,
    partition_bytes: int = 32 * 2**20,
) -> Job:
    """Divide the inputs, and write the plan into the folder; or take up the plan that is there.

    Args:
        queries: A file, or a glob such as `data/*.jsonl` or `s3://bucket/data/*.parquet`: JSONL
            (also .gz and .xz) and Parquet.
        out: The folder of the results, which is created; it may be a URL, too.
        model: As in `Selector.from_pretrained`.
        limits: How much to select; by default 5 passages.
        skip_bad: Whether broken rows are skipped and written to a side file.
        batch_size: Queries that are selected together.
        partition_bytes: About how much of an input is one partition.

    Raises:
        InvalidInput: There are no inputs, or the folder contains another job.
    """
    require_extra("A job of many files", package="pyarrow", extra="ray")
    files = matching_files(queries)
    check_files(files)
    limits = limits or Limits()
    if limits.count_tokens is not None:
        raise InvalidInput(
            "count_tokens", message="A job cannot send a function to its workers; leave it out."
        )
    settings = {"model": model, "limits": limits.to_dict(), "skip_bad": skip_bad}
    inputs = [{"file": file, "bytes": size_of(file)} for file in files]
    folder = Folder(str(out))
    names = folder.names()
    known = _manifest_of(folder, names)
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
        if names:
            raise InvalidInput("out", message=f"{out} is not empty; choose another folder.")
        partitions = tuple(divided(files, partition_bytes))
        folder.create()
        content = {
            "version": 1,
            "inputs": inputs,
            "settings": settings,
            "partitions": [asdict(one) for one in partitions],
        }
        folder.write_text(MANIFEST, json.dumps(content, indent=1))
    return Job(folder, partitions, model, limits, skip_bad, batch_size)


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
    with job.out.writing(f"{partition.name}.parquet") as stream:
        with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            waiting: list[Row] = []
            for row in rows_of(partition, problems, bad):
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
            lines = (
                json.dumps({"file": one.file, "line": one.line, "problem": str(one)}) for one in bad
            )
            job.out.write_text(f"bad/{partition.name}.jsonl", "\n".join(lines) + "\n")
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
        "relevance": arrow.list_(arrow.float64()),
        "coverage": arrow.float64(),
        "certificate": arrow.float64(),
    }
    return arrow.schema(list(kinds.items()))


def _selected(selector: Selector, rows: list[Row], job: Job, arrow: Any, schema: Any) -> Any:
    selections = selector.select_queries([row.query for row in rows], job.limits)
    return arrow.RecordBatch.from_pylist([_record(one) for one in selections], schema)


def _record(one: PassageSelection) -> dict[str, Any]:
    return {
        "id": one.query.id,
        "query": one.query.text,
        "selected": list(one.indices),
        "selected_texts": list(one.texts),
        "gains": list(one.gains),
        "relevance": [one.relevance[index] for index in one.indices],
        "coverage": one.coverage,
        "certificate": one.certificate.ratio,
    }


def _manifest_of(out: Folder, names: set[str]) -> dict[str, Any] | None:
    if MANIFEST not in names:
        return None
    try:
        return json.loads(out.read_text(MANIFEST))
    except ValueError:
        raise BrokenInput(
            f"{out}/{MANIFEST}", None, message="it is not a job's manifest."
        ) from None
