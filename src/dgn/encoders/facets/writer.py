"""Writes the matches of examples as they arrive; every different word is stored once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.encoders.base import FeatureWriter
from dgn.encoders.facets.matching import BY_ITEM, BY_PAIR, Matcher, QueryMatches, WordTable
from dgn.text import WordTokens

_QUERIES_PER_BATCH = 64
_STORED: dict[str, Any] = dict.fromkeys(("similarity", "title", "about", "passages"), np.float16)


@final
class MatchWriter(FeatureWriter):
    """Collects examples, matches them, and writes the arrays of a MatchTable at the end."""

    def __init__(self, folder: Path, matcher: Matcher, *, titles: bool = True) -> None:
        self._folder, self._matcher, self._titles = folder, matcher, titles
        self._waiting: list[Example] = []
        self._words: dict[bytes, int] = {}
        self._vectors: list[NDArray[np.float16]] = []
        self._facts: list[NDArray[np.float32]] = []
        self._matches: list[QueryMatches] = []
        self._ids: list[str] = []
        self._gold: list[NDArray[np.bool_]] = []
        self.query_count = self.passage_count = self.missing_count = 0

    def add(self, example: Example) -> None:
        self._waiting.append(example)
        self.query_count += 1
        self.passage_count += len(example.query.passages)
        self.missing_count += len(example.missing)
        if len(self._waiting) >= _QUERIES_PER_BATCH:
            self._match()

    def __enter__(self) -> MatchWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is not None or not self.query_count:
            return
        self._match()
        arrays: dict[str, NDArray[Any]] = {
            "vectors": np.concatenate(self._vectors),
            "facts": np.concatenate(self._facts),
            "ids": np.array(self._ids),
            "tokens": np.array([len(one.query) for one in self._matches]),
            "items": np.array([len(one.length) for one in self._matches]),
            "query": np.concatenate([one.query for one in self._matches]),
            "gold": np.concatenate(self._gold),
            "about": np.stack([one.about for one in self._matches]),
            "passages": np.concatenate([one.passages for one in self._matches]),
        }
        for name in BY_PAIR + BY_ITEM:
            arrays[name] = np.concatenate([getattr(one, name).ravel() for one in self._matches])
        for name, array in arrays.items():
            np.save(self._folder / f"{name}.npy", array)

    def _match(self) -> None:
        if not self._waiting:
            return
        queries = [example.query for example in self._waiting]
        matches, words = self._matcher.match(queries, titles=self._titles)
        row = self._rows_of(words)
        for one, example in zip(matches, self._waiting, strict=True):
            stored = {name: getattr(one, name).astype(kind) for name, kind in _STORED.items()}
            self._matches.append(replace(one, query=row[one.query].astype(np.int32), **stored))
            self._ids.append(example.claim.id)
            self._gold.append(np.array(example.gold, dtype=bool))
        self._waiting = []

    def _rows_of(self, words: WordTokens) -> NDArray[np.int64]:
        """The rows of these words among all words so far; new ones are added."""
        table = WordTable.of(words)
        vectors = table.vectors.astype(np.float16)
        rows = np.zeros(len(vectors), np.int64)
        new: list[int] = []
        for number, vector in enumerate(vectors):
            key = vector.tobytes() + table.facts[number].tobytes()
            if key not in self._words:
                self._words[key] = len(self._words)
                new.append(number)
            rows[number] = self._words[key]
        self._vectors.append(vectors[new])
        self._facts.append(table.facts[new].astype(np.float32))
        return rows
