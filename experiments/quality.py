r"""The selectors and their peers on ten domains: `python -m experiments.quality --out FILE`.

    python -m experiments.quality --left-out FOLDER --minilm --out experiments/results/quality.json

The queries are the first ones of each dev part, up to a number of passages, so that every peer can
be measured on the same ones. With `--left-out`, a folder that `experiments.mixture --left-out`
wrote, each domain is also selected by a model that has never seen it. `--ranked NAME=FILE` ranks by
the logits that `experiments.read_pairs train` wrote, and `--read NAME=FILE` selects by the model
minilm with these logits and the cosines that `experiments.read_pairs compare` wrote into the folder
`--compared`. A domain that a file does not have is left out of that row.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.evaluation import (
    STRATEGIES,
    Baseline,
    Bm25,
    Diversified,
    PooledTopK,
    SelectorBaseline,
    TfIdf,
)
from dgn.evaluation.baselines import best_first
from dgn.evaluation.metrics import bootstrap_interval, paired_comparison
from dgn.files import write_atomically
from dgn.selector import Selector
from dgn.text import PooledVectors
from dgn.text.query import Query
from experiments.compared import Compared, Read, divided
from experiments.domains import DOMAINS, read_domain
from experiments.mixture import FOLDS, KS

_DIVERSITIES = (0.1, 0.3, 0.5)
_OURS = ("dgn, shipped", "dgn, domain left out", "dgn, minilm", "dgn, minilm, domain left out")
Results = dict[str, dict[str, NDArray[np.float64]]]
"""By system and domain: [queries, KS], the recall of each query."""


@dataclass(frozen=True, eq=False)
class MiniLMAndBm25(Baseline):
    """The mean of MiniLM's cosine and BM25, each between 0 and 1."""

    vectors: PooledVectors
    name: str = "MiniLM + BM25"

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        lexical = Bm25(stemmed=True).scores(queries)
        cosines: list[NDArray[Any]] = []
        for query in queries:
            vectors = np.asarray(self.vectors.pooled([query.text, *query.texts]))
            cosines.append(vectors[1:] @ vectors[0])
        both = zip(lexical, cosines, strict=True)
        return best_first([_scaled(words) + _scaled(near) for words, near in both], k)


@dataclass(frozen=True, eq=False)
class Ranked(Baseline):
    """The passages with the largest logits."""

    logits: Sequence[NDArray[np.float32]]
    name: str = "ranked"

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        return best_first(self.logits[: len(queries)], k)


def main(arguments: Sequence[str] | None = None) -> int:
    """Select, print a table, and write every recall."""
    parser = argparse.ArgumentParser(prog="python -m experiments.quality", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file of all recalls")
    parser.add_argument("--left-out", type=Path, help="models that left two domains out")
    parser.add_argument("--minilm", action="store_true", help="measure MiniLM, too; slow")
    parser.add_argument("--ranked", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--read", nargs="*", default=[], metavar="NAME=FILE")
    parser.add_argument("--compared", type=Path, help="MiniLM's cosines, for --read")
    parser.add_argument("--queries", type=int, default=200, help="queries per domain")
    parser.add_argument("--passages", type=int, default=8000, help="passages per domain")
    options = parser.parse_args(arguments)
    examples = {name: _limited(name, options.queries, options.passages) for name in DOMAINS}
    results: Results = {}
    seconds: dict[str, float] = {}

    def measure(system: str, choose: Callable[[str], Baseline | None]) -> None:
        started = time.perf_counter()
        baselines = {name: choose(name) for name in DOMAINS}
        results[system] = {
            name: _recalls(one, examples[name])
            for name, one in baselines.items()
            if one is not None
        }
        count = sum(len(examples[name]) for name in results[system])
        seconds[system] = (time.perf_counter() - started) / count
        mean = np.mean([own.mean(axis=0) for own in results[system].values()], axis=0)
        cells = "".join(f"{share:>8.3f}" for share in mean)
        print(f"{system:<28}{cells}   {1000 * seconds[system]:.1f} ms", flush=True)

    for baseline in (TfIdf(), Bm25(), Bm25(stemmed=True)):
        measure(baseline.name, lambda _, one=baseline: one)
    untrained = SelectorBaseline("", Selector.from_pretrained("untrained"))
    measure("dgn, untrained", lambda _: untrained)
    if options.left_out:
        models = {
            name: SelectorBaseline("", Selector.from_pretrained(options.left_out / _folder(fold)))
            for fold in FOLDS
            for name in fold
        }
        measure("dgn, domain left out", lambda name: models[name])
    shipped = SelectorBaseline("", Selector.from_pretrained())
    measure("dgn, shipped", lambda _: shipped)
    if options.minilm:
        from experiments.minilm import MiniLMVectors

        vectors = MiniLMVectors()
        peers: list[Baseline] = [PooledTopK(vectors, "MiniLM, cosine")]
        peers.append(MiniLMAndBm25(vectors))
        peers += [Diversified(one, vectors, d) for one in STRATEGIES for d in _DIVERSITIES]
        for baseline in peers:
            name = baseline.name if "MiniLM" in baseline.name else f"MiniLM, {baseline.name}"
            measure(name, lambda _, one=baseline: one)
    for name, path in (one.split("=", 1) for one in options.ranked):
        logits = _read_logits(path)
        measure(name, lambda d, own=logits: Ranked(own[d]) if d in own else None)
    if options.read:
        compared = Compared(options.compared).by_domain
        for name, path in (one.split("=", 1) for one in options.read):
            logits = _read_logits(path)
            measure(name, lambda d, own=logits: Read(compared[d], own[d]) if d in own else None)
    _write(options.out, results, seconds)
    return 0


def _read_logits(path: str) -> dict[str, list[NDArray[np.float32]]]:
    """The logits of each dev part, divided by its examples."""
    return {name: divided(flat, read_domain(name).dev) for name, flat in np.load(path).items()}


def _limited(name: str, queries: int, passages: int) -> list[Example]:
    kept: list[Example] = []
    for example in read_domain(name).dev[:queries]:
        passages -= len(example.gold)
        if kept and passages < 0:
            break
        kept.append(example)
    return kept


def _recalls(baseline: Baseline, examples: Sequence[Example]) -> NDArray[np.float64]:
    indices = baseline.select([example.query for example in examples], max(KS))
    found = np.zeros((len(examples), len(KS)))
    for row, example in enumerate(examples):
        gold = np.array(example.gold)
        hits = np.cumsum([index >= 0 and gold[index] for index in indices[row]])
        found[row] = [hits[k - 1] / gold.sum() for k in KS]
    return found


def _write(path: Path, results: Results, seconds: dict[str, float]) -> None:
    """Means with intervals, and each system against ours, domain by domain."""
    ours = [name for name in _OURS if name in results]
    content: dict[str, Any] = {"ks": KS, "systems": {}}
    for system, found in results.items():
        domains = {
            name: {
                "queries": len(own),
                "recall": [_rounded(bootstrap_interval(own[:, k], seed=0)) for k in range(len(KS))],
                "p_value": {one: _p_values(own, results[one][name]) for one in ours},
            }
            for name, own in found.items()
        }
        mean = np.mean([own.mean(axis=0) for own in found.values()], axis=0)
        content["systems"][system] = {
            "mean": [round(float(share), 4) for share in mean],
            "milliseconds_per_query": round(1000 * seconds[system], 2),
            "domains": domains,
        }
    write_atomically(path, json.dumps(content, indent=1) + "\n")
    print(f"wrote {path}")


def _p_values(one: NDArray[np.float64], other: NDArray[np.float64]) -> list[float]:
    columns = range(len(KS))
    return [round(paired_comparison(one[:, k], other[:, k], seed=0).p_value, 4) for k in columns]


def _rounded(interval: Any) -> list[float]:
    return [round(value, 4) for value in (interval.mean, interval.low, interval.high)]


def _scaled(scores: NDArray[Any]) -> NDArray[np.float64]:
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / ((high - low) or 1.0)


def _folder(fold: tuple[str, str]) -> str:
    return f"without-{'-'.join(fold)}"


if __name__ == "__main__":
    sys.exit(main())
