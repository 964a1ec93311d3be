"""Vectors behind one small interface, wherever they come from.

open_vectors("wordllama")                  # the default: inside its wheel, nothing to fetch
open_vectors("wiki-news-300d.vec.gz")      # word2vec's text format
open_vectors("cc.en.300.bin")              # fastText, with subwords for unseen words
open_vectors("sentence-transformers:PATH") # pooled vectors of any such model
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, Float
from dgn.errors import InvalidInput

Vectors = NDArray[np.float32]
_TOKENS_AT_ONCE = 512


class PooledVectors(ABC):
    """Gives a text one vector.

    fingerprint: changes when the vectors do; caches of what was made with them know by it.
    """

    dimension: int
    fingerprint: str

    @abstractmethod
    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        """[texts, dimension], float32; zeros for a text without a known word."""


class TokenVectors(PooledVectors):
    """Gives every token of a text a vector; the text's is their mean.

    table: [vocabulary, dimension]; a token is a row of it.
    """

    @property
    @abstractmethod
    def table(self) -> NDArray[Any]:
        """[vocabulary, dimension], any float dtype."""

    @abstractmethod
    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """For every text, the rows of its known tokens, in order."""

    @abstractmethod
    def tokens(self, text: str) -> list[tuple[str, int]]:
        """The tokens of one text as written, each with its row, or −1 where none is known."""

    @final
    def vectors_of(self, rows: Sequence[int]) -> Float[Array, "tokens dimension"]:
        """[tokens, dimension], float32."""
        return np.asarray(self.table)[np.array(rows, dtype=np.int64)].astype(np.float32)

    @final
    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        rows = self.token_rows(texts)  # first: a table may grow by the words that it meets
        return mean_rows(self.table, rows)


def mean_rows(table: NDArray[Any], rows: Sequence[Sequence[int]]) -> Vectors:
    """The mean of some rows of a table for every list of rows; zeros for an empty list.

    In pieces that stay in the processor's cache: gathering all at once would write and read the
    vectors of every token through main memory.
    """
    table = np.asarray(table)
    lengths: NDArray[np.int64] = np.fromiter(map(len, rows), np.int64, len(rows))
    sums = np.zeros((len(rows), table.shape[1]), dtype=np.float32)
    filled = np.flatnonzero(lengths)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    ends: NDArray[np.int64] = np.cumsum(lengths[filled])
    starts: NDArray[np.int64] = ends - lengths[filled]
    buffer = np.empty(
        (_TOKENS_AT_ONCE + max(map(len, rows), default=0), table.shape[1]), table.dtype
    )
    first = 0
    while first < len(filled):
        begin = int(starts[first])
        last = max(first + 1, int(np.searchsorted(ends, begin + _TOKENS_AT_ONCE, side="right")))
        chosen = flat[begin : ends[last - 1]]
        # The rows are known to be there, and clipping is cheaper than checking.
        gathered = table.take(chosen, axis=0, out=buffer[: len(chosen)], mode="clip")
        sums[filled[first:last]] = np.add.reduceat(gathered, starts[first:last] - begin, axis=0)
        first = last
    return sums / np.maximum(lengths, 1)[:, None].astype(np.float32)


def open_vectors(source: str | Path) -> PooledVectors:
    """Open vectors by name or path; see the top of this file."""
    from dgn.text import fasttext, sentence_encoder, vec_file, wordllama

    name = str(source)
    if name == "wordllama":
        return wordllama.WordLlamaVectors()
    if name.startswith("sentence-transformers:"):
        return sentence_encoder.SentenceEncoder(name.partition(":")[2])
    if name.endswith((".vec", ".vec.gz")):
        return vec_file.VecFile(Path(source))
    if name.endswith(".bin"):
        return fasttext.FastTextBin(Path(source))
    raise InvalidInput(
        "vectors",
        found=repr(name),
        allowed="wordllama, a .vec or .vec.gz file, a fastText .bin, or "
        "sentence-transformers:MODEL",
    )
