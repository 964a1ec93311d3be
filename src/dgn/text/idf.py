"""How rare a word is: inverse document frequency, from a corpus, saved with a model."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput


@dataclass(frozen=True)
class Idf:
    """idf(w) = log((1 + documents) / (1 + documents with w)) + 1, as scikit-learn smooths it.

    A word that no document has is as rare as can be.
    """

    documents: int
    counts: dict[str, int]

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> Idf:
        """From documents, each given as its tokens."""
        counts: Counter[str] = Counter()
        total = 0
        for tokens in documents:
            counts.update(set(tokens))
            total += 1
        return cls(total, dict(counts))

    def weights(self, tokens: Sequence[str]) -> NDArray[np.float32]:
        """[tokens], at least 1."""
        values = (math.log((1 + self.documents) / (1 + self.counts.get(t, 0))) + 1 for t in tokens)
        return np.fromiter(values, dtype=np.float32, count=len(tokens))

    def save(self, path: Path) -> None:
        """Write as JSON, whole or not at all."""
        partial = path.with_name(path.name + ".partial")
        content = {"documents": self.documents, "counts": dict(sorted(self.counts.items()))}
        partial.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Idf:
        """Read what `save` wrote."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(int(content["documents"]), {w: int(n) for w, n in content["counts"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BrokenInput(
                path, None, found=f"no IDF ({error})", allowed="a file that Idf.save wrote"
            ) from error
