"""Queries matched by MiniLM's words and texts, which a GPU has compared.

`experiments.read_pairs compare` wrote how near MiniLM's words and texts are. A query is matched by
them as `MiniLMEncoder` matches it; only the cosines are rounded to 1/255.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.text.facets.matching import (
    SAME_STEM,
    TITLE_FROM,
    QueryMatches,
)
from dgn.text.query import Query
from dgn.text.words import written_words
from experiments.domains import read_domain

_LAYER = 6
_PARTS = ("train", "dev")

Cosines = dict[str, list[tuple[NDArray[Any], NDArray[Any]]]]
"""By part of a kind of text: for each example, the cosines of its words, and of its texts."""


def read_cosines(folder: Path) -> dict[str, Cosines]:
    """MiniLM's cosines for the packed examples of each kind of text.

    Args:
        folder: What `experiments.read_pairs compare` wrote for what `pack` wrote.
    """
    words = np.load(folder / f"words-{_LAYER}.npy")
    texts = np.load(folder / "texts.npz")
    cosines = texts["cosines"].astype(np.float32)
    counts: dict[str, list[int]] = {
        name: own.tolist() for name, own in zip(texts["names"], texts["counts"], strict=True)
    }
    by_kind: dict[str, Cosines] = {}
    at_words = at_texts = 0
    for name, packed in counts.items():
        domain = read_domain(name)
        by_kind[name] = {}
        for part, count in zip(_PARTS, packed, strict=True):
            found: list[tuple[NDArray[Any], NDArray[Any]]] = []
            for example in getattr(domain, part)[:count]:
                passages = example.query.passages
                size = len(passages) + len(_titles(example.query))
                asked = len(written_words(example.query.text))
                near = words[at_words : at_words + size * asked].reshape(size, asked)
                found.append((near, cosines[at_texts : at_texts + len(passages)]))
                at_words, at_texts = at_words + size * asked, at_texts + len(passages)
            by_kind[name][part] = found
    return by_kind


def divided(flat: NDArray[Any], examples: Sequence[Example]) -> list[NDArray[np.float32]]:
    """Logits of a dev part, example by example."""
    ends = np.cumsum([len(example.gold) for example in examples])
    return np.split(flat.astype(np.float32), ends)[: len(examples)]


def contextual(
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
