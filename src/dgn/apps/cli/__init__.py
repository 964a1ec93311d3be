"""The commands: each is a thin call into one package."""

from __future__ import annotations

import sys


def run() -> int:
    """The entry point of `dgn`: run the command line, and return its exit code."""
    try:
        from dgn.apps.cli.main import main
    except KeyboardInterrupt:  # Ctrl-C while modules are imported
        print("dgn: interrupted", file=sys.stderr)
        return 130
    return main()
