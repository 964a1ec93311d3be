"""What words alone say about passages: BM25, and cosines of static vectors.

The facets know all of this, so that a caller's scores that agree with it bring nothing new.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dgn.text.encoders.base import KnownScores
from dgn.text.encoders.facets.matching import static_vectors
from dgn.text.query import Query
from dgn.text.vocabulary import WordReader

_K1, _B = 1.5, 0.75


def known_scores(reader: WordReader, query: Query) -> KnownScores:
    """BM25 of stems and of words, and the cosines of static vectors."""
    rows, table = reader.read([query.text, *query.texts], query.languages)
    texts = [np.array(own, np.int64) for own in rows]
    vectors = static_vectors(texts, table).wholes.astype(np.float64)
    flat, lengths = np.concatenate(texts[1:]), np.array([len(own) for own in texts[1:]])
    by_words = bm25(texts[0], flat, lengths)
    by_stems = bm25(table.stem[texts[0]], table.stem[flat], lengths)
    return KnownScores(np.stack([by_words, by_stems, vectors[1:] @ vectors[0]]), vectors)


def bm25(
    query: NDArray[np.int64], flat: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[passages], Okapi BM25 with Lucene's IDF, counted over these passages.

    Args:
        query: The terms of the query, as numbers.
        flat: The terms of all passages, in order.
        lengths: [passages], the number of terms of each.
    """
    terms, asked = np.unique(query, return_counts=True)
    counts = np.zeros((len(lengths), len(terms)))
    passage = np.repeat(np.arange(len(lengths)), lengths)
    place = np.searchsorted(terms, flat).clip(max=len(terms) - 1)
    is_asked = terms[place] == flat
    np.add.at(counts, (passage[is_asked], place[is_asked]), 1)
    having = (counts > 0).sum(axis=0)
    idf = np.log1p((len(lengths) - having + 0.5) / (having + 0.5))
    norm = _K1 * (1 - _B + _B * lengths / (lengths.mean() or 1.0))
    return (counts / (counts + norm[:, None])) @ (asked * idf)
