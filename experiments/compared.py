"""The model minilm on whole dev parts, from words and texts that a GPU has compared.

`experiments.read_pairs compare` wrote how near MiniLM's words and texts are, and
`experiments.read_pairs train` the logits of a reader. The set function is built from both here, as
`MiniLMEncoder` builds it from the texts themselves; only the cosines are rounded to 1/255.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.search import Selections, greedy
from dgn.data import Example
from dgn.evaluation import Baseline
from dgn.text.encoders.facets.encoder import FacetEncoder
from dgn.text.encoders.facets.formula import encode
from dgn.text.encoders.facets.matching import (
    SAME_STEM,
    TITLE_FROM,
    Matches,
    QueryMatches,
    match_query,
)
from dgn.text.encoders.facets.questions import with_asked
from dgn.text.encoders.facets.reading import read_queries
from dgn.text.encoders.minilm.encoder import reading_weights
from dgn.text.query import Query
from dgn.text.words import written_words
from experiments.domains import DOMAINS, read_domain

_LAYER = 6


@final
class Compared:
    """MiniLM's cosines for the dev examples of each domain.

    Args:
        folder: What `experiments.read_pairs compare` wrote.
    """

    def __init__(self, folder: Path) -> None:
        words = np.load(folder / f"words-{_LAYER}.npy")
        cosines = np.load(folder / "texts.npz")["cosines"].astype(np.float32)
        self.by_domain: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
        at_words = at_texts = 0
        for name in DOMAINS:
            domain = read_domain(name)
            found: list[tuple[NDArray[Any], NDArray[Any]]] = []
            for example in (*domain.train, *domain.dev):
                passages = example.query.passages
                texts = len(passages) + len(_titles(example.query))
                asked = len(written_words(example.query.text))
                near = words[at_words : at_words + texts * asked].reshape(texts, asked)
                found.append((near, cosines[at_texts : at_texts + len(passages)]))
                at_words, at_texts = at_words + texts * asked, at_texts + len(passages)
            self.by_domain[name] = found[len(domain.train) :]


@dataclass(frozen=True, eq=False)
class Read(Baseline):
    """The model minilm by known cosines and logits, for the first dev examples of a domain.

    Attributes:
        compared: The cosines of words and texts, example by example.
        logits: The logits of the reader, example by example.
    """

    compared: Sequence[tuple[NDArray[Any], NDArray[Any]]]
    logits: Sequence[NDArray[np.float32]]
    name: str = "read"

    def select(self, queries: Sequence[Query], k: int) -> NDArray[np.int64]:
        static, weights = FacetEncoder(), reading_weights()
        found = np.full((len(queries), k), -1, dtype=np.int64)
        for row, query in enumerate(queries):
            (words,), table = read_queries(static.reader, [query])
            match = match_query(words, table)
            own = _contextual(query, match, table.facts[match["query"]], *self.compared[row])
            batch = Matches.of([{**own, "relevance": self.logits[row]}], table)
            unused = np.zeros((len(batch.facts), weights.sizes.dimension), np.float32)
            encoded = encode(weights, replace(batch, vectors=unused))
            objective, items = with_asked([query], *encoded)
            chosen = [
                index for index in _greedy(objective, items, query) if query.twins[index] == index
            ]
            found[row, : len(chosen[:k])] = chosen[:k]
        return found


def divided(flat: NDArray[Any], examples: Sequence[Example]) -> list[NDArray[np.float32]]:
    """Logits of a dev part, example by example."""
    ends = np.cumsum([len(example.gold) for example in examples])
    return np.split(flat.astype(np.float32), ends)[: len(examples)]


def _greedy(objective: Any, items: Any, query: Query) -> Iterator[int]:
    """The passages in the order of the search; repeats come last, since they add nothing new."""
    is_first = np.array(query.twins) == np.arange(len(query.twins))
    kept = type(items)(items.features, items.mask & is_first)
    count = min(int(is_first.sum()), 7)
    yield from cast("Selections", greedy(objective, kept, count))[0].indices


def _contextual(
    query: Query,
    match: QueryMatches,
    facts: NDArray[Any],
    near: NDArray[Any],
    cosines: NDArray[Any],
) -> QueryMatches:
    """A query matched by static vectors, with MiniLM's cosines in their place."""
    size = len(query.passages)
    cosine = near.astype(np.float32) / 255
    is_number = facts[:, 1] > 0
    is_same = match["similarity"] >= 1
    similarity = np.maximum(cosine[:size], SAME_STEM * match["exact"])
    similarity = np.where(is_same, 1.0, np.where(is_number, match["similarity"], similarity))
    names = _titles(query)
    which = [names.index(passage.title) for passage in query.passages]
    covered = ((cosine[size:] - TITLE_FROM) / (1 - TITLE_FROM)).clip(0, 1)[which]
    title = np.where(is_number, match["title"], np.maximum(covered, match["title"] >= 1))
    has_words = match["length"] > 0
    return {
        **match,
        "similarity": (similarity * has_words[:, None]).astype(np.float32),
        "title": title.astype(np.float32),
        "likeness": (cosines * has_words).clip(0),
        "passages": np.zeros((size, 384), np.float32),
        "about": np.zeros(384, np.float32),
    }


def _titles(query: Query) -> list[str]:
    return list(dict.fromkeys(passage.title for passage in query.passages))
