"""Writing the matches of examples as they come, each word once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data.records import Example
from dgn.encoders.matcher import Matcher, word_table
from dgn.encoders.matches import BY_ITEM, BY_PAIR, ClaimMatches
from dgn.features.queries import query_of
from dgn.text.word_tokens import WordTokens

_CLAIMS_AT_ONCE = 64
_STORED: dict[str, Any] = {"matched": np.int32, "cosine": np.float16, "title": np.float16}


class MatchWriter:
    """Collects examples, matches them, and writes a MatchTable's arrays in the end."""

    def __init__(self, folder: Path, matcher: Matcher, *, titles: bool = True) -> None:
        self._folder, self._matcher, self._titles = folder, matcher, titles
        self._waiting: list[Example] = []
        self._words: dict[bytes, int] = {}
        self._vectors: list[NDArray[np.float16]] = []
        self._facts: list[NDArray[np.float32]] = []
        self._matches: list[ClaimMatches] = []
        self._ids: list[str] = []
        self._gold: list[NDArray[np.bool_]] = []
        self.claim_count = self.sentence_count = self.missing_count = 0

    def add(self, example: Example) -> None:
        """Add an example that has candidates."""
        self._waiting.append(example)
        self.claim_count += 1
        self.sentence_count += len(example.candidates)
        self.missing_count += len(example.missing)
        if len(self._waiting) >= _CLAIMS_AT_ONCE:
            self._match()

    def __enter__(self) -> MatchWriter:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is not None or not self.claim_count:
            return
        self._match()
        arrays: dict[str, NDArray[Any]] = {
            "vectors": np.concatenate(self._vectors),
            "facts": np.concatenate(self._facts),
            "ids": np.array(self._ids),
            "tokens": np.array([len(one.claim) for one in self._matches]),
            "items": np.array([len(one.length) for one in self._matches]),
            "claim": np.concatenate([one.claim for one in self._matches]),
            "gold": np.concatenate(self._gold),
        }
        for name in BY_PAIR + BY_ITEM:
            arrays[name] = np.concatenate([getattr(one, name).ravel() for one in self._matches])
        for name, array in arrays.items():
            np.save(self._folder / f"{name}.npy", array)

    def _match(self) -> None:
        if not self._waiting:
            return
        queries = [query_of(example, titles=self._titles) for example in self._waiting]
        matches, words = self._matcher.match(queries)
        place = self._places_of(words)
        for one, example in zip(matches, self._waiting, strict=True):
            stored = {name: getattr(one, name) for name in BY_PAIR + BY_ITEM}
            stored["matched"] = place[one.matched]
            stored |= {name: stored[name].astype(kind) for name, kind in _STORED.items()}
            self._matches.append(ClaimMatches(place[one.claim].astype(np.int32), **stored))
            self._ids.append(example.claim.id)
            self._gold.append(np.array(example.gold, dtype=bool))
        self._waiting = []

    def _places_of(self, words: WordTokens) -> NDArray[np.int64]:
        """Where these words lie among all that were met; new ones are added."""
        table = word_table(words)
        vectors = table.vectors.astype(np.float16)
        places = np.zeros(len(vectors), np.int64)
        new: list[int] = []
        for number, vector in enumerate(vectors):
            key = vector.tobytes() + table.facts[number].tobytes()
            if key not in self._words:
                self._words[key] = len(self._words)
                new.append(number)
            places[number] = self._words[key]
        self._vectors.append(vectors[new])
        self._facts.append(table.facts[new].astype(np.float32))
        return places
