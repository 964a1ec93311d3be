"""Word and text vectors behind one interface, wherever they come from.

open_vectors("wordllama")                  # the default: inside its wheel, no download
open_vectors("wiki-news-300d.vec.gz")      # word2vec's text format
open_vectors("cc.en.300.bin")              # fastText, with subwords for unseen words
open_vectors("all-tokens:FILE")            # either file; punctuation marks count as words
open_vectors("sentence-transformers:PATH") # pooled vectors of any such model
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, Float
from dgn.errors import InvalidInput
from dgn.text.tokens import split_tokens, split_words

_TOKENS_PER_CHUNK = 2048
_MOST_REMEMBERED = 1_000_000
_ALL_TOKENS = "all-tokens:"


class PooledVectors(ABC):
    """Gives a text one vector.

    Attributes:
        dimension: The length of the vectors.
        fingerprint: Changes when the vectors change; files that were made with them record it.
    """

    dimension: int
    fingerprint: str

    @abstractmethod
    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        """[texts, dimension], float32; zeros for a text without a known word."""


class TokenVectors(PooledVectors):
    """Gives every token of a text a vector; the vector of the text is their mean."""

    @property
    @abstractmethod
    def table(self) -> NDArray[Any]:
        """[vocabulary, dimension], any float dtype; a token is a row of it."""

    @abstractmethod
    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """For every text, the rows of its known tokens, in order."""

    @final
    def pooled(self, texts: Sequence[str]) -> Float[Array, "texts dimension"]:
        rows = self.token_rows(texts)  # first, because a table may grow by the words that it meets
        return mean_rows(self.table, rows)


class SubwordVectors(TokenVectors):
    """Tokens that are pieces of words, from a tokenizer that marks where a word begins."""

    @property
    @abstractmethod
    def pieces(self) -> list[str]:
        """The tokens as the tokenizer writes them, in the order of the rows of the table."""

    @abstractmethod
    def token_spans(self, text: str) -> list[tuple[int, int, int]]:
        """For every token of a text, its row and its position: (row, start, end)."""


def mean_rows(table: NDArray[Any], rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """The mean of some rows of a table for every list of rows; zeros for an empty list.

    Lists of the same length are averaged together, as [lists, length, dimension], which NumPy sums
    far faster than ragged segments, in chunks that stay in the processor's cache.
    """
    table = np.asarray(table)
    lengths: NDArray[np.int64] = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    starts: NDArray[np.int64] = np.cumsum(lengths) - lengths
    means = np.zeros((len(rows), table.shape[1]), dtype=np.float32)
    by_length = np.argsort(lengths, kind="stable")
    for length in np.unique(lengths[lengths > 0]).tolist():
        first, last = np.searchsorted(lengths[by_length], [length, length + 1]).tolist()
        chunk = max(1, _TOKENS_PER_CHUNK // length)
        for begin in range(first, last, chunk):
            lists = by_length[begin : min(begin + chunk, last)]
            tokens = flat[starts[lists][:, None] + np.arange(length)]
            # The rows are known to exist, and clipping is cheaper than checking.
            means[lists] = table.take(tokens, axis=0, mode="clip").mean(axis=1, dtype=np.float32)
    return means


def unit_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Each row divided by its length; rows of zeros stay zeros."""
    lengths = np.linalg.norm(matrix, axis=-1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


class WordRows:
    """Looks up the rows of the words of texts, and remembers what it has seen.

    No word spans a space, so splitting at spaces first gives the words of the whole text; and the
    pieces between spaces repeat so often that almost all of them are found in the memory.

    Args:
        row_of: The row of a word, or −1 if it has none.
        split: The words of a text.
    """

    def __init__(
        self, row_of: Callable[[str], int], split: Callable[[str], list[str]] = split_words
    ) -> None:
        self._row_of, self._split = row_of, split
        self._remembered: dict[str, tuple[int, ...]] = {}

    def rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """For every text, the rows of its known words, in order."""
        remembered = self._remembered
        if len(remembered) > _MOST_REMEMBERED:
            remembered = self._remembered = {}  # other threads keep the one that they have
        rows: list[Sequence[int]] = []
        for text in texts:
            pieces = text.split()
            try:
                rows.append([row for piece in pieces for row in remembered[piece]])
            except KeyError:
                self._remember(pieces, remembered)
                rows.append([row for piece in pieces for row in remembered[piece]])
        return rows

    def _remember(self, pieces: list[str], remembered: dict[str, tuple[int, ...]]) -> None:
        for piece in pieces:
            if piece not in remembered:
                found = [self._row_of(word) for word in self._split(piece)]
                remembered[piece] = tuple(row for row in found if row >= 0)


def fingerprint_with(content: str, split: Callable[[str], list[str]]) -> str:
    """The fingerprint of vectors whose texts are split in this way."""
    return content if split is split_words else f"{_ALL_TOKENS}{content}"


def open_vectors(source: str | Path) -> PooledVectors:
    """Open vectors by name or path.

    Args:
        source: "wordllama", a .vec or .vec.gz file, a fastText .bin file, "all-tokens:" before
            either file, or "sentence-transformers:MODEL".
    """
    from dgn.text import fasttext, sentence_encoder, vec_file, wordllama

    name = str(source)
    if name == "wordllama":
        return wordllama.WordLlamaVectors()
    if name.startswith("sentence-transformers:"):
        return sentence_encoder.SentenceEncoder(name.partition(":")[2])
    split = split_tokens if name.startswith(_ALL_TOKENS) else split_words
    path = Path(name.removeprefix(_ALL_TOKENS))
    if name.endswith((".vec", ".vec.gz")):
        return vec_file.VecFile(path, split=split)
    if name.endswith(".bin"):
        return fasttext.FastTextBin(path, split)
    raise InvalidInput(
        "vectors",
        found=repr(name),
        allowed="wordllama, a .vec or .vec.gz file, a fastText .bin file, all-tokens:FILE, or "
        "sentence-transformers:MODEL",
    )
