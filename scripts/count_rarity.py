"""Counts how rare each token is, and writes what ships in the package.

python -m scripts.count_rarity ../shared/data/fever-eraser/docs train.jsonl train_partial.jsonl
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dgn.features import ExampleSource
from dgn.text.rarity import COUNTED, count_rarity
from dgn.text.wordllama import WordLlamaVectors

_AT_ONCE = 4096


def main(pages: Path, claims: list[Path]) -> None:
    """Count in every different sentence of the claims' pages."""
    texts = dict.fromkeys(
        candidate.text
        for path in claims
        for example in ExampleSource(path, pages).examples()
        for candidate in example.candidates
    )
    sentences = list(texts)
    portions = (sentences[i : i + _AT_ONCE] for i in range(0, len(sentences), _AT_ONCE))
    np.save(COUNTED, count_rarity(WordLlamaVectors(), portions).astype(np.float16))
    print(f"{COUNTED}: {len(sentences):,} sentences")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
