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
_TOKENS_AT_ONCE = 2048


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


class SubwordVectors(TokenVectors):
    """Tokens that are pieces of words, by a tokenizer that marks where a word begins."""

    @property
    @abstractmethod
    def pieces(self) -> list[str]:
        """The tokens as the tokenizer writes them, in the order of the table's rows."""

    @abstractmethod
    def located(self, text: str) -> list[tuple[int, int, int]]:
        """For every token of a text, its row and where it stands: (row, start, end)."""


def mean_rows(table: NDArray[Any], rows: Sequence[Sequence[int]]) -> Vectors:
    """The mean of some rows of a table for every list of rows; zeros for an empty list.

    Lists of one length go together, as [lists, length, dimension], which NumPy sums far faster
    than ragged segments; in pieces that stay in the processor's cache.
    """
    table = np.asarray(table)
    lengths: NDArray[np.int64] = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    starts: NDArray[np.int64] = np.cumsum(lengths) - lengths
    means = np.zeros((len(rows), table.shape[1]), dtype=np.float32)
    by_length = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths[lengths > 0]).tolist():
        first, last = np.searchsorted(lengths[by_length], [length, length + 1]).tolist()
        at_once = max(1, _TOKENS_AT_ONCE // length)
        for begin in range(first, last, at_once):
            lists = by_length[begin : min(begin + at_once, last)]
            tokens = flat[starts[lists][:, None] + np.arange(length)]
            # The rows are known to be there, and clipping is cheaper than checking.
            means[lists] = table.take(tokens, axis=0, mode="clip").mean(axis=1, dtype=np.float32)
    return means


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
