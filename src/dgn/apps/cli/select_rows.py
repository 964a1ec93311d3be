"""`dgn select --queries FILE`: row by row from a file to a file, which is resumed after a stop.

A row of the output is written as soon as its batch is selected. When the command is run again,
what is in the output is kept and what is missing is added. The rows are compared by id and query,
and the last ones are selected again, so that selections of other queries, other limits or another
model are never mixed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dgn.apps.cli.options import print_problems
from dgn.data import Example, Problems, parse_row
from dgn.data.lines import read_lines, stream_lines
from dgn.errors import BrokenInput, InvalidInput
from dgn.files import open_to_write

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

if TYPE_CHECKING:
    from dgn.selector import Limits, PassageSelection, Selector

_START = b'{"id": '
"""Every row of an output begins so; a file that does not is never cut."""

_COMPARED = 4
"""Rows at the end of an output that are selected again before more are added."""

_SECONDS = 0.2
"""Between two updates of the progress."""


def run(selector: Selector, options: argparse.Namespace, limits: Limits) -> int:
    """Select for the rows of `--queries`.

    Args:
        selector: The selector.
        options: The arguments of `dgn select`.
        limits: How much to select.
    """
    problems = Problems(skip=options.skip_bad)
    progress = _Progress(options.queries)
    rows = _rows(options, problems, progress)

    def answers(some: tuple[Example, ...]) -> list[dict[str, Any]]:
        selections = selector.select_queries([row.query for row in some], limits)
        return [
            {"id": row.query.id, **answer_of(selection, options)}
            for row, selection in zip(some, selections, strict=True)
        ]

    with _output(options.out, rows, answers) as stream:
        for some in _batches(rows, options.batch_size):
            for answer in answers(some):
                stream.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
            stream.flush()
            progress.show()
    progress.end()
    print_problems(problems)
    return 0


def answer_of(selection: PassageSelection, options: argparse.Namespace) -> dict[str, Any]:
    """What is printed as JSON for a selection."""
    row: dict[str, Any] = {**selection.to_dict(reasons=options.explain)}
    if options.context:
        row["context"] = selection.context()
    return row


def _rows(
    options: argparse.Namespace, problems: Problems, progress: _Progress
) -> Iterator[Example]:
    lines = (
        stream_lines(sys.stdin.buffer, "standard input", problems)
        if options.queries == "-"
        else read_lines(Path(options.queries), problems)
    )
    for line in lines:
        try:
            row = parse_row(line)
        except BrokenInput as problem:
            problems.report(problem)
            continue
        if options.no_titles:
            passages = tuple(replace(passage, title="") for passage in row.query.passages)
            row = replace(row, query=replace(row.query, passages=passages))
        progress.count(len(line.content))
        yield row


def _batches(rows: Iterator[Example], size: int) -> Iterator[tuple[Example, ...]]:
    """Batches of rows; what was read before a broken row is selected all the same."""
    broken: list[BrokenInput] = []

    def readable() -> Iterator[Example]:
        try:
            yield from rows
        except BrokenInput as error:
            broken.append(error)

    left = readable()
    while some := tuple(islice(left, size)):
        yield some
    if broken:
        raise broken[0]


@contextlib.contextmanager
def _output(path: Path | None, rows: Iterator[Example], answers: Any) -> Generator[IO[bytes]]:
    """Standard output, or a file, whose rows are kept; `rows` continues after the last of them."""
    if path is None:
        yield sys.stdout.buffer
        return
    if path.exists() and not path.is_file():  # a pipe or a device
        with open_to_write(path) as stream:
            yield stream
        return
    with open_to_write(path, mode="ab") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = f"Another process is writing to {path}."
                raise InvalidInput("out", message=message) from None
        size, kept = _kept(path, rows, answers)
        os.truncate(path, size)
        if kept:
            print(f"{kept:,} rows of {path} are kept", file=sys.stderr)
        yield stream


def _kept(path: Path, rows: Iterator[Example], answers: Any) -> tuple[int, int]:
    """The size of the rows that are complete, and their number; `rows` is read as far.

    Raises:
        InvalidInput: The file is not the output of the same command.
    """
    end = path.stat().st_size
    last: deque[tuple[Example, Any]] = deque(maxlen=_COMPARED)
    size = number = 0
    with path.open("rb") as stream:
        for number, content in enumerate(stream, 1):
            answer = _parsed(content)
            if answer is None:
                is_torn = size + len(content) == end and content[:7] == _START[: len(content)]
                if not is_torn:
                    raise _other(path, number, "is not a selection")
                number -= 1
                break
            row = next(rows, None)
            if row is None or (answer["id"], answer["query"]) != (row.query.id, row.query.text):
                raise _other(path, number, "belongs to another query")
            last.append((row, answer))
            size += len(content)
    if last:
        again = answers(tuple(row for row, _ in last))
        for place, (mine, (_, theirs)) in enumerate(zip(again, last, strict=True)):
            if _compared(mine) != _compared(theirs):
                line = number - len(last) + 1 + place
                raise _other(path, line, "was made by another model or with other options")
    return size, number


def _parsed(content: bytes) -> dict[str, Any] | None:
    """The row of a line; None if it is not complete."""
    if not content.startswith(_START) or not content.endswith(b"\n"):
        return None
    try:
        answer = json.loads(content)
        return answer if answer["selected"] is not None and "query" in answer else None
    except (ValueError, KeyError, RecursionError):
        return None


def _compared(answer: dict[str, Any]) -> Any:
    """What must be the same; on another machine, numbers may differ in their last digits."""
    return [one["index"] for one in answer["selected"]], sorted(answer)


def _other(path: Path, line: int, what: str) -> InvalidInput:
    return InvalidInput(
        "out",
        message=f"{path} cannot be continued: line {line} {what}; choose another file, or delete "
        "it.",
    )


class _Progress:
    """The progress on a terminal: rows, the share of the file if it is known, and the rate.

    Args:
        queries: The input.
    """

    def __init__(self, queries: str) -> None:
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._rows = self._bytes = 0
        self._started = self._shown = time.monotonic()
        is_plain = queries != "-" and Path(queries).suffix in {".jsonl", ".json"}
        self._size = Path(queries).stat().st_size if is_plain and Path(queries).is_file() else 0

    def count(self, size: int) -> None:
        """Count a row of so many bytes."""
        self._rows += 1
        self._bytes += size + 1

    def show(self, *, is_last: bool = False) -> None:
        """Print the progress, if there was none for a moment."""
        now = time.monotonic()
        if not self._is_shown or (now - self._shown < _SECONDS and not is_last):
            return
        self._shown = now
        share = f" ({min(1.0, self._bytes / self._size):.0%})" if self._size else ""
        rate = self._rows / max(1e-3, now - self._started)
        print(f"\r{self._rows:,} queries{share}, {rate:,.0f}/s ", end="", file=sys.stderr)
        sys.stderr.flush()

    def end(self) -> None:
        """Print the last state and end the line."""
        if self._is_shown:
            self.show(is_last=True)
            print(file=sys.stderr)
