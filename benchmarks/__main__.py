"""`make bench`: all benchmarks, or those named, or this tree next to a commit.

python -m benchmarks selecting searching
python -m benchmarks --against d973326
"""

from __future__ import annotations

import argparse
import importlib

from benchmarks.against import compare
from benchmarks.measure import machine
from experiments.made import made_by

ALL = ("selecting", "breadth", "searching", "large_sets", "serving", "training", "minilm")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}")
    parser.add_argument(
        "--against", metavar="COMMIT", help="measure this tree and a commit in turns"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(ALL):
        parser.error(
            f"unknown benchmark {', '.join(sorted(unknown))}; choose from {', '.join(ALL)}"
        )
    print(f"{made_by('benchmarks')}. Measured on {machine()}.")
    if options.against is not None:
        compare(options.against)
        return
    for name in options.names or ALL:
        importlib.import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main()
