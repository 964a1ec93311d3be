"""What a user's own scores and embeddings bring: `python -m experiments.own_scores PACK READ`.

PACK is what `experiments.read_pairs pack --english` wrote, and READ what `embed` wrote for it:
MiniLM's vectors, and the logits of the reader of the model minilm as the scores of a reranker. The
numbers of `dgn.selector.scores` were chosen on the training parts; what is reported are the dev
parts. pyversity's diversifiers get the same embeddings, with their best diversity on the training
parts.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import greedy
from dgn.data import Example
from dgn.evaluation import Bm25, TfIdf
from dgn.evaluation.metrics import paired_comparison
from dgn.selector import Limits, Selector
from dgn.selector.scores import vector_function
from dgn.text import open_vectors
from dgn.text.query import checked_embeddings
from dgn.text.vectors import unit_rows
from dgn.text.words import split_words
from experiments.domains import english_sets, read_domain

KS = (1, 3, 5, 7)
_WEIGHTS = (0.25, 1.0, None)
_DIVERSITIES = (0.05, 0.1, 0.2, 0.3, 0.5)
_STRATEGIES = ("mmr", "msd", "dpp")


@dataclass(frozen=True, eq=False)
class Read:
    """An example with what others know about its passages.

    Attributes:
        example: The example.
        scores: By name, a score for each passage.
        vectors: By name, [1 + passages, width], the query and the passages.
    """

    example: Example
    scores: dict[str, NDArray[Any]]
    vectors: dict[str, NDArray[Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print recalls with and without scores and embeddings, and next to pyversity."""
    parser = argparse.ArgumentParser(prog="python -m experiments.own_scores", description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("read", type=Path)
    options = parser.parse_args(arguments)
    train, dev = _read(options.pack, options.read)
    selector = Selector.from_pretrained()
    plain = _measured(dev, lambda one: _selected(selector, one.example, {}))
    print(f"dev parts of {len(dev)} sets, {sum(map(len, dev.values()))} rows; recall at 1/3/5/7")
    _print("dgn alone", plain, None)
    some = next(iter(dev.values()))[0]
    for name in some.scores:
        for weight in _WEIGHTS:
            found = _measured(dev, _scored(selector, name, weight))
            _print(f"scores: {name}, {_named(weight)}", found, plain)
    for name in some.vectors:
        by_weight = [_measured(dev, _embedded(selector, name, weight)) for weight in _WEIGHTS]
        for weight, found in zip(_WEIGHTS, by_weight, strict=True):
            _print(f"embeddings: {name}, {_named(weight)}", found, plain)
        ours = by_weight[-1]
        alone = _measured(dev, lambda one, name=name: _by_vectors(one, name))
        _print(f"{name} alone: the paper's objective", alone, None)
        for strategy in _STRATEGIES:
            best = max(
                _DIVERSITIES,
                key=lambda d: _mean(_measured(train, _diversified(strategy, name, d))),
            )
            theirs = _measured(dev, _diversified(strategy, name, best))
            _print(f"{name} alone: pyversity {strategy} {best:g}", theirs, None)
            _print_against(f"  dgn with {name} against it", ours, theirs)
    return 0


def _scored(selector: Selector, name: str, weight: float | None) -> Callable[[Read], Any]:
    def select(one: Read) -> Any:
        pairs = zip(one.example.query.passages, one.scores[name], strict=True)
        passages = tuple(replace(passage, score=float(score)) for passage, score in pairs)
        return _selected(selector, one.example, {"passages": passages}, weight)

    return select


def _embedded(selector: Selector, name: str, weight: float | None) -> Callable[[Read], Any]:
    def select(one: Read) -> Any:
        vectors = one.vectors[name]
        checked = checked_embeddings(vectors[0], vectors[1:], len(vectors) - 1)
        return _selected(selector, one.example, {"embeddings": checked}, weight)

    return select


def _selected(
    selector: Selector, example: Example, changes: dict[str, Any], weight: float | None = None
) -> Sequence[int]:
    query = replace(example.query, **changes)
    return selector.select_queries([query], Limits(k=max(KS), score_weight=weight))[0].indices


def _by_vectors(one: Read, name: str) -> Sequence[int]:
    vectors = one.vectors[name]
    own = _originals(one)
    found: Any = greedy(*vector_function(vectors[0], vectors[1:][own]), max(KS))
    return [int(own[index]) for index in found.indices]


def _diversified(strategy: str, name: str, diversity: float) -> Callable[[Read], Any]:
    def select(one: Read) -> Any:
        import pyversity

        vectors, own = one.vectors[name], _originals(one)
        diversify: Any = pyversity.diversify
        found = diversify(
            vectors[1:][own],
            vectors[1:][own] @ vectors[0],
            k=min(max(KS), len(own)),
            strategy=strategy,
            diversity=diversity,
        )
        return own[found.indices].tolist()

    return select


def _originals(one: Read) -> NDArray[np.int64]:
    """The passages that repeat no other one: nobody selects a repeat."""
    twins = np.array(one.example.query.twins)
    return np.flatnonzero(twins == np.arange(len(twins)))


Measured = dict[str, NDArray[np.float64]]
"""By set, [rows, KS], the recall of each row."""


def _measured(sets: dict[str, list[Read]], select: Callable[[Read], Any]) -> Measured:
    found: Measured = {}
    for name, rows in sets.items():
        recalls = np.zeros((len(rows), len(KS)))
        for row, one in enumerate(rows):
            gold = np.array(one.example.gold)
            hits = np.cumsum(gold[list(select(one))]) if any(gold) else np.zeros(1)
            recalls[row] = [hits[min(k, len(hits)) - 1] / gold.sum() for k in KS]
        found[name] = recalls
    return found


def _mean(found: Measured) -> float:
    return float(np.mean([own.mean() for own in found.values()]))


def _print(title: str, found: Measured, plain: Measured | None) -> None:
    mean = np.mean([own.mean(axis=0) for own in found.values()], axis=0)
    cells = " ".join(f"{share:.3f}" for share in mean)
    worse: list[str] = []
    for name, before in (plain or {}).items():
        own = found[name]
        for column, k in enumerate(KS):
            change = own[:, column].mean() - before[:, column].mean()
            if change < 0 and _p(own[:, column], before[:, column]) < 0.05:
                worse.append(f"{name} at {k} ({change:+.3f})")
    tail = "" if plain is None else f"   worse: {', '.join(worse) or 'none'}"
    print(f"{title:<44}{cells}{tail}", flush=True)


def _print_against(title: str, ours: Measured, theirs: Measured) -> None:
    columns = [(name, place) for name in ours for place in range(1, len(KS))]
    behind = [
        f"{name} at {KS[place]}"
        for name, place in columns
        if ours[name][:, place].mean() < theirs[name][:, place].mean()
        and _p(ours[name][:, place], theirs[name][:, place]) < 0.05
    ]
    ahead = sum(ours[name].mean() > theirs[name].mean() for name in ours)
    print(f"{title}: ahead on {ahead} of {len(ours)} sets; behind: {', '.join(behind) or 'none'}")


def _p(first: NDArray[Any], second: NDArray[Any]) -> float:
    return paired_comparison(first, second, seed=0).p_value


def _named(weight: float | None) -> str:
    return "found out" if weight is None else f"weight {weight:g}"


def _read(pack: Path, read: Path) -> tuple[dict[str, list[Read]], dict[str, list[Read]]]:
    arrays = dict(np.load(pack / "examples.npz"))
    files = sorted(read.glob("vectors-*.npy"), key=lambda path: int(path.stem.split("-")[1]))
    vectors = np.concatenate([np.load(path) for path in files])
    ends = np.concatenate([[0], np.cumsum(arrays["counts"])])
    static = open_vectors("wordllama")
    found: tuple[dict[str, list[Read]], dict[str, list[Read]]] = ({}, {})
    number = 0
    for place, name in enumerate(english_sets()):
        domain = read_domain(name)
        for is_dev, (part, sets) in enumerate(zip((domain.train, domain.dev), found, strict=True)):
            logits = np.load(read / f"{'dev' if is_dev else 'train'}-logits.npz")[name]
            own = (arrays["domain"] == place) & (arrays["is_dev"] == is_dev)
            rows: list[Read] = []
            at = 0
            for example in part[: int(own.sum())]:
                texts = [example.query.text, *example.query.texts]
                size = len(texts) - 1
                numbers = [
                    arrays["queries"][number],
                    *arrays["passages"][ends[number] : ends[number + 1]],
                ]
                mini = unit_rows(vectors[numbers].astype(np.float32))
                pooled = unit_rows(np.asarray(static.pooled(texts), np.float32))
                scores = {
                    "BM25": Bm25().scores([example.query])[0],
                    "TF-IDF": _tfidf(example),
                    "MiniLM's cosines": mini[1:] @ mini[0],
                    "the reader's logits": logits[at : at + size].astype(np.float64),
                    "distances, the wrong way round": -(mini[1:] @ mini[0]),
                }
                random = np.stack([_random_words(text) for text in texts])
                embeddings = {"MiniLM": mini, "wordllama": pooled, "random words": random}
                rows.append(Read(example, scores, embeddings))
                at, number = at + size, number + 1
            sets[name] = rows
    return found


def _tfidf(example: Example) -> NDArray[np.float64]:
    order = TfIdf().select([example.query], len(example.query.passages))[0]
    scores = np.zeros(len(order))
    scores[order] = -np.arange(len(order))
    return scores


_TABLE = np.random.default_rng(1).normal(size=(4096, 48)).astype(np.float32)


def _random_words(text: str) -> NDArray[Any]:
    """A weak embedder: the sum of random vectors of words."""
    rows = [zlib.crc32(word.lower().encode()) % len(_TABLE) for word in split_words(text)]
    return unit_rows(_TABLE[rows].sum(axis=0)[None])[0]


if __name__ == "__main__":
    sys.exit(main())
