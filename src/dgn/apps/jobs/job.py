"""A job: the queries of many files, in partitions, into a folder of Parquet files.

    out/manifest.json          what the job is: inputs, settings, model, version, partitions
    out/part-00000.parquet     the selections of one partition; it appears only when it is complete
    out/bad/part-00000.jsonl   its broken rows, with file and line, if they are to be skipped

A partition is done when its file is there. A job that was interrupted therefore continues where it
stopped, and nothing is ever half written. The manifest identifies the content of every input, the
model and the version of dgn, so that results of different ones are never mixed. Who runs the
partitions, this machine or Ray, makes no difference for what is in the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import dgn
from dgn.apps.jobs.inputs import Partition, check_files, describe, divided, rows_of
from dgn.apps.jobs.storage import Folder, matching_files
from dgn.data import Problems, Row
from dgn.errors import BrokenInput, InvalidInput, require_extra
from dgn.selector import Limits, PassageSelection, Selector
from dgn.selector.limits import integer

MANIFEST = "manifest.json"
_VERSION = 2
_GROUP_BYTES, _GROUP_ROWS = 4 * 2**20, 1 << 14
"""A row group of the results is written when it has this size."""

_BATCH_CHARACTERS = 16 * 2**20
"""A batch whose passages are longer than this together is selected before it is full."""


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
        fingerprint: The hash of the model.
        plan: The hash of the manifest.
        receipts: Whether every row has its receipt, as JSON.
    """

    out: Folder
    partitions: tuple[Partition, ...]
    model: str | None = None
    limits: Limits = field(default_factory=Limits)
    skip_bad: bool = False
    batch_size: int = 64
    fingerprint: str = ""
    plan: str = ""
    receipts: bool = False

    @contextmanager
    def as_only_writer(self) -> Generator[None]:
        """Keep other processes from running this job as long as the block lasts.

        Raises:
            InvalidInput: Another process runs it, or the folder has another plan by now.
        """
        with self.out.only_writer():
            if MANIFEST not in self.out.names() or _hash(self.out.read_text(MANIFEST)) != self.plan:
                raise InvalidInput(
                    "out", message=f"{self.out} was changed after the job was planned; plan again."
                )
            yield

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
    receipts: bool = False,
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
        receipts: Whether the results have a column `receipt`: what happened to every passage, as
            the JSON that `dgn verify` checks.

    Raises:
        InvalidInput: There are no inputs, or the folder contains another job.
    """
    require_extra("A job of many files", package="pyarrow", extra="ray")
    size = integer("batch_size", batch_size)
    most_bytes = integer("partition_bytes", partition_bytes)
    limits = limits or Limits()
    if limits.count_tokens is not None:
        raise InvalidInput(
            "count_tokens", message="A job cannot send a function to its workers; leave it out."
        )
    files = matching_files(queries)
    check_files(files)
    wanted = {
        "inputs": [describe(file) for file in files],
        "settings": {
            "model": model,
            "limits": limits.to_dict(),
            "skip_bad": skip_bad,
            "receipts": receipts,
        },
        "model": _fingerprint(Selector.from_pretrained(model)),
        "dgn": dgn.__version__,
    }
    folder = Folder(str(out))
    if MANIFEST not in folder.names():
        if folder.names():
            raise InvalidInput("out", message=f"{out} is not empty; choose another folder.")
        partitions = [asdict(one) for one in divided(files, most_bytes)]
        plan = {"version": _VERSION, **wanted, "partitions": partitions}
        folder.create()
        with folder.only_writer():
            if MANIFEST not in folder.names():  # another process may have been faster
                folder.write_text(MANIFEST, json.dumps(plan, indent=1))
    content = folder.read_text(MANIFEST)
    planned = _checked_partitions(content, wanted, folder)
    fingerprint = str(wanted["model"])
    return Job(
        folder, planned, model, limits, skip_bad, size, fingerprint, _hash(content), receipts
    )


def run_partition(job: Job, partition: Partition) -> Done:
    """Select for the rows of a partition, and write them; memory for a few batches is needed.

    Raises:
        BrokenInput: A row is broken, and broken rows are not to be skipped; or the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow: Any = pa
    parquet: Any = pq
    selector = _loaded(job.model, job.fingerprint)
    schema = _schema(arrow, receipts=job.receipts)
    count = 0
    # What is opened last is closed first: a partition that is done has its broken rows, too.
    with job.out.writing(f"{partition.name}.parquet") as stream, ExitStack() as side:
        problems = Problems(skip=job.skip_bad, on_skip=_BadRows(job.out, partition, side).add)
        with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            selected: list[Any] = []
            waiting: list[Row] = []
            characters = 0

            def select_waiting() -> None:
                selected.append(_selected(selector, waiting, job, arrow, schema))
                waiting.clear()

            def write_selected() -> None:
                writer.write_table(arrow.Table.from_batches(selected, schema))
                selected.clear()

            for row in rows_of(partition, problems):
                waiting.append(row)
                count += 1
                characters += sum(len(passage.text) for passage in row.query.passages)
                if len(waiting) == job.batch_size or characters >= _BATCH_CHARACTERS:
                    select_waiting()
                    characters = 0
                    if (
                        sum(one.num_rows for one in selected) >= _GROUP_ROWS
                        or sum(one.nbytes for one in selected) >= _GROUP_BYTES
                    ):
                        write_selected()
            if waiting:
                select_waiting()
            if selected:
                write_selected()
    return Done(count, problems.count)


class _BadRows:
    """The side file of a partition; it is there only if a row is broken."""

    def __init__(self, out: Folder, partition: Partition, closing: ExitStack) -> None:
        self._out, self._name, self._closing = out, f"bad/{partition.name}.jsonl", closing
        self._stream: IO[bytes] | None = None

    def add(self, problem: BrokenInput) -> None:
        if self._stream is None:
            self._stream = self._closing.enter_context(self._out.writing(self._name))
        row = {"file": problem.file, "line": problem.line, "problem": str(problem)}
        self._stream.write(json.dumps(row).encode() + b"\n")


@cache
def _loaded(model: str | None, fingerprint: str) -> Selector:
    """The model that the job was planned with, once in every process."""
    selector = Selector.from_pretrained(model)
    if _fingerprint(selector) != fingerprint:
        raise InvalidInput(
            "model", message=f"The model {model or ''} has changed since the job was planned."
        )
    return selector


def _schema(arrow: Any, *, receipts: bool) -> Any:
    kinds = {
        "id": arrow.string(),
        "query": arrow.string(),
        "selected": arrow.list_(arrow.int64()),
        "selected_texts": arrow.list_(arrow.string()),
        "gains": arrow.list_(arrow.float64()),
        "relevance": arrow.list_(arrow.float64()),
        "coverage": arrow.float64(),
        "sufficiency": arrow.float64(),
        "certificate": arrow.float64(),
        **({"receipt": arrow.string()} if receipts else {}),
    }
    return arrow.schema(list(kinds.items()))


def _selected(selector: Selector, rows: list[Row], job: Job, arrow: Any, schema: Any) -> Any:
    selections = selector.select_queries([row.query for row in rows], job.limits)
    records = [_record(one, with_receipt=job.receipts) for one in selections]
    return arrow.RecordBatch.from_pylist(records, schema)


def _record(one: PassageSelection, *, with_receipt: bool) -> dict[str, Any]:
    receipt = {"receipt": json.dumps(one.receipt().to_dict())} if with_receipt else {}
    return {
        **receipt,
        "id": one.query.id,
        "query": one.query.text,
        "selected": list(one.indices),
        "selected_texts": list(one.texts),
        "gains": list(one.gains),
        "relevance": [one.relevance[index] for index in one.indices],
        "coverage": one.coverage,
        "sufficiency": one.sufficiency,
        "certificate": one.certificate.ratio,
    }


def _hash(content: str) -> str:
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def _fingerprint(selector: Selector) -> str:
    """A hash of everything that a model selects with: its description and its weights."""
    digest = hashlib.blake2b(selector.encoder.fingerprint.encode(), digest_size=16)
    try:
        description, arrays = selector.encoder.save()
    except InvalidInput:  # one that is not trained, and whose weights come with a package
        return digest.hexdigest()
    digest.update(json.dumps(description, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _checked_partitions(content: str, wanted: dict[str, Any], out: Folder) -> tuple[Partition, ...]:
    """The partitions of the manifest, if it is the plan of the job that is wanted."""
    try:
        plan: Any = json.loads(content)
        version, names = plan["version"], {one: plan[one] for one in wanted}
        files = {one["file"] for one in plan["inputs"]}
        partitions = tuple(Partition(**one) for one in plan["partitions"])
        good = version == _VERSION and all(
            one.number == number and one.file in files and _is_range(one)
            for number, one in enumerate(partitions)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        good, names, partitions = False, {}, ()
    if not good:
        raise BrokenInput(
            f"{out}/{MANIFEST}",
            None,
            message="it is not the manifest of a job of this dgn; choose another folder.",
        )
    for name, value in wanted.items():
        if names[name] != value:
            what = {"dgn": "version of dgn"}.get(name, name)
            raise InvalidInput(
                "out",
                message=f"{out} contains a job with other {_difference(name, names[name], value)}; "
                f"choose another folder, or restore the {what} to resume it.",
            )
    return partitions


def _is_range(one: Partition) -> bool:
    numbers = (one.start, one.first_row, one.first_row if one.end is None else one.end)
    return all(type(number) is int and number >= 0 for number in numbers)


def _difference(name: str, known: Any, wanted: Any) -> str:
    """What differs, in words: a file that was changed is named."""
    if name == "dgn":
        return f"code (dgn {known}, this is {wanted})"
    if name == "model":
        return "weights of its model"
    if name == "inputs":
        before = {one["file"]: one for one in cast("list[dict[str, Any]]", known)}
        changed = [one["file"] for one in wanted if before.get(one["file"], one) != one]
        return f"inputs ({changed[0]} has changed)" if changed else "inputs"
    return name
