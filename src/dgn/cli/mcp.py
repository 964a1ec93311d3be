"""`dgn mcp`: a server of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(commands: Any) -> None:
    """Add `mcp`."""
    mcp = commands.add_parser(
        "mcp",
        help="serve the tool select_evidence to an assistant (Model Context Protocol)",
        description="Serve the tool select_evidence on standard input and output, for an assistant "
        "that starts this command.",
    )
    mcp.add_argument(
        "--model", metavar="MODEL", help="model folder, name on the hub, untrained, or minilm"
    )
    mcp.set_defaults(run=_run, parser=mcp)


def _run(options: argparse.Namespace) -> int:
    from dgn.adapters.mcp import create_server
    from dgn.selector import Selector

    create_server(Selector.from_pretrained(options.model)).run("stdio")
    return 0
