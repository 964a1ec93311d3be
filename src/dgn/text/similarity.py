"""How similar are passages to each other? What they say, compared by words and by vectors.

contents = contents_of(reader, [query, *passages], language)
contents.similarities()             # [passages, passages], from 0 to 1

Similarity does not know "not": the vectors of "may disclose" and "may not disclose" are nearly the
same. Of two texts that differ in a number, a negation or an opposite, at most half of the
similarity counts. The constants were chosen on training parts: experiments/aspects.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput
from dgn.text.vectors import token_idf, unit_rows
from dgn.text.vocabulary import WordReader, WordSigns

_COPY_FROM, _COPY_TO = 0.6, 0.8
"""From the first likeness on, a text may be a copy of another one; from the second on, it is."""

_FUNCTION_SHARE = 0.2
"""How much of its IDF a function word counts in the likeness of two texts."""

_MOST_COMPARED = 2048
"""Of more texts, words are not compared, and similarity is that of vectors alone."""

_BLOCK = 512


@final
@dataclass(frozen=True, eq=False)
class Contents:
    """What some texts say: the query (or nothing), passages, and given texts.

    Attributes:
        words: [texts, dimension], the vector of the words of each text, of length 1 or 0.
        terms: [texts, stems], how much each stem counts in each text; rows of length 1 or 0.
        signs: For each text, what may contradict another one.
        has_query: Whether the first text is a query.
        vectors: [texts, width], vectors of a model or of the caller, of length 1 or 0; texts with 0
            are compared by their words. None if there are none.
    """

    words: NDArray[np.float32]
    terms: NDArray[np.float32] | None
    signs: tuple[tuple[WordSigns, ...], ...]
    has_query: bool = True
    vectors: NDArray[np.float32] | None = None

    def similarities(self, given: int = 0) -> NDArray[np.float32]:
        """[passages, passages + given], how much of a passage another one says, from 0 to 1.

        Args:
            given: How many of the last texts are given ones; they are columns alone.
        """
        first = int(self.has_query)
        texts = len(self.words) - first
        count = texts - given
        words = _centred(self.words, given)[first:]
        vectors = None if self.vectors is None else _centred(self.vectors, given)[first:]
        has_vector: NDArray[np.bool_] = np.any(words if vectors is None else vectors, axis=1)
        similar = np.empty((count, texts), np.float32)
        terms = None if self.terms is None else self.terms[first:]
        contradicts = None if terms is None else self._contradictions()
        for start in range(0, count, _BLOCK):
            block = slice(start, min(start + _BLOCK, count))
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
            if contradicts is None or terms is None:
                continue
            share = np.where(contradicts[block], np.float32(0.5), np.float32(1))
            copied = _ramp(share * _likeness(self.words[first:], terms, block))
            np.maximum(share * part, copied, out=part)
        np.minimum(similar, 1, out=similar)
        np.fill_diagonal(similar, 1)
        return similar

    def copies_of(self, given: int) -> NDArray[np.float32]:
        """[passages], how far each passage is a copy of one of the last `given` texts, 0 to 1."""
        first = int(self.has_query)
        count = len(self.words) - first - given
        if self.terms is None:
            raise InvalidInput(
                "given",
                message=f"Given texts are compared with at most {_MOST_COMPARED} passages.",
            )
        block = slice(count, count + given)
        share = np.where(self._contradictions()[block, :count], 0.5, 1.0)
        like = _likeness(self.words[first:], self.terms[first:], block)
        copied = _ramp(share * like[:, :count])
        return copied.max(axis=0, initial=0.0).astype(np.float32)

    def _contradictions(self) -> NDArray[np.bool_]:
        """[texts, texts] without the query: whether two texts differ in a number or a negation."""
        signs = self.signs[int(self.has_query) :]
        texts = len(signs)
        negates = np.array([any(sign.negates for sign in of_text) for of_text in signs], np.bool_)
        differ = negates[:, None] != negates[None, :]
        numbers = [{sign.number for sign in of_text if sign.number} for of_text in signs]
        every = sorted({value for of_text in numbers for value in of_text})
        values = {value: column for column, value in enumerate(every)}
        if values:
            has = np.zeros((texts, len(values)), np.float32)
            for row, of_text in enumerate(numbers):
                has[row, [values[value] for value in of_text]] = 1
            shared, counts = has @ has.T, has.sum(axis=1)
            # Each of them has a number that the other one lacks.
            differ |= (counts[:, None] > shared) & (counts[None, :] > shared)
        sides: dict[int, dict[int, set[int]]] = {}
        for row, of_text in enumerate(signs):
            for sign in of_text:
                for pair, side in sign.sides:
                    sides.setdefault(pair, {}).setdefault(side, set()).add(row)
        for by_side in sides.values():
            if len(by_side) < 2:
                continue
            on = np.zeros((texts, len(by_side)), np.float32)
            for column, members in enumerate(by_side.values()):
                on[list(members), column] = 1
            on[on.sum(axis=1) != 1] = 0  # a text that has both sides takes none
            is_taken = on.sum(axis=1) > 0
            differ |= is_taken[:, None] & is_taken[None, :] & (on @ on.T == 0)
        np.fill_diagonal(differ, False)
        return differ


def contents_of(
    reader: WordReader, texts: Sequence[str], language: str, *, has_query: bool = True
) -> Contents:
    """What some texts say, by their words.

    Args:
        reader: Reads the words.
        texts: The query, if there is one; the passages; given texts.
        language: The language in which they are read.
        has_query: Whether the first text is a query.
    """
    rows, table = reader.read(texts, [language] * len(texts), forgets=False)
    lengths = np.array([len(row) for row in rows])
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    text = np.repeat(np.arange(len(rows)), lengths)
    vectors = np.zeros((len(rows), table.vectors.shape[1]), np.float32)
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]
    if len(flat):
        weighted = table.vectors[flat] * table.facts[flat, 0][:, None]
        vectors[filled] = np.add.reduceat(weighted, starts, axis=0)
    words = unit_rows(vectors).astype(np.float32)
    met = set(flat.tolist())
    contradicting = {
        row: table.signs[row]._replace(
            negates=table.signs[row].negates or table.signs[row].denied in met
        )
        for row in met & table.signs.keys()
    }
    signs = tuple(
        tuple(contradicting[row] for row in contradicting.keys() & set(of_text)) for of_text in rows
    )
    terms = None
    if len(rows) <= _MOST_COMPARED:
        share = np.where(table.facts[flat, 3] > 0, _FUNCTION_SHARE, 1.0)
        stems, columns = np.unique(table.stem[flat], return_inverse=True)
        terms = np.zeros((len(rows), max(1, len(stems))), np.float32)
        np.maximum.at(terms, (text, columns), (table.facts[flat, 0] * share).astype(np.float32))
        terms = unit_rows(terms).astype(np.float32)
    return Contents(words, terms, signs, has_query)


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


def _likeness(
    words: NDArray[np.float32], terms: NDArray[np.float32], block: slice
) -> NDArray[np.float32]:
    """[block, texts], how like two texts are by their words: by their vectors and their stems."""
    like: NDArray[np.float32] = np.maximum(words[block] @ words.T, 0)
    like += terms[block] @ terms.T
    like *= np.float32(0.5)
    return like


def _ramp(likeness: Any) -> NDArray[np.float32]:
    return np.clip((likeness - _COPY_FROM) / (_COPY_TO - _COPY_FROM), 0, 1).astype(np.float32)
