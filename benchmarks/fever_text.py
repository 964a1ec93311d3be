"""FEVER's own sentences, if ../shared/data exists: embedding them, and the cost of punctuation.

Recall of cosine Top-k on fever-eraser/dev, pooled 300-d vectors, with and without punctuation.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.measure import print_table
from dgn.core import top_k
from dgn.data import read_examples
from dgn.evaluation.metrics import scores_at
from dgn.learn.families import FeatureOptions
from dgn.learn.families.pooled_table import _EmbeddingPool
from dgn.text import open_vectors
from dgn.text.spelling import clean_brackets
from dgn.text.vectors import mean_rows, unit_rows
from dgn.text.word_files import VecFile
from dgn.text.words import split_words

DATA = Path(__file__).parents[2] / "shared" / "data"
VECTORS = DATA / "vectors" / "english-300d.vec.gz"
KS = (1, 3, 5, 7)
_WITH_PUNCTUATION = re.compile(r"\w+(?:['’.\-]\w+)*|[^\w\s]")


def run() -> None:
    if not DATA.is_dir():
        print("\nfever_text: skipped, ../shared/data does not exist")
        return
    _print_rates()
    rows = [
        ("words", *_recalls(split_words)),
        ("and punctuation", *_recalls(lambda t: _WITH_PUNCTUATION.findall(clean_brackets(t)))),
    ]
    print_table(
        "Cosine Top-k on fever-eraser/dev, pooled 300-d vectors, recall",
        ("pooled", *(f"k = {k}" for k in KS)),
        rows,
    )


def _print_rates() -> None:
    pages = sorted((DATA / "fever-eraser" / "docs").iterdir())
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").split("\n")]
    texts = [line for line in lines if line.strip()] * 4
    rows: list[tuple[object, ...]] = []
    for vectors in (str(VECTORS), "wordllama"):
        pool = _EmbeddingPool(FeatureOptions(vectors), open_vectors(vectors), 2)
        rates: list[str] = []
        for _ in range(3):
            started = time.perf_counter()
            parts = [pool.embed(texts[i : i + 8192]) for i in range(0, len(texts), 8192)]
            for part in parts:
                part.result()
            rates.append(f"{len(texts) / (time.perf_counter() - started):,.0f}")
        pool.close()
        rows.append((Path(vectors).name, *rates))
    print_table(
        f"Embedding FEVER's own sentences, 2 workers, {len(texts):,} texts",
        ("vectors", "sentences/s, first time", "again", "and again"),
        rows,
    )


def _recalls(split: object) -> list[str]:
    vectors = VecFile(VECTORS)
    row_of = lru_cache(maxsize=None)(vectors.row_of)
    dev = DATA / "fever-eraser"
    examples = list(read_examples(dev / "dev.jsonl", dev / "docs"))
    longest = max(len(example.gold) for example in examples)
    scores = np.zeros((len(examples), longest), dtype=np.float32)
    mask, gold = np.zeros(scores.shape, dtype=bool), np.zeros(scores.shape, dtype=bool)
    for row, example in enumerate(examples):
        texts = [example.query.text, *example.query.texts]
        rows = [[r for word in split(text) if (r := row_of(word)) >= 0] for text in texts]
        pooled = unit_rows(mean_rows(vectors.table, rows))
        count = len(example.gold)
        scores[row, :count] = pooled[1:] @ pooled[0]
        mask[row, :count], gold[row, :count] = True, example.gold
    picks = top_k(scores, max(KS), mask).indices
    return [f"{scores_at(k, picks, gold).recall:.3f}" for k in KS]
