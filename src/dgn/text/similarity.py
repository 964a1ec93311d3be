"""How similar are passages to each other? What they say, compared by words and by vectors.

contents = contents_of(reader, query, np.arange(len(query.passages)))
contents.similarities()             # [passages, passages], from 0 to 1

Similarity does not know "not": the vectors of "may disclose" and "may not disclose" are nearly the
same. Of two texts that differ in a number, a negation or an opposite, at most half of the
similarity counts. The constants were chosen on training parts: experiments/aspects.py.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core import native
from dgn.core.native.facets import similarities
from dgn.errors import InvalidInput
from dgn.parallel import single_threaded_blas
from dgn.text.languages import ENGLISH
from dgn.text.query import Query
from dgn.text.vectors import token_idf, unit_rows
from dgn.text.vocabulary import (
    DENIED,
    FIRST,
    NEGATES,
    NUMBER,
    SECOND,
    WordReader,
    WordTable,
)

_COPY_FROM, _COPY_TO = 0.6, 0.8
"""From the first likeness on, a text may be a copy of another one; from the second on, it is."""

_FUNCTION_SHARE = 0.2
"""How much of its IDF a function word counts in the likeness of two texts."""

MOST_COMPARED = 2048
"""Of more texts, words are not compared, and similarity is that of vectors alone."""

_BLOCK, _MANY = 512, 1 << 14


@final
@dataclass(frozen=True, eq=False)
class Contents:
    """What some texts say, by their words: the query (or nothing), passages, and given texts.

    Attributes:
        rows: The words of all texts, end to end, as rows of the table.
        start: [texts + 1], where each text begins.
        table: What is known about the words.
        has_query: Whether the first text is a query.
        given: How many of the last texts are given ones.
        vectors: [texts, width], vectors of a model or of the caller, of length 1 or 0; texts with 0
            are compared by their words. None if there are none.
    """

    rows: NDArray[np.int64]
    start: NDArray[np.int64]
    table: WordTable
    has_query: bool
    given: int = 0
    vectors: NDArray[np.float32] | None = None

    def similarities(self) -> NDArray[np.float32]:
        """[passages, passages + given], how much of a passage another text says, from 0 to 1."""
        first, texts = int(self.has_query), len(self.start) - 1
        if self.vectors is None and native.is_available() and texts <= MOST_COMPARED:
            constants = (_FUNCTION_SHARE, _COPY_FROM, _COPY_TO)
            table, signs = self.table.arrays, self.table.signs
            return similarities(table, self.rows, self.start, signs, first, self.given, constants)
        with nullcontext() if texts > MOST_COMPARED else single_threaded_blas():
            return self._compared(first, texts)

    def _compared(self, first: int, texts: int) -> NDArray[np.float32]:
        """The plain form, in blocks; words are compared as well if there are not too many texts."""
        words = _centred(self._words, self.given)[first:]
        vectors = None if self.vectors is None else _centred(self.vectors, self.given)[first:]
        has_vector: NDArray[np.bool_] = np.any(words if vectors is None else vectors, axis=1)
        count = texts - first - self.given
        similar = np.empty((count, texts - first), np.float32)
        differ = self._contradictions()[first:, first:] if texts <= MOST_COMPARED else None
        for begin in range(0, count, _BLOCK):
            block = slice(begin, min(begin + _BLOCK, count))
            part = similar[block]
            if vectors is None:
                np.matmul(words[block], words.T, out=part)
            else:
                np.matmul(vectors[block], vectors.T, out=part)
                if not has_vector.all():
                    both = has_vector[block, None] & has_vector[None, :]
                    part[~both] = (words[block] @ words.T)[~both]
            np.maximum(part, 0, out=part)
            np.square(part, out=part)
            if differ is None:
                continue
            share = np.where(differ[block], np.float32(0.5), np.float32(1))
            copied = _ramp(share * self._likeness[first:, first:][block])
            np.maximum(share * part, copied, out=part)
        np.minimum(similar, 1, out=similar)
        np.fill_diagonal(similar, 1)
        return similar

    def copies_of_given(self) -> NDArray[np.float32]:
        """[passages], how far each passage is a copy of one of the given texts, from 0 to 1."""
        if len(self.start) - 1 > MOST_COMPARED:
            raise InvalidInput(
                "given", message=f"Given texts are compared with at most {MOST_COMPARED} passages."
            )
        first, last = int(self.has_query), len(self.start) - 1 - self.given
        share = np.where(self._contradictions()[last:, first:last], 0.5, 1.0)
        with single_threaded_blas():
            copied = _ramp(share * self._likeness[last:, first:last])
        return copied.max(axis=0, initial=0.0).astype(np.float32)

    @cached_property
    def _text(self) -> NDArray[np.int64]:
        """The text of each word."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @cached_property
    def _words(self) -> NDArray[np.float32]:
        """[texts, dimension], the mean of the words of each text, rare ones counting more."""
        met, places = np.unique(self.rows, return_inverse=True)
        counts = np.zeros((len(self.start) - 1, len(met)), np.float32)
        np.add.at(counts, (self._text, places), self.table.facts[self.rows, 0])
        return np.asarray(unit_rows(counts @ self.table.vectors[met]), np.float32)

    @cached_property
    def _likeness(self) -> NDArray[np.float32]:
        """[texts, texts], how like two texts are by their words: by vectors and by stems."""
        facts = self.table.facts[self.rows]
        weights = facts[:, 0] * np.where(facts[:, 3] > 0, np.float32(_FUNCTION_SHARE), 1)
        stems, columns = np.unique(self.table.stem[self.rows], return_inverse=True)
        terms = np.zeros((len(self.start) - 1, max(1, len(stems))), np.float32)
        np.maximum.at(terms, (self._text, columns), weights)
        terms = np.asarray(unit_rows(terms), np.float32)
        like: NDArray[np.float32] = np.maximum(self._words @ self._words.T, 0)
        like += terms @ terms.T
        like *= np.float32(0.5)
        return like

    def _contradictions(self) -> NDArray[np.bool_]:
        """[texts, texts], whether two texts differ in a number, a negation or an opposite.

        Without a query, numbers set nothing apart: every line of a log has some.
        """
        texts = len(self.start) - 1
        signs = self.table.signs[self.rows]
        places = np.flatnonzero(signs.any(axis=1))
        signs, text = signs[places], self._text[places]
        first, second = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        np.bitwise_or.at(first, text, signs[:, FIRST])
        np.bitwise_or.at(second, text, signs[:, SECOND])
        # A text that has both sides takes none.
        first, second = first & ~second, second & ~first
        differ = ((first[:, None] & second) | (second[:, None] & first)) != 0
        negates = np.zeros(texts, np.bool_)
        negates[text[signs[:, NEGATES] > 0]] = True
        denies = signs[:, DENIED] > 0
        if denies.any():
            negates[text[denies][np.isin(signs[denies, DENIED] - 1, self.rows)]] = True
        differ |= negates[:, None] != negates
        has_number = (signs[:, NUMBER] > 0) & self.has_query
        if has_number.any():
            numbers, columns = np.unique(signs[has_number, NUMBER], return_inverse=True)
            has = np.zeros((texts, len(numbers)), np.float32)
            has[text[has_number], columns] = 1
            # Threads that wait for each other would take longer than a small product.
            shared = has @ has.T if has.size > _MANY else np.einsum("ik,jk->ij", has, has)
            counts = has.sum(axis=1)
            # Each of them has a number that the other one lacks.
            differ |= (counts[:, None] > shared) & (counts > shared)
        np.fill_diagonal(differ, False)
        return differ


def contents_of(reader: WordReader, query: Query, indices: NDArray[np.int64]) -> Contents:
    """What a query and some of its passages say, and texts that are given.

    Args:
        reader: Reads the words.
        query: The query, which may have no text.
        indices: The passages.
    """
    if not query.given and (read := reader.kept(query)) is not None:
        words, table = read
        return _of_words(words.rows, words.start, table, indices)
    texts = [query.text] if query.text else []
    texts += [query.passages[index].text for index in indices.tolist()]
    texts += [passage.text for passage in query.given]
    code = query.read_language
    languages = None if code == ENGLISH else [code] * len(texts)
    rows, table = reader.read(texts, languages, forgets=False)
    start = np.array([0, *itertools.accumulate(map(len, rows))], np.int64)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(start[-1]))
    return Contents(flat, start, table, bool(query.text), len(query.given))


def _of_words(
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    table: WordTable,
    indices: NDArray[np.int64],
) -> Contents:
    """What a query and some of its passages say, from the words of all of them."""
    count = len(indices)
    if count and indices[-1] == count - 1:  # the first ones, which are together
        return Contents(rows[: start[count + 1]], start[: count + 2], table, True)
    parts = [rows[start[text] : start[text + 1]] for text in (0, *(indices + 1).tolist())]
    ends = np.array([0, *itertools.accumulate(map(len, parts))], np.int64)
    return Contents(np.concatenate(parts), ends, table, True)


@cache
def default_reader() -> WordReader:
    """The reader of words that explanations share."""
    from dgn.text.facets.encoder import default_vectors

    return WordReader(default_vectors(), token_idf())


def _centred(vectors: NDArray[np.float32], given: int) -> NDArray[np.float32]:
    """The vectors without what all texts have in common, which says nothing about any of them."""
    filled: NDArray[np.bool_] = np.any(vectors, axis=1)
    counted = vectors[: len(vectors) - given][filled[: len(vectors) - given]]
    mean = counted.mean(axis=0) if len(counted) else np.zeros(vectors.shape[1], np.float32)
    centred: NDArray[np.float32] = np.asarray(unit_rows(vectors - mean), np.float32)
    centred[~filled] = 0
    return centred


def _ramp(likeness: Any) -> NDArray[np.float32]:
    return np.clip((likeness - _COPY_FROM) / (_COPY_TO - _COPY_FROM), 0, 1).astype(np.float32)
