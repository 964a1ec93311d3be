"""`dgn`: the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import dgn
from dgn.cli import data, evaluate, reproduce, select, teach, train, tune
from dgn.cli.arguments import positive
from dgn.errors import DGNError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 1 for a mistake of the user, 130 for Ctrl-C."""
    parser = _parser()
    options, more = parser.parse_known_args(arguments)
    if "more" in options:
        # The command has a parser of its own, which it can build only once torch is there.
        options.more = more
    elif more and "more_pages" in options and not any(m[:1] == "-" != m for m in more):
        # argparse gives up on names that come behind an option: select CLAIM -k 3 PAGE
        options.pages += more
    elif more:
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    try:
        return options.run(options)
    except DGNError as error:
        print(f"dgn: {error}", file=sys.stderr)
        return 1
    except UnicodeEncodeError as error:
        print(
            f"dgn: the output takes no {error.object[error.start]!r}; set PYTHONIOENCODING=utf-8",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        # Whoever reads our output (`head`) has seen enough; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A full disk, a folder that may not be written to: the system's own words say it best.
        print(f"dgn: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("dgn: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dgn", description="Pick the few items that together say the most."
    )
    parser.add_argument("--version", action="version", version=f"dgn {dgn.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="train on a generated problem and print the paper's table"
    )
    demo.add_argument(
        "--seeds", type=positive, default=1, metavar="N", help="average over N seeds (default 1)"
    )
    demo.set_defaults(run=_run_demo)
    select.add_parser(commands)
    data.add_parser(commands)
    teach.add_parser(commands)
    train.add_parser(commands)
    tune.add_parser(commands)
    evaluate.add_parser(commands)
    reproduce.add_parser(commands)
    return parser


def _run_demo(options: argparse.Namespace) -> int:
    from dgn.cli.demo import show_demo

    show_demo(options.seeds)
    return 0
