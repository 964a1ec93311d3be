"""What several commands share: kinds of arguments, checks of output files, and progress."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from dgn.data import Problems
from dgn.errors import InvalidInput

QUERIES_HELP = "JSONL file of rows with a query and its passages; .gz, .xz and .zip too"
_LINE_SECONDS = 10.0

Update = Callable[[str, float | None], None]
"""Takes what is being done, and the share that is done, if known."""


def positive(text: str) -> int:
    """An integer of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def new_file(text: str) -> Path:
    """A file to write; its folder must exist before the work begins."""
    path = Path(text)
    if not path.name or path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a file in an existing folder")
    return path


def refuse_overwriting(
    out: Path | None, inputs: Iterable[Path | str | None], flag: str = "--out"
) -> None:
    """Raise InvalidInput if the output would replace one of the inputs."""
    if out is None:
        return
    target = out.resolve()
    for given in inputs:
        if given is not None and Path(given).resolve() == target:
            raise InvalidInput(
                "out", message=f"{flag} {out} is also an input; choose another file."
            )


def print_problems(problems: Problems) -> None:
    """Print what was skipped, and where, to stderr."""
    if not problems.count:
        return
    print(f"skipped {problems.count:,} broken rows:", file=sys.stderr)
    for problem in problems.kept[:20]:
        print(f"  {problem}", file=sys.stderr)
    if problems.count > 20:
        print(f"  and {problems.count - 20:,} more", file=sys.stderr)


@contextmanager
def show_progress(title: str) -> Generator[Update]:
    """Show the progress of long work on stderr: a bar on a terminal, else a line every 10 s."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield _line_printer(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<44}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=None)
        yield lambda doing, share: progress.update(
            task,
            description=f"{title}: {doing}",
            total=None if share is None else 1.0,
            completed=share or 0.0,
        )


def _line_printer(title: str) -> Update:
    last = time.monotonic()

    def update(doing: str, share: float | None) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            done = "" if share is None else f" ({share:.0%})"
            print(f"{title}: {doing}{done}", file=sys.stderr, flush=True)

    return update
