"""The paper's tables and figures: `python -m experiments.reproduce DATA --out FOLDER`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from dgn.cli.options import positive, show_progress
from dgn.cli.train import require_training
from dgn.errors import DGNError


def main(arguments: Sequence[str] | None = None) -> int:
    """Reproduce the paper, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.reproduce",
        description="Reproduce the tables and figures of the paper from a data folder.",
    )
    parser.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="folder with train*.jsonl and dev.jsonl (FEVER's or ERASER's rows), and their pages",
    )
    parser.add_argument("--vectors", default="wordllama", help="as for dgn data features")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--second-vectors", default="wordllama", help="(default wordllama)")
    parser.add_argument("--seeds", type=positive, default=5, help="of the tables (default 5)")
    parser.add_argument(
        "--study-seeds", type=positive, default=2, help="of each point of a study (default 2)"
    )
    parser.add_argument("--no-studies", action="store_true", help="the tables alone")
    parser.add_argument("--epochs", type=positive, help="in place of each model's own")
    parser.add_argument("--workers", type=positive, default=1, help="parallel runs (default 1)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except DGNError as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"reproduce: interrupted; run the same command again to resume {options.out}",
            file=sys.stderr,
        )
        return 130


def _run(options: argparse.Namespace) -> int:
    require_training("The reproduction")
    from experiments.reproduce.plan import Effort
    from experiments.reproduce.report import write_report
    from experiments.reproduce.reproduce import Request, reproduce

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
    with show_progress("reproducing") as update:
        found = reproduce(request, update)
    report = write_report(found, options.out / "report", _command(options))
    for row in found.rows:
        recalls = "  ".join(f"{row.recall[k]!s:>11}" for k in (1, 3, 5, 7))
        print(f"{row.name:<20} {recalls}")
    print(f"report: {report}")
    return 0


def _command(options: argparse.Namespace) -> str:
    """The command without the paths of this machine."""
    words = ["python", "-m", "experiments.reproduce", options.data.name]
    words += ["--vectors", Path(options.vectors).name, "--out", "repro"]
    words += ["--second-vectors", Path(options.second_vectors).name, "--seeds", str(options.seeds)]
    if options.no_studies:
        words.append("--no-studies")
    else:
        words += ["--study-seeds", str(options.study_seeds)]
    if options.epochs:
        words += ["--epochs", str(options.epochs)]
    return shlex.join(words)


if __name__ == "__main__":
    sys.exit(main())
