"""`make bench`: all benchmarks, or those named: `python -m benchmarks checks exact_search`."""

from __future__ import annotations

import importlib
import sys

from benchmarks.measure import machine

ALL = (
    "limits",
    "searching",
    "checks",
    "exact_search",
    "large_sets",
    "peers",
    "ingest",
    "embedding",
    "vec_file",
    "fever_text",
    "selecting",
    "minilm",
    "passages",
    "serving",
    "busy_machine",
    "training",
    "facets_training",
    "gpu_searching",
)


def main(names: list[str]) -> None:
    unknown = set(names) - set(ALL)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; choose from {', '.join(ALL)}")
    print(f"Measured on {machine()}.")
    for name in names or ALL:
        importlib.import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
