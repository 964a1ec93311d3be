"""`dgn mcp`: a server of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn mcp`."""
    parser.description = (
        "Serve the tool select_evidence on standard input and output, for an assistant "
        "that starts this command."
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model folder, name on the hub, default, untrained, or minilm",
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    from dgn.apps.mcp import create_server
    from dgn.selector import Selector

    create_server(Selector.from_pretrained(options.model)).run("stdio")
    return 0
