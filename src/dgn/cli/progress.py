"""A progress bar on a terminal; silent where the output is not one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Update = Callable[[str, float | None], None]


@contextmanager
def progress_bar(title: str) -> Generator[Update]:
    """Gives a function to call with what is being done and the share that is done, if known."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<44}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda doing, share: progress.update(
            task,
            description=f"{title}: {doing}",
            total=None if share is None else 1.0,
            completed=share or 0.0,
        )
