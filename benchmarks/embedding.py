"""From text to batches at FEVER's size: 110,000 claims on 15,000 pages, 300 dimensions."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import cost_of, print_table
from benchmarks.wiki import make_words
from dgn.data import Claim, Example, Position, Problems, example_of
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled_table import PooledBatches, PooledTable, _EmbeddingPool
from dgn.learn.features import _build as build_features
from dgn.text import open_vectors
from dgn.text.query import Passage

CLAIMS, PAGES, WORKERS = 110_000, 15_000, 2
SENTENCES = 200_000
FEVER_CLAIMS = 145_000


def run() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["DGN_CACHE"] = str(folder / "cache")
        words = make_words()
        vec = folder / "generated-300d.vec"
        _write_vec(vec, words)
        started = time.perf_counter()
        open_vectors(vec)
        conversion = time.perf_counter() - started
        sources = (("300-d .vec", str(vec)), ("wordllama (default)", "wordllama"))
        print_table(
            f"Embedding alone, {WORKERS} workers, {SENTENCES:,} sentences of 25 words",
            ("vectors", "sentences/s, first time", "sentences/s, again"),
            [(label, *_embedding_rates(vectors)) for label, vectors in sources],
        )
        print(
            f"\nReading a .vec of {len(words):,} words × 300 for the first time takes "
            f"{conversion:.1f} s; after that it opens in milliseconds."
        )
        rows: list[tuple[object, ...]] = []
        for label, vectors in sources:
            out = folder / label[:3]
            cost = cost_of(_build, out, vectors, workers=WORKERS)
            per_claim = cost.seconds / CLAIMS
            rows.append(
                (
                    label,
                    f"{cost.seconds:.1f}",
                    f"{cost.megabytes:,.0f}",
                    f"{FEVER_CLAIMS * per_claim:.0f}",
                )
            )
        print_table(
            f"dgn data features, {CLAIMS:,} claims on {PAGES:,} pages of 11 sentences",
            ("vectors", "s", "peak MB, all processes", "FEVER's 145,000 claims, s"),
            rows,
        )
        _measure_batches(folder / "300")


def _embedding_rates(vectors: str) -> tuple[str, ...]:
    """Workers that have just started know no word yet; the second time they do."""
    words = np.array(make_words())
    random = np.random.default_rng(0)
    texts = [" ".join(row) for row in words[_zipf_like(random, (SENTENCES, 25))]]
    options = FeatureOptions(vectors)
    pool = _EmbeddingPool(options, open_vectors(vectors), WORKERS)
    rates: list[str] = []
    for _ in range(2):
        started = time.perf_counter()
        parts = [pool.embed(texts[i : i + 8192]) for i in range(0, len(texts), 8192)]
        for part in parts:
            part.result()
        rates.append(f"{len(texts) / (time.perf_counter() - started):,.0f}")
    pool.close()
    return tuple(rates)


def _zipf_like(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Indices of words; few words are frequent and most are rare, as in English."""
    return (60_000 * random.random(shape) ** 6).astype(int)


def _measure_batches(folder: Path) -> None:
    table = PooledTable.load(folder)
    size = sum(array.nbytes for array in vars(table).values()) / 1e6
    rows: list[tuple[object, ...]] = []
    for library, place in (("NumPy", np.asarray), ("torch, CPU", torch.from_numpy)):
        batches = PooledBatches(table, 256, 0, place)
        started = time.perf_counter()
        for _, numbers in batches.rows_from(Position()):
            batches.batch(numbers)
        took = time.perf_counter() - started
        rows.append(
            (library, f"{len(batches) / took:.0f}", f"{len(table) / took:,.0f}", f"{took:.1f}")
        )
    print_table(
        f"Batches of 256 claims; the features are {size:.0f} MB, resident",
        ("library", "batches/s", "claims/s", "s per epoch"),
        rows,
    )


def _write_vec(path: Path, words: list[str]) -> None:
    random = np.random.default_rng(0)
    with path.open("w") as stream:
        stream.write(f"{len(words)} 300\n")
        for word in words:
            numbers = " ".join(f"{x:.4f}" for x in random.standard_normal(300))
            stream.write(f"{word} {numbers}\n")


def _build(folder: Path, vectors: str) -> None:
    options = FeatureOptions(vectors)
    quiet = Problems()
    build_features(lambda _: _examples(), folder, options, {}, quiet, WORKERS, lambda *_: None)


def _examples() -> Iterator[Example]:
    random = np.random.default_rng(0)
    words = np.array(make_words())
    pages: dict[int, list[Passage]] = {}
    for number in range(CLAIMS):
        page = number % PAGES
        if page not in pages:
            rows = words[_zipf_like(random, (11, 25))]
            pages[page] = [
                Passage(" ".join(row), f"P{page}", 0, n, id=f"P{page}")
                for n, row in enumerate(rows)
            ]
        text = " ".join(words[_zipf_like(random, (9,))])
        yield example_of(Claim(str(number), text), pages[page])
