"""Counts the IDF of every token, and writes the file that ships with dgn.

python -m experiments.count_idf ../shared/data/fever-eraser --out FILE
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dgn.files import write_atomically
from dgn.text import TokenVectors, WordLlamaVectors
from experiments.paper.data import read_layout

_PASSAGES_PER_BATCH = 4096


def count_token_idf(
    vectors: TokenVectors, passages: Iterable[Sequence[str]]
) -> NDArray[np.float32]:
    """[tokens], log((1 + passages) / (1 + passages with the token)) + 1.

    Args:
        vectors: The vectors and their tokenizer.
        passages: The passages, in batches.
    """
    counts = np.zeros(len(vectors.table), np.int64)
    total = 0
    for batch in passages:
        for rows in vectors.token_rows(batch):
            counts[np.unique(np.asarray(rows, np.int64))] += 1
        total += len(batch)
    return (np.log((1 + total) / (1 + counts)) + 1).astype(np.float32)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count in every different passage of the claims' pages, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m experiments.count_idf", description=__doc__)
    parser.add_argument("data", type=Path, metavar="DATA", help="as for experiments.paper")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help=".npy file")
    options = parser.parse_args(arguments)
    learn = read_layout(options.data).learn
    texts = dict.fromkeys(text for example in learn for text in example.sentences)
    if not texts:
        print("count_idf: the data set has no passage", file=sys.stderr)
        return 1
    passages, size = list(texts), _PASSAGES_PER_BATCH
    batches = (passages[start : start + size] for start in range(0, len(passages), size))
    content = io.BytesIO()
    np.save(content, count_token_idf(WordLlamaVectors(), batches).astype(np.float16))
    write_atomically(options.out, content.getvalue())
    print(f"{options.out}: {len(passages):,} passages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
