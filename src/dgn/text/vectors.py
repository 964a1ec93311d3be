"""Word and text vectors behind one interface; wordllama's come inside its wheel."""

from __future__ import annotations

import importlib.util
import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.arrays import Array, Float
from dgn.errors import DGNError
from dgn.files import sampled_fingerprint_of
from dgn.text.spelling import clean_brackets

_TOKENS_PER_CHUNK = 2048


_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
_TOKEN_IDF = Path(__file__).parent / "wordllama_idf.npy"
_WORD_MARK = "▁"
_SERIAL_TEXTS = 64
"""Up to this many texts, starting the tokenizer's threads costs more than they save."""


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
    def word_rows(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens of some words, each of which is tokenized by itself.

        Returns:
            The rows of the tokens of all words, in order, and the number of tokens of each word.
        """


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


@final
class WordLlamaVectors(SubwordVectors):
    """Subword tokens: no word is unknown."""

    def __init__(self) -> None:
        folder = _package_folder()
        import safetensors.numpy
        from tokenizers import Tokenizer

        weights: Any = safetensors.numpy.load_file(folder / _WEIGHTS)
        self._table: NDArray[Any] = weights["embedding.weight"].astype(np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._model: Any = self._tokenizer.model
        self.dimension = self._table.shape[1]
        self.fingerprint = f"wordllama:{sampled_fingerprint_of(folder / _WEIGHTS)}"

    @property
    def table(self) -> NDArray[Any]:
        return self._table

    @property
    def pieces(self) -> list[str]:
        return self._pieces

    @cached_property
    def _pieces(self) -> list[str]:
        return [self._tokenizer.id_to_token(row) for row in range(len(self._table))]

    def word_rows(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = np.array([self._marked.get(word, -1) for word in words], np.int64)
        is_divided = rows < 0
        counts = np.ones(len(words), np.int64)
        divided = [word for word, row in zip(words, rows.tolist(), strict=True) if row < 0]
        if not divided:
            return rows, counts
        parts, counts[is_divided] = self._divided_rows(divided)
        tokens = np.empty(int(counts.sum()), np.int64)
        is_part = np.repeat(is_divided, counts)
        tokens[is_part], tokens[~is_part] = parts, rows[~is_divided]
        return tokens, counts

    def _divided_rows(self, words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # One call for all of them: no token spans a space, and every word begins with a token that
        # is marked, so that the tokens of each word are those that it has alone.
        tokens = self._model.tokenize("".join([_WORD_MARK + word for word in words]))
        rows = np.array([token.id for token in tokens], np.int64)
        return rows, np.diff(np.flatnonzero(self._begins_word[rows]), append=len(rows))

    @cached_property
    def _marked(self) -> dict[str, int]:
        """The tokens that begin a word, without the mark."""
        return {piece[1:]: row for row, piece in enumerate(self.pieces) if piece[:1] == _WORD_MARK}

    @cached_property
    def _begins_word(self) -> NDArray[np.bool_]:
        begins = np.zeros(len(self._table), np.bool_)
        begins[list(self._marked.values())] = True
        return begins

    def token_rows(self, texts: Sequence[str]) -> list[Sequence[int]]:
        cleaned = [clean_brackets(text) for text in texts]
        if len(cleaned) <= _SERIAL_TEXTS:
            encode = self._tokenizer.encode
            return [encode(text, add_special_tokens=False).ids for text in cleaned]
        return [e.ids for e in self._tokenizer.encode_batch_fast(cleaned, add_special_tokens=False)]


def _package_folder() -> Path:
    found = importlib.util.find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise DGNError(
            "The package wordllama is not installed; install it with: pip install wordllama"
        )
    return Path(found.submodule_search_locations[0])


def token_idf() -> NDArray[np.float32]:
    """[tokens], the IDF of every token of the wordllama vectors, which ships with dgn.

    It was counted in 33,927 different sentences of the Wikipedia introductions that belong to
    FEVER's training claims; `python -m experiments.count_idf` counts it again.
    """
    return np.load(_TOKEN_IDF).astype(np.float32)
