"""A `.vec` of a million words: what it costs to read it the first time, and after that."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.measure import cost_of, print_table
from benchmarks.wiki import make_words
from dgn.text.word_files import VecFile

WORDS, DIMENSION, USED = 1_000_000, 300, 20_000


def run() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["DGN_CACHE"] = name
        path = Path(name) / "million.vec"
        _write_vec(path)
        nothing = cost_of(_import_only)
        rows: list[tuple[object, ...]] = []
        for what, work in (("first time", _open), ("again", _open), ("and use", _open_and_use)):
            cost = cost_of(work, path)
            rows.append((what, f"{cost.seconds:.2f}", f"{cost.megabytes - nothing.megabytes:,.0f}"))
        size = path.stat().st_size / 1e9
    print_table(
        f"A .vec of {WORDS:,} words × {DIMENSION} ({size:.1f} GB); «use»: {USED:,} of its words",
        ("opening", "s", "MB beyond the imports"),
        rows,
    )


def _write_vec(path: Path) -> None:
    random = np.random.default_rng(0)
    numbers = [f"{x:.4f}" for x in random.standard_normal(10_000)]
    with path.open("w") as stream:
        stream.write(f"{WORDS} {DIMENSION}\n")
        for word, start in zip(make_words(WORDS), random.integers(0, 9_000, WORDS), strict=True):
            stream.write(f"{word} {' '.join(numbers[start : start + DIMENSION])}\n")


def _import_only() -> None:
    """The memory of the process before it opens anything."""


def _open(path: Path) -> None:
    VecFile(path)


def _open_and_use(path: Path) -> None:
    VecFile(path).pooled(make_words(USED))
