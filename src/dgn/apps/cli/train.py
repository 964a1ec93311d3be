"""`dgn train ROWS`: from labelled rows to a model, with its progress and what it has gained."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgn.apps.cli.options import QUERIES_HELP, positive, print_problems, show_progress
from dgn.errors import InvalidInput, require_extra

if TYPE_CHECKING:
    from dgn.learn import RowsResult
    from dgn.learn.fit import EpochReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn train`."""
    parser.description = (
        "Train on labelled rows. Nothing needs to be set: the settings follow from the size of the "
        "data, and the model is compared with its start on rows that it has not learned from."
    )
    parser.epilog = "example: dgn train rows.jsonl --out my-model"
    parser.add_argument("rows", type=Path, nargs="*", metavar="ROWS", help=QUERIES_HELP)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="model folder to write")
    parser.add_argument(
        "--from",
        dest="start",
        default="default",
        metavar="MODEL",
        help="what is trained further: default (the shipped model), untrained, minilm, or a model "
        "folder (default default)",
    )
    parser.add_argument(
        "--epochs",
        type=positive,
        metavar="N",
        help="passes over the rows (default: 10 to 40, until nothing improves)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="determines the order of the rows, and dropout"
    )
    parser.add_argument("--skip-bad", action="store_true", help="skip broken rows and list them")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print nothing but errors")
    shown.add_argument("--json", action="store_true", help="print a JSON row for every epoch")
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    if not options.rows:
        raise InvalidInput("rows", message="Name the labelled rows: dgn train rows.jsonl --out F.")
    if options.out is None:
        raise InvalidInput("out", message="Name the folder for the model: --out my-model.")
    for package in ("torch", "safetensors"):
        require_extra("dgn train", package=package, extra="train")
    # Waiting threads of OpenMP sleep instead of spinning, which matters on a busy machine. It
    # must be set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from dgn.data import Problems
    from dgn.learn import train_on_rows

    problems = Problems(skip=options.skip_bad)
    lines = _Lines("" if options.quiet else "json" if options.json else "text")
    with show_progress("rows") as update:
        result = train_on_rows(
            options.rows,
            options.out,
            start=options.start,
            epochs=options.epochs,
            seed=options.seed,
            problems=problems,
            on_warning=_warn if not options.quiet else lambda _: None,
            on_read=lambda read, of: update(f"reading {read:,} of {of:,}", read / of),
            on_epoch=lines.epoch,
        )
    print_problems(problems)
    if options.json:
        print(json.dumps(_summary(result)))
    elif not options.quiet:
        _print_result(result, options)
    return 0


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr, flush=True)


class _Lines:
    """A line for every epoch, with the names of the columns above the first."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def epoch(self, epoch: EpochReport, most: int) -> None:
        """Print an epoch; most is the largest number of epochs."""
        if self._kind == "json":
            print(json.dumps(asdict(epoch)), flush=True)
        if self._kind != "text":
            return
        if epoch.loss is None:
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
    from dgn.learn.card import rows_table, rows_verdict

    print(f"stopped: {result.stopped}")
    print(f"{result.rows:,} rows in {result.division}.")
    print("Recall of gold passages; each row by a network that has not learned from its part:")
    _print_table(rows_table(result))
    for why, count in result.left_out.items():
        print(f"left out: {count:,} rows ({why})")
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
        "folder": str(result.folder),
        "rows": result.rows,
        "left_out": result.left_out,
        "best_epoch": result.best_epoch,
        "chosen_epoch": result.chosen_epoch,
        "epochs": len(result.epochs) - 1,
        "stopped": result.stopped,
        "division": result.division,
        "ks": result.ks,
        "table": [asdict(measured) for measured in result.table],
    }
