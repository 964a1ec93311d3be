"""`dgn serve`: the page and the HTTP service."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path

from dgn.apps.cli.options import positive
from dgn.errors import BrokenInput, InvalidInput

_TOKEN_VARIABLE = "DGN_TOKEN"  # noqa: S105
_LARGEST_TOKEN = 4096
_LIMITS = {
    "body_bytes": ("--max-body-bytes", "size of a request (default 4194304)"),
    "queries": ("--max-queries", "queries per request (default 64)"),
    "passages": ("--max-passages", "passages per query (default 2000)"),
    "tokens": ("--max-request-tokens", "tokens of a request (default: by the model)"),
    "k": ("--max-k", "largest k (default 100)"),
    "query_words": ("--max-query-words", "words of a query (default 1000)"),
    "waiting_requests": ("--max-waiting", "requests of a worker in progress (default 512)"),
    "connections": ("--max-connections", "open connections of a worker (default 2048)"),
}
"""The limits that have a flag: its name, and its help."""

_MOST_WORKERS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn serve`."""
    parser.description = (
        "Serve a page for people and an HTTP API for programs, on this machine unless "
        "--host says otherwise."
    )
    parser.epilog = f"The environment variable {_TOKEN_VARIABLE} may contain the bearer token."
    parser.add_argument("--host", default="127.0.0.1", help="address (default 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port, 0 for any (default 8000)"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model folder, name on the hub, default, untrained, or minilm",
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="file with a bearer token to ask for"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer to this host name, too; can be repeated; '*' for any",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="processes that answer (default: one per core, at most 4)",
    )
    for name, (flag, text) in _LIMITS.items():
        parser.add_argument(flag, dest=name, type=positive, metavar="N", help=text)
    parser.add_argument(
        "--timeout",
        dest="seconds",
        type=float,
        metavar="S",
        help="seconds for a body to arrive (default 10)",
    )
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=0.5,
        metavar="S",
        help="accept connections for so long after SIGTERM (default 0.5)",
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    from dgn.apps.service import LOOPBACK, ServiceLimits, serve
    from dgn.parallel import available_cores

    seconds, drain = options.seconds, options.drain_seconds
    if seconds is not None and not 0 < seconds <= 3600:
        found = f"{seconds:g}"
        raise InvalidInput("--timeout", found=found, allowed="above 0 and at most 3600")
    if not 0 <= drain <= 3600:
        raise InvalidInput("--drain-seconds", found=f"{drain:g}", allowed="from 0 to 3600")
    names = (*_LIMITS, "seconds")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    token = _token(options.token_file)
    if options.host not in LOOPBACK and token is None:
        print(
            f"dgn: warning: {options.host} can be reached by others, and there is no token; see "
            "--token-file.",
            file=sys.stderr,
        )
    serve(
        options.model,
        options.host,
        options.port,
        limits=ServiceLimits(**given),
        token=token,
        hosts={*LOOPBACK, socket.gethostname(), options.host, *options.allow_host},
        workers=options.workers or min(available_cores(), _MOST_WORKERS),
        drain_seconds=drain,
    )
    return 0


def _token(file: Path | None) -> str | None:
    if file is None:
        token, index = os.environ.get(_TOKEN_VARIABLE, ""), _TOKEN_VARIABLE
        if not token:
            return None
    else:
        index = str(file)
        try:
            with file.open("rb") as stream:
                token = stream.read(_LARGEST_TOKEN + 1).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not ASCII"
            raise BrokenInput(file, None, message=f"the token cannot be read ({reason}).") from None
    if not 16 <= len(token) <= _LARGEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidInput(
            "token", message=f"The token in {index} must have 16 to 4,096 printable characters."
        )
    return token
