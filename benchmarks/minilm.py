"""The cost of the model minilm, from text to selection, next to a MiniLM cross-encoder in torch.

Every row is a process of its own that has loaded the model and answered one other query, and then
answers the hundred claims of samples/ about text that it has never seen. The rows take turns, and
the median counts, so that another load of the machine falls on all of them. The time of the
processor, summed over both cores, depends less on such a load.

The cross-encoder, in torch, reads every passage with the query and ranks (its cost does not depend
on what it has learned).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import print_table
from dgn.data import read_rows
from dgn.selector import Limits, Selector
from dgn.text.query import Query

_SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
_K, _REPEATS, _INDEXED = 5, 3, 100
_PEER = "MiniLM cross-encoder, torch"
_ROWS = {
    "dgn, minilm": ("minilm", False),
    f"dgn, minilm, {_INDEXED} passages indexed": ("minilm", True),
}


def run() -> None:
    names = [*_ROWS, _PEER]
    times: dict[str, list[list[float]]] = {name: [] for name in names}
    for _ in range(_REPEATS):
        for name in names:
            command = [sys.executable, "-m", "benchmarks.minilm", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times[name].append(json.loads(done.stdout))
    medians = {
        name: [1e3 * statistics.median(column) for column in zip(*runs, strict=True)]
        for name, runs in times.items()
    }
    queries = _queries()
    passages = sum(len(query.passages) for query in queries) / len(queries)
    print_table(
        f"New text to selection, {len(queries)} queries of {passages:.1f} passages, k = {_K}, "
        f"2 cores, median of {_REPEATS} processes that take turns",
        (
            "method",
            "ms per query",
            "slowest 5%",
            "time relative to the cross-encoder",
            "ms of the processor",
            "loads in s",
        ),
        [
            (
                name,
                f"{own[1]:.1f}",
                f"{own[2]:.1f}",
                f"{own[1] / medians[_PEER][1]:.2f}×",
                f"{own[3]:.1f}",
                f"{own[0] / 1e3:.1f}",
            )
            for name, own in medians.items()
        ],
    )


def _queries() -> list[Query]:
    return [example.query for example in read_rows(_SAMPLES)]


def _measure(name: str) -> list[float]:
    """Seconds: to load, of a query, of the slowest 5%, and of the processor for a query."""
    started = time.perf_counter()
    answer = _dgn(*_ROWS[name]) if name in _ROWS else _cross_encoder()
    loading = time.perf_counter() - started
    answer(Query.of("A first query.", ["A first passage."]))
    times: list[float] = []
    queries, before = _queries(), time.process_time()
    for query in queries:
        started = time.perf_counter()
        answer(query)
        times.append(time.perf_counter() - started)
    spent = (time.process_time() - before) / len(queries)
    return [loading, statistics.fmean(times), statistics.quantiles(times, n=20)[-1], spent]


def _dgn(model: str, is_indexed: bool) -> Callable[[Query], object]:
    selector, limits = Selector.from_pretrained(model), Limits(k=_K)
    if not is_indexed:
        return lambda query: selector.select_queries([query], limits)
    texts = [passage.text for query in _queries() for passage in query.passages]
    index = selector.index(passages=texts[:_INDEXED])
    return lambda query: index.select(query.text, k=_K)


def _cross_encoder() -> Callable[[Query], object]:
    import torch

    from dgn.minilm.package import WordPieces
    from experiments.transformer import CrossEncoder, load_minilm, pair_batch

    torch.set_num_threads(2)
    scorer, pieces = CrossEncoder(load_minilm()).eval(), WordPieces()

    @torch.inference_mode()
    def ranked(query: Query) -> object:
        (asked,) = pieces([query.text], 48)
        texts = pieces(query.texts, 128)
        return scorer(*pair_batch([(asked, text) for text in texts])).topk(min(_K, len(texts)))

    return ranked


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
