"""`dgn train ROWS`: from labelled rows to a model, with its progress and what it has gained."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgn.apps.cli.options import print_problems, show_progress

if TYPE_CHECKING:
    from dgn.learn.cross_validation import RowsEpoch
    from dgn.learn.own_labels import RowsResult


def run(options: argparse.Namespace, given: dict[str, Any]) -> int:
    """Train on the rows that the options name.

    Args:
        options: The arguments of `dgn train`.
        given: The settings whose flags were given.
    """
    from dgn.data import Problems
    from dgn.learn.own_labels import train_on_rows

    problems = Problems(skip=options.skip_bad)
    lines = _Lines("" if options.quiet else "json" if options.json else "text")
    try:
        with show_progress("rows") as update:
            result = train_on_rows(
                options.rows,
                options.out,
                start=options.from_model or "default",
                given=given,
                pages=options.pages,
                problems=problems,
                on_read=lambda read, of: update(f"reading {read:,} of {of:,}", read / of),
                on_epoch=lines.epoch,
            )
    except KeyboardInterrupt:
        print(
            f"dgn: interrupted; run the same command again to resume {options.out}",
            file=sys.stderr,
        )
        raise SystemExit(130) from None
    print_problems(problems)
    if options.json:
        print(json.dumps(_summary(result)))
    elif not options.quiet:
        _print_result(result, options)
    return 0


class _Lines:
    """A line for every epoch, with the names of the columns above the first."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._is_first = True

    def epoch(self, epoch: RowsEpoch, most: int) -> None:
        """Print an epoch; most is the largest number of epochs."""
        if self._kind == "json":
            print(json.dumps(asdict(epoch)), flush=True)
        if self._kind != "text":
            return
        if self._is_first:
            self._is_first = False
            print("recall on rows that were not learned from:", file=sys.stderr)
            ks = "".join(f"{f'at {k}':>8}" for k in epoch.ks)
            print(f"{'epoch':>5}{'loss':>9}{ks}{'at most left':>15}", file=sys.stderr)
        loss = "start" if epoch.loss is None else f"{epoch.loss:.4f}"
        recalls = "".join(f"{recall:>8.4f}" for recall in epoch.recalls)
        left = "" if epoch.loss is None else _duration(epoch.seconds * (most - epoch.epoch))
        print(f"{epoch.epoch:>5}{loss:>9}{recalls}{left:>15}", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _print_result(result: RowsResult, options: argparse.Namespace) -> None:
    from dgn.learn.report import rows_table, rows_verdict

    print(f"stopped: {result.stopped}")
    print(f"{result.rows:,} rows; each one measured by a network that has not seen its document:")
    _print_table(rows_table(result))
    for why, count in result.left_out.items():
        print(f"left out: {count:,} rows ({why})")
    if result.note:
        print(f"note: {result.note}")
    print(rows_verdict(result))
    last = len(result.epochs) - 1
    if result.chosen_epoch == last and last:
        rows = " ".join(map(str, options.rows))
        print(
            f"The best epoch is the last one; more epochs may be better: dgn train {rows} --out "
            f"{options.out} --epochs {2 * last}"
        )
    print(f"model and card: {result.folder}")


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
        cells[0] = f"{row[0]:<{widths[0]}}"
        print("  ".join(cells).rstrip())


def _summary(result: RowsResult) -> dict[str, Any]:
    return {
        "folder": str(Path(result.folder)),
        "rows": result.rows,
        "left_out": result.left_out,
        "best_epoch": result.best_epoch,
        "chosen_epoch": result.chosen_epoch,
        "epochs": len(result.epochs) - 1,
        "stopped": result.stopped,
        "ks": result.ks,
        "table": [asdict(one) for one in result.table],
    }
