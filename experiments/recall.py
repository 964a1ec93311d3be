"""Recall of gold passages, as the experiments on many kinds of text measure and print it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import greedy
from dgn.data import Example
from dgn.selector import Limits, Selector
from dgn.text.facets.formula import FacetWeights, encode
from dgn.text.facets.matching import Matches
from dgn.text.query import Passage, Query
from experiments.domains import read_domain
from experiments.rows import Row

KS = (1, 3, 5, 7)
_WINDOW = 4


def recalls_of(weights: FacetWeights, examples: Sequence[Row]) -> NDArray[np.float64]:
    """[examples, KS], the recall of greedy on matched queries."""
    found = np.zeros((len(examples), len(KS)))
    for place, row in enumerate(examples):
        objective, items = encode(weights, Matches.of([row.matches], row.words))
        selected: Any = greedy(objective, items, min(max(KS), len(row.gold)))
        found[place] = recall_at(selected[0].indices, row.gold)
    return found


def recalls(selector: Selector, examples: Sequence[Example]) -> NDArray[np.float64]:
    """[examples, KS], the share of the gold passages that are among the first k."""
    found = np.zeros((len(examples), len(KS)))
    by_length = sorted(range(len(examples)), key=lambda place: len(examples[place].gold))
    for start in range(0, len(examples), 32):
        places = by_length[start : start + 32]
        selected = selector.select_queries([examples[p].query for p in places], Limits(k=max(KS)))
        for place, one in zip(places, selected, strict=True):
            found[place] = recall_at(one.indices, np.array(examples[place].gold))
    return found


def recall_at(indices: Sequence[int], gold: NDArray[np.bool_]) -> list[float]:
    """The share of the gold passages that are among the first k, for each of KS."""
    if not indices:
        return [0.0] * len(KS)
    hits = np.cumsum(gold[list(indices)])
    return [float(hits[min(k, len(hits)) - 1] / gold.sum()) for k in KS]


def print_recalls(name: str, found: Mapping[str, NDArray[np.float64]]) -> None:
    """One line per kind of text, and the mean over all kinds."""
    print(f"\n{name}: recall at {', '.join(map(str, KS))}")
    for kind, own in found.items():
        print(f"  {kind:<16}" + "".join(f"{share:>8.3f}" for share in own.mean(axis=0)))
    mean = np.mean([own.mean(axis=0) for own in found.values()], axis=0)
    print(f"  {'mean':<16}" + "".join(f"{share:>8.3f}" for share in mean), flush=True)


def limited_examples(name: str, queries: int, passages: int, part: str = "dev") -> list[Example]:
    """The first queries of a kind of text, drawn over documents, up to a number of passages."""
    kept: list[Example] = []
    for example in _over_documents(getattr(read_domain(name), part))[:queries]:
        passages -= len(example.gold)
        if kept and passages < 0:
            break
        kept.append(example)
    return kept


def document_of(example: Example) -> str:
    """What a query's document is known by: the first of its passages."""
    return example.query.texts[0]


def _over_documents(examples: Sequence[Example]) -> list[Example]:
    """The first query of every document, then the second of every document, and so on."""
    seen: Counter[str] = Counter()
    rounds: list[int] = []
    for example in examples:
        rounds.append(seen[document_of(example)])
        seen[document_of(example)] += 1
    order = sorted(range(len(examples)), key=rounds.__getitem__)
    return [examples[place] for place in order]


def windows_of(example: Example) -> tuple[Query, list[NDArray[np.int64]]] | None:
    """Overlapping windows of sentences as passages, and which sentences each one has.

    None for what is not one document of some length.
    """
    query, count = example.query, len(example.gold)
    documents = {passage.document for passage in query.passages}
    if count < 4 * _WINDOW or None in documents or len(documents) > 1:
        return None
    starts = range(0, count - _WINDOW // 2, _WINDOW // 2)
    windows = [np.arange(start, min(start + _WINDOW, count)) for start in starts]
    texts = [" ".join(query.texts[place] for place in window) for window in windows]
    chunks = [Passage(text, query.passages[0].title) for text in texts]
    return Query.of(query.text, chunks), windows
