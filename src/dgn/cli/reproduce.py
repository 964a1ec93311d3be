"""`dgn reproduce`: the paper's tables and figures, from files, in one command."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from dgn.cli.arguments import positive
from dgn.errors import require_extra


def add_parser(commands: Any) -> None:
    """Add `reproduce`."""
    reproduce = commands.add_parser(
        "reproduce", help="the paper's tables and figures, from a data folder and vectors"
    )
    reproduce.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="a folder: train*.jsonl and dev.jsonl (FEVER's or ERASER's), and their pages",
    )
    reproduce.add_argument("--vectors", default="wordllama", help="as for dgn data features")
    reproduce.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    reproduce.add_argument("--second-vectors", default="wordllama", help="(default wordllama)")
    reproduce.add_argument("--seeds", type=positive, default=5, help="of the tables (default 5)")
    reproduce.add_argument(
        "--study-seeds", type=positive, default=2, help="of every point of a study (default 2)"
    )
    reproduce.add_argument("--no-studies", action="store_true", help="the tables alone")
    reproduce.add_argument("--epochs", type=positive, help="in place of each model's own")
    reproduce.add_argument("--workers", type=positive, default=1, help="runs at a time (default 1)")
    reproduce.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    reproduce.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for package, extra in (("torch", "train"), ("matplotlib", "train"), ("tensorboardX", "train")):
        require_extra("dgn reproduce", package=package, extra=extra)
    for package, extra in (("msgspec", "data"), ("wordllama", "text")):
        require_extra("dgn reproduce", package=package, extra=extra)
    from dgn.cli.progress import progress_bar
    from dgn.reproduction.plan import Effort
    from dgn.reproduction.report import write_report
    from dgn.reproduction.reproduce import Request, reproduce

    effort = Effort(options.seeds, options.study_seeds, not options.no_studies, options.epochs)
    request = Request(
        options.data,
        options.vectors,
        options.out,
        options.second_vectors,
        effort,
        options.workers,
        options.device,
    )
    try:
        with progress_bar("reproducing") as update:
            found = reproduce(request, update)
    except KeyboardInterrupt:
        print(f"dgn: stopped; the same command goes on in {options.out}", file=sys.stderr)
        return 130
    report = write_report(found, options.out / "report", _command(options))
    for row in found.rows:
        recalls = "  ".join(f"{row.recall[k]!s:>11}" for k in (1, 3, 5, 7))
        print(f"{row.name:<20} {recalls}")
    print(f"report: {report}")
    return 0


def _command(options: argparse.Namespace) -> str:
    """What was asked for, without the places that are this machine's own."""
    words = ["dgn", "reproduce", options.data.name, "--vectors", Path(options.vectors).name]
    words += ["--out", "repro", "--second-vectors", Path(options.second_vectors).name]
    words += ["--seeds", str(options.seeds)]
    if options.no_studies:
        words.append("--no-studies")
    else:
        words += ["--study-seeds", str(options.study_seeds)]
    if options.epochs:
        words += ["--epochs", str(options.epochs)]
    return shlex.join(words)
