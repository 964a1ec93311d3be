"""This tree next to a commit, in one run: what must not get slower, measured in turns.

The commit is checked out into a temporary git worktree, and its kernels are built there. Every
measurement is a new process with one of the two trees in front of its path; the trees take turns,
and the medians count, so that another load of the machine falls on both. Only what both trees can
do is measured: the public API.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import print_table

ROOT = Path(__file__).parents[1]
_ROUNDS = 7
_TEXTS = """
import json
rows = [json.loads(line) for line in open("samples/claims.jsonl", encoding="utf-8")]
rows = [(row["claim"], row["documents"]) for row in rows if "documents" in row]
from dgn.selector import Selector
"""
_TEXT = "selector.select(query, documents=documents, k=5)"
_MEASURED = {
    "greedy, 7 of 30 items, µs": (
        "import numpy as np, dgn; f = dgn.FeatureCoverage()\n"
        "x = np.random.default_rng(0).random((30, 256), dtype=np.float32)\n"
        "dgn.greedy(f, x, 7)",
        "for _ in range(2000): dgn.greedy(f, x, 7)",
        1e6 / 2000,
    ),
    "greedy, a batch of 4,096, µs per query": (
        "import numpy as np, dgn; f = dgn.FeatureCoverage()\n"
        "x = np.random.default_rng(0).random((4096, 30, 256), dtype=np.float32)\n"
        "dgn.greedy(f, x, 7)",
        "dgn.greedy(f, x, 7)",
        1e6 / 4096,
    ),
    "lazy_greedy, 50 of 100,000 items, ms": (
        "import numpy as np, dgn; f = dgn.FeatureCoverage()\n"
        "x = np.random.default_rng(0).random((100_000, 64), dtype=np.float32)",
        "dgn.lazy_greedy(f, x, 50)",
        1e3,
    ),
    "select, text never seen, ms": (
        _TEXTS + "selector = Selector.from_pretrained()\n"
        "selector.select('A first query.', ['A first passage.'])",
        f"for query, documents in rows[:100]: {_TEXT}",
        1e3 / 100,
    ),
    "select, known text, ms": (
        _TEXTS + "selector = Selector.from_pretrained()\n"
        f"for query, documents in rows[:100]: {_TEXT}",
        f"for query, documents in rows[:100]: {_TEXT}",
        1e3 / 100,
    ),
    "select, minilm, ms": (
        _TEXTS + "selector = Selector.from_pretrained('minilm')\n"
        "selector.select('A first query.', ['A first passage.'])",
        f"for query, documents in rows[:20]: {_TEXT}",
        1e3 / 20,
    ),
    "import dgn, ms": ("", "import dgn; dgn.greedy", 1e3),
}
"""By name: what prepares, what is measured, and what its seconds are multiplied with."""


def compare(commit: str) -> None:
    """Measure this tree and the commit, and print both."""
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "tree")
        subprocess.run(["git", "worktree", "add", "-q", other, commit], cwd=ROOT, check=True)
        try:
            build = "src/dgn/core/native/build.py"
            subprocess.run([sys.executable, build], cwd=other, check=True, capture_output=True)
            _compare(commit, other)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=True)


def _compare(commit: str, other: Path) -> None:
    rows: list[tuple[object, ...]] = []
    for name, (prepare, measured, factor) in _MEASURED.items():
        times: dict[Path, list[float]] = {ROOT: [], other: []}
        for _ in range(_ROUNDS):
            for tree, seconds in times.items():
                if (took := _seconds(tree, prepare, measured)) is not None:
                    seconds.append(took)
        if not all(times.values()):
            rows.append((name, "–", "–", "not in both"))
            continue
        now, then = (factor * statistics.median(times[tree]) for tree in (ROOT, other))
        rows.append((name, f"{now:.2f}", f"{then:.2f}", f"{now / then:.2f}×"))
    print_table(
        f"This tree and {commit}, {_ROUNDS} processes each, in turns (medians)",
        ("", "this tree", commit, "this tree relative to it"),
        rows,
    )


def _seconds(tree: Path, prepare: str, measured: str) -> float | None:
    """The time of some code in a new process with this tree; None if it cannot run it."""
    code = "\n".join(
        (
            prepare,
            "import time; _t = time.perf_counter()",
            measured,
            "print(time.perf_counter() - _t)",
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env=environment, capture_output=True, text=True
    )
    return json.loads(done.stdout) if done.returncode == 0 else None
