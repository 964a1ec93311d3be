"""`dgn`: the command line.

Exit codes: 0 for success, 1 for a failure, 2 for a usage error, 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Collection, Generator, Sequence
from pathlib import Path

import dgn
from dgn.errors import DGNError, InvalidInput

COMMANDS = {
    "select": "select the sentences that together cover a query, with reasons",
    "serve": "serve a page and an HTTP API that select and explain",
    "mcp": "serve the tool select_evidence to an assistant (Model Context Protocol)",
    "train": "train a model on your own labelled rows",
    "evaluate": "score and compare ways to select",
    "info": "show what is installed and what is used",
}
"""The commands, each with its help; the module of the same name is imported when it is given."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = _parsed(given)
        with _terminated_by_exception():
            code = options.run(options)
            sys.stdout.flush()  # what cannot be written is an error here, and not at exit
            return code
    except InvalidInput as error:
        print(f"dgn: {error}", file=sys.stderr)
        return 2
    except DGNError as error:
        print(f"dgn: {error}", file=sys.stderr)
        return 1
    except UnicodeEncodeError as error:
        character = error.object[error.start]
        print(
            f"dgn: The output cannot contain {character!r}; set PYTHONIOENCODING=utf-8.",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        # The reader of our output (`head`) has seen enough; Python must not complain at exit.
        _drop_output()
        return 0
    except OSError as error:
        # A full disk or a folder without write permission: the system's own words are best.
        print(f"dgn: {_os_error(error)}", file=sys.stderr)
        _drop_output()
        return 1
    except KeyboardInterrupt:
        print("dgn: interrupted", file=sys.stderr)
        return 130


def _os_error(error: OSError) -> str:
    """What went wrong with which file; an error that names none is about standard output."""
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if error.errno in {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}:
        return f"standard output: {error.strerror}."
    return str(error)


def _drop_output() -> None:
    """What is left in the buffer of standard output goes nowhere."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _terminated_by_exception() -> Generator[None]:
    """SIGTERM raises SystemExit, so that temporary files are removed."""

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parsed(given: Sequence[str]) -> argparse.Namespace:
    command = next((one for one in given if not one.startswith("-")), "")
    options, more = build_parser([command]).parse_known_args(given)
    files = next((name for name in ("pages", "rows") if _is_list(options, name)), None)
    if more and files and not any(m[:1] == "-" != m for m in more):
        # argparse does not accept files after an option: select QUERY -k 3 PAGE
        getattr(options, files).extend(map(Path, more) if files == "rows" else more)
    elif more:
        options.parser.error(f"unrecognized arguments: {' '.join(more)}")
    return options


def _is_list(options: argparse.Namespace, name: str) -> bool:
    return isinstance(getattr(options, name, None), list)


def build_parser(commands: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser of these commands; of the others, only the names and the help."""
    parser = argparse.ArgumentParser(
        prog="dgn", description="Select the few passages that together cover a query."
    )
    parser.add_argument("--version", action="version", version=f"dgn {dgn.__version__}")
    known = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        own = known.add_parser(name, help=text)
        if name in commands:
            importlib.import_module(f"dgn.apps.cli.{name}").add_arguments(own)
    return parser
