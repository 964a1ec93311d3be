"""Token-level features: for each token of a claim, its best match in each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.arrays import Array, Float
from dgn.text.vectors import TokenVectors


def best_matches(
    vectors: TokenVectors, claim: str, sentences: Sequence[str]
) -> Float[Array, "sentences tokens"]:
    """[sentences, claim tokens], the cosine of the nearest token of the sentence.

    0 where a token of the claim has no vector, or a sentence has no token that does.
    """
    claim_rows = [row for _, row in vectors.tokens(claim)]
    by_sentence = vectors.token_rows(sentences)
    matches = np.zeros((len(sentences), len(claim_rows)), dtype=np.float32)
    lengths = np.array([len(rows) for rows in by_sentence])
    known = [number for number, row in enumerate(claim_rows) if row >= 0]
    filled = np.flatnonzero(lengths)
    if not known or not len(filled):
        return matches
    flat = [row for rows in by_sentence for row in rows]
    ours = unit_rows(vectors.vectors_of([claim_rows[number] for number in known]))
    theirs = unit_rows(vectors.vectors_of(flat))
    starts = (np.cumsum(lengths) - lengths)[filled]
    best = np.maximum.reduceat(theirs @ ours.T, starts, axis=0)
    matches[filled[:, None], np.array(known)] = best
    return matches


def unit_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Each row divided by its length; rows of zeros stay zeros."""
    lengths = np.linalg.norm(matrix, axis=-1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)
