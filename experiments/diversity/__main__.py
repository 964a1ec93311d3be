"""Does diversity pay where it is the label? `python -m experiments.diversity --out FOLDER`.

Five benchmarks that are not sentences for claims: training examples (images and texts), images of a
collection, sentences of a summary, features of a table. Writes diversity.json and diversity.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dgn.apps.cli.options import positive, show_progress
from dgn.files import write_atomically
from experiments.diversity.coresets import Collections, Coresets
from experiments.diversity.feature_choice import FeatureChoice
from experiments.diversity.pools import Benchmark
from experiments.diversity.report import markdown
from experiments.diversity.study import study
from experiments.diversity.summaries import Summaries


def benchmarks() -> dict[str, Benchmark]:
    """By the name of a command line."""
    return {
        "digits": Coresets("training examples (digits)", 5),
        "texts": Coresets("training examples (kinds of text)", 5),
        "images": Collections(),
        "features": FeatureChoice(),
        "summaries": Summaries(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks and write the numbers."""
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m experiments.diversity", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--only", nargs="*", choices=list(known), default=list(known))
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--starts", type=positive, default=10, help="untrained functions to try")
    parser.add_argument("--tries", type=positive, default=3, help="ways of training to try")
    parser.add_argument("--steps", type=positive, default=80, help="of training")
    parser.add_argument("--threads", type=positive, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    if os.environ.get("OMP_NUM_THREADS") != "1":
        print("tip: OMP_NUM_THREADS=1 makes the small regressions faster", file=sys.stderr)
    path = options.out / "diversity.json"
    # What was measured before stays, so that one benchmark can be repeated.
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"benchmarks": {}}
    for name in options.only:
        started = time.process_time()
        with show_progress(name) as update:
            result = study(
                known[name],
                seeds=options.seeds,
                starts=options.starts,
                tries=options.tries,
                steps=options.steps,
                on_progress=lambda doing, update=update: update(doing, None),
            )
        found["benchmarks"][known[name].name] = {
            "command": f"python -m experiments.diversity --only {name} --seeds {options.seeds} "
            f"--starts {options.starts} --tries {options.tries} --steps {options.steps}",
            "seeds": f"1 to {options.seeds}; seed 0 chooses settings",
            "machine": f"{platform.machine()}, {options.threads} thread, "
            f"{time.process_time() - started:.0f} s of processor time, torch {torch.__version__}",
            **result.to_dict(),
        }
        options.out.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(found, indent=1) + "\n")
        write_atomically(options.out / "diversity.md", markdown(found))
        print(f"wrote {name} to {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
