"""The selectors and their peers on 35 kinds of text.

    python -m experiments.quality all [MODEL …]               # all dev rows, dgn alone
    python -m experiments.quality peers --left-out MODELS     # some of them, next to peers
    python -m experiments.quality tables                      # of docs/quality.md

`peers` takes queries of each dev part up to a number of passages, drawn over documents: the first
query of every document, then the second. MODELS has the folders `facets-N`, and `minilm-N` if there
are any: models that were trained without the kinds of text of fold N, so that each kind is also
selected by one that has never seen anything like it. Of MiniLM's diversifiers (those of pyversity),
the one that is reported is the best on the training parts. Recalls are kept in MODELS/recalls.json
as they are measured, so that an interrupted run resumes. Tests are over documents: queries about
the same document are not independent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.evaluation import STRATEGIES, Baseline, Bm25, Diversified, PooledTopK, SelectorBaseline
from dgn.evaluation.baselines import best_first
from dgn.evaluation.metrics import bootstrap_interval, paired_comparison
from dgn.files import save_figure, write_atomically
from dgn.selector import Selector
from dgn.text import PooledVectors
from dgn.text.query import Query
from experiments.domains import FOLDS, KINDS, read_domain
from experiments.made import made_by
from experiments.recall import KS, document_of, limited_examples, recalls
from experiments.transformer import MiniLMVectors

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "experiments" / "results" / "quality.json"
_FIGURE = _ROOT / "docs" / "images" / "quality.png"
_BY_KIND = (
    *("BM25, stems", "MiniLM + BM25", "untrained", "default, kind left out", "default"),
    "minilm",
)
_AT = 5
_OUR_COLOUR, _PEER_COLOUR = "#1b6ca8", "#7a7a7a"
_DIVERSITIES = (0.1, 0.3, 0.5)
_CHOOSING = 15
"""Queries of each training part that choose a diversifier."""

_OURS = ("default, kind left out", "default", "minilm, kind left out", "minilm")
_DIGITS, _LEVEL = 4, 0.05
Results = dict[str, dict[str, NDArray[np.float64]]]
"""By system and kind of text: [queries, KS], the recall of each query."""


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, or print what was measured."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    everything = commands.add_parser("all")
    everything.add_argument("models", nargs="*", default=["untrained", "default"], metavar="MODEL")
    peers = commands.add_parser("peers")
    peers.add_argument("--out", type=Path, default=_RESULTS, help="JSON file of the results")
    peers.add_argument("--left-out", type=Path, required=True, metavar="MODELS")
    peers.add_argument("--queries", type=int, default=60, help="queries per kind of text")
    peers.add_argument("--passages", type=int, default=4000, help="passages per kind of text")
    commands.add_parser("tables")
    options = parser.parse_args(arguments)
    if options.command == "all":
        return measure_all(options.models)
    return print_tables() if options.command == "tables" else measure_peers(options)


def measure_all(models: Sequence[str]) -> int:
    """Print the recall of some models on all dev rows, kind by kind and on average."""
    selectors = {model: Selector.from_pretrained(model) for model in models}
    total, means = 0, {model: list[NDArray[np.float64]]() for model in models}
    print(made_by("experiments/quality.py", "facets"))
    print(f"{'recall at 1, 3, 5, 7':<28}" + "".join(f"{model:>32}" for model in models))
    for name in KINDS:
        examples = read_domain(name).dev
        total += len(examples)
        for model, selector in selectors.items():
            means[model].append(recalls(selector, examples).mean(axis=0))
        cells = ("".join(f"{share:>8.4f}" for share in means[model][-1]) for model in models)
        print(f"{name:<20}{len(examples):>8}" + "".join(cells), flush=True)
    cells = ("".join(f"{s:>8.4f}" for s in np.mean(of, axis=0)) for of in means.values())
    print(f"{'mean of the kinds':<20}{total:>8}" + "".join(cells))
    return 0


def measure_peers(options: argparse.Namespace) -> int:
    """Select, print a table, and write every recall."""
    examples = {name: limited_examples(name, options.queries, options.passages) for name in KINDS}
    kept = options.left_out / "recalls.json"
    results = _read(kept)

    vectors = MiniLMVectors(in_torch=False)
    best = _best_diversifier(vectors, options.passages)
    peers = _peers(vectors, best)
    systems: dict[str, Callable[[str], Baseline]] = {
        **{name: lambda _, one=one: one for name, one in peers.items()},
        "untrained": _same("untrained"),
        "default, kind left out": _left_out(options.left_out, "facets"),
        "default": _same("default"),
        "minilm": _same("minilm"),
    }
    if (options.left_out / "minilm-0").is_dir():  # readers need a GPU to be trained
        systems["minilm, kind left out"] = _left_out(options.left_out, "minilm")
    for system, choose in systems.items():
        if system not in results:
            results[system] = {name: _recalls(choose(name), examples[name]) for name in KINDS}
            _keep(kept, results)
        mean = np.mean([own.mean(axis=0) for own in results[system].values()], axis=0)
        print(f"{system:<28}" + "".join(f"{share:>8.3f}" for share in mean), flush=True)
    exact = MiniLMVectors()  # what the peers are timed with
    timed = {name: one(KINDS[0]) for name, one in systems.items() if "left out" not in name}
    documents = {name: [document_of(one) for one in own] for name, own in examples.items()}
    milliseconds = _milliseconds({**timed, **_peers(exact, best)}, exact)
    _write(options.out, results, documents, milliseconds)
    return 0


def _peers(vectors: PooledVectors, best: tuple[str, float]) -> dict[str, Baseline]:
    strategy, diversity = best
    diversified = Diversified(strategy, vectors, diversity)
    return {
        "BM25, stems": Bm25(stemmed=True),
        "MiniLM, cosine": PooledTopK(vectors),
        f"MiniLM, {diversified.name}": diversified,
        "MiniLM + BM25": MiniLMAndBm25(vectors),
    }


def _same(model: str) -> Callable[[str], Baseline]:
    """The same model for every kind of text, loaded once."""
    loaded: list[Baseline] = []

    def choose(_: str) -> Baseline:
        if not loaded:
            loaded.append(SelectorBaseline("", Selector.from_pretrained(model)))
        return loaded[0]

    return choose


def _left_out(models: Path, family: str) -> Callable[[str], Baseline]:
    """For each kind of text, the model that was trained without its fold."""
    by_fold = [_same(str(models / f"{family}-{number}")) for number in range(len(FOLDS))]
    folds = {name: number for number, own in enumerate(FOLDS) for name in own}
    return lambda name: by_fold[folds[name]](name)


def _milliseconds(systems: Mapping[str, Baseline], vectors: MiniLMVectors) -> dict[str, float]:
    """The median time of a query with up to 30 passages of text that is new to the process."""
    found: dict[str, float] = {}
    queries = [limited_examples(name, 4, 10**9, "train")[3].query for name in KINDS]
    queries = [replace(query, passages=query.passages[:30]) for query in queries]
    for system, baseline in systems.items():
        times: list[float] = []
        for query in queries:
            vectors.forget()
            started = time.perf_counter()
            baseline.select([query], 5)
            times.append(time.perf_counter() - started)
        found[system] = round(1000 * statistics.median(times), 3)
    return found


def _best_diversifier(vectors: PooledVectors, passages: int) -> tuple[str, float]:
    """The diversifier of MiniLM's vectors with the best mean recall on the training parts."""
    settings = [(one, diversity) for one in STRATEGIES for diversity in _DIVERSITIES]
    examples = [limited_examples(name, _CHOOSING, passages // 10, "train") for name in KINDS]
    means: list[float] = []
    for strategy, diversity in settings:
        peer = Diversified(strategy, vectors, diversity)
        means.append(float(np.mean([_recalls(peer, own).mean() for own in examples])))
    return settings[int(np.argmax(means))]


def _recalls(baseline: Baseline, examples: Sequence[Example]) -> NDArray[np.float64]:
    found = np.zeros((len(examples), len(KS)))
    for row, example in enumerate(examples):
        (indices,) = baseline.select([example.query], max(KS))
        gold = np.array(example.gold)
        hits = np.cumsum([index >= 0 and gold[index] for index in indices])
        found[row] = [hits[k - 1] / gold.sum() for k in KS]
    return found


def _read(path: Path) -> Results:
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {
        system: {name: np.array(own) for name, own in kinds.items()}
        for system, kinds in found.items()
    }


def _keep(path: Path, results: Results) -> None:
    rows = {s: {name: own.tolist() for name, own in kinds.items()} for s, kinds in results.items()}
    write_atomically(path, json.dumps(rows))


def _write(
    path: Path,
    results: Results,
    documents: Mapping[str, list[str]],
    milliseconds: Mapping[str, float],
) -> None:
    """Means with intervals, and each system against ours, kind by kind."""
    made = made_by("experiments/quality.py", "facets")
    content: dict[str, Any] = {"made": made, "ks": KS, "systems": {}}
    for system, found in results.items():
        kinds = {
            name: {
                "queries": len(own),
                "recall": [_rounded(bootstrap_interval(own[:, k], seed=0)) for k in range(len(KS))],
                "is_ahead_of": {
                    one: _is_ahead(own, results[one][name], documents[name])
                    for one in _OURS
                    if one in results
                },
            }
            for name, own in found.items()
        }
        means = np.array([own.mean(axis=0) for own in found.values()])
        content["systems"][system] = {
            "mean": [_rounded(bootstrap_interval(means[:, k], seed=0)) for k in range(len(KS))],
            "milliseconds": milliseconds.get(system),
            "kinds": kinds,
        }
    write_atomically(path, json.dumps(content, indent=1) + "\n")
    print(f"wrote {path}")


def _is_ahead(
    one: NDArray[np.float64], other: NDArray[np.float64], documents: Sequence[str]
) -> list[bool]:
    """At each k, whether the first one is better, p < .05 in a paired test over documents."""
    ours, theirs = (_by_document(own, documents) for own in (one, other))
    compared = [paired_comparison(ours[:, k], theirs[:, k], seed=0) for k in range(len(KS))]
    return [found.difference.mean > 0 and found.p_value < _LEVEL for found in compared]


def _by_document(own: NDArray[np.float64], documents: Sequence[str]) -> NDArray[np.float64]:
    """[documents, KS], sums over the queries of a document, scaled to the mean over queries."""
    _, number = np.unique(np.array(documents), return_inverse=True)
    sums = np.zeros((int(number.max()) + 1, own.shape[1]))
    np.add.at(sums, number, own)
    return sums * len(sums) / len(own)


def _rounded(interval: Any) -> list[float]:
    return [round(value, _DIGITS) for value in (interval.mean, interval.low, interval.high)]


def _scaled(scores: NDArray[Any]) -> NDArray[np.float64]:
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / ((high - low) or 1.0)


def print_tables() -> int:
    """Print both tables, and draw the recall against the time."""
    found = json.loads(_RESULTS.read_text(encoding="utf-8"))
    systems: dict[str, dict[str, Any]] = found["systems"]
    ks: list[int] = found["ks"]
    print("| |" + "".join(f" k = {k} |" for k in ks) + " ms |")
    print("| --- |" + " --: |" * (len(ks) + 1))
    for name, one in systems.items():
        time = one["milliseconds"]
        cells = [_short(interval[0]) for interval in one["mean"]]
        cells.append("" if time is None else f"{time:.1f}")
        print(f"| {name} | {' | '.join(cells)} |")
    place = ks.index(_AT)
    columns = [name for name in _BY_KIND if name in systems]
    print(f"\n| recall at {_AT} | queries | {' | '.join(columns)} |")
    print("| --- |" + " --: |" * (len(columns) + 1))
    for kind, own in systems[columns[0]]["kinds"].items():
        cells = [_short(systems[name]["kinds"][kind]["recall"][place][0]) for name in columns]
        print(f"| {kind} | {own['queries']} | {' | '.join(cells)} |")
    print()
    for name, one in systems.items():
        if name not in _BY_KIND[-4:]:
            print(f"significantly better than ours (p < .05), {name}: {_ahead(one, ks)}")
    _draw(systems, place)
    print(_FIGURE)
    return 0


def _ahead(system: dict[str, Any], ks: list[int]) -> str:
    """Where a system is significantly ahead of each of ours, kind by kind."""
    return "; ".join(
        f"{ours}: "
        + (
            ", ".join(
                f"{kind} at {k}"
                for kind, own in system["kinds"].items()
                for place, k in enumerate(ks)
                if own["is_ahead_of"][ours][place]
            )
            or "nowhere"
        )
        for ours in next(iter(system["kinds"].values()))["is_ahead_of"]
    )


def _draw(systems: dict[str, dict[str, Any]], place: int) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, one in systems.items():
        time, (recall, *_) = one["milliseconds"], one["mean"][place]
        if time is None:
            continue
        colour = _OUR_COLOUR if name in _BY_KIND[2:] else _PEER_COLOUR
        axes.plot(time, recall, "o", color=colour)
        below = -11 if name in ("untrained", "MiniLM, cosine") else 4
        axes.annotate(
            name, (time, recall), (6, below), textcoords="offset points", color=colour, fontsize=9
        )
    for name in ("default", "minilm"):
        left = systems.get(f"{name}, kind left out")
        if left is not None:
            time, (recall, *_) = systems[name]["milliseconds"], left["mean"][place]
            axes.plot(time, recall, "o", color=_OUR_COLOUR, fillstyle="none")
            axes.annotate(
                f"{name}, kind left out", (time, recall), (6, 4), textcoords="offset points",
                color=_OUR_COLOUR, fontsize=9,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.margins(x=0.3, y=0.1)
    axes.set_xlabel("milliseconds per query with up to 30 passages, text never seen, two cores")
    axes.set_ylabel(f"recall at {_AT}, mean of 35 kinds of text")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, _FIGURE, dpi=150)


def _short(share: float) -> str:
    return f"{share:.3f}".removeprefix("0")


if __name__ == "__main__":
    sys.exit(main())
