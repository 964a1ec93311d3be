"""What the passages of a query offer, by the compiled kernel: the formula of the facets.

The formula itself, and its plain form, are in `dgn.text.facets`; here it is arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core.native import structures
from dgn.core.native.library import address_of, highest_isa, library
from dgn.parallel import available_cores, run_in_parts

_MANY_WORDS = 4096
_QUERIES_PER_THREAD = 16


def describe_words(
    vectors: NDArray[np.float32],
    idf: NDArray[np.float32],
    tokens: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The vectors and the IDF of words that consist of tokens.

    Args:
        vectors: [vocabulary, dimension], the vectors of all tokens.
        idf: [vocabulary], their IDF.
        tokens: The tokens of all words, end to end, as rows of `vectors`.
        counts: [words], how many tokens each word has.
    """
    dimension = vectors.shape[1]
    found = np.empty((len(counts), dimension), np.float32)
    rarity = np.empty(len(counts), np.float32)
    known = structures.Tokens(address_of(vectors), address_of(idf), dimension)
    library().dgn_describe(
        highest_isa(),
        ctypes.byref(known),
        *map(ctypes.c_void_p, map(address_of, (tokens, counts))),
        ctypes.c_int64(len(counts)),
        *map(ctypes.c_void_p, map(address_of, (found, rarity))),
    )
    return found, rarity


def similarities(
    words: tuple[NDArray[Any], ...],
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    signs: NDArray[np.int64],
    first: int,
    given: int,
    constants: tuple[float, float, float],
) -> NDArray[np.float32]:
    """How similar texts are to each other; the plain form is in `dgn.text.similarity`.

    Args:
        words: The arrays of a `WordTable`: vectors, facts and stems.
        rows: The words of all texts, end to end.
        start: [texts + 1], where each text begins.
        signs: [words, 5], what each word may contradict another text with.
        first: 1 if the first text is a query, which is compared with nothing.
        given: How many of the last texts are columns alone.
        constants: The share of function words, and where copies begin and end.
    """
    texts, dimension = len(start) - 1, words[0].shape[1]
    similar = np.empty((texts - first - given, texts - first), np.float32)
    work = np.empty(texts * (dimension + 4) + dimension, np.float32)
    terms = np.empty(2 * len(rows) + 4 * texts, np.int64)
    known = structures.Words(*map(address_of, words), dimension)
    arrays = (rows, start, signs, work, terms, similar)
    given_texts = structures.Similarity(
        *map(address_of, arrays), texts, first, given, *constants, 0.0
    )
    library().dgn_similar(highest_isa(), ctypes.byref(known), ctypes.byref(given_texts))
    return similar


class FacetKernel:
    """The formula with its weights.

    Args:
        arrays: `word_weight`, `projection`, `hidden`, `hidden_bias` and `output`.
        numbers: The other numbers of the formula, by their names in facets.h.
        several: Those that are several.
    """

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        numbers: dict[str, float],
        several: dict[str, tuple[float, ...]],
    ) -> None:
        self._given = (arrays, numbers, several)
        # The kernel has their addresses: they must live as long as it does.
        self._arrays = {
            name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()
        }
        self._projected = self._arrays["projection"].shape[1]
        self._units = len(self._arrays["hidden_bias"])
        addresses = {name: array.ctypes.data for name, array in self._arrays.items()}
        arrays_of_numbers = {
            name: (ctypes.c_float * len(values))(*values) for name, values in several.items()
        }
        self._has_relevance = numbers["relevance"] >= 0
        self._weights = structures.FacetWeights(
            **addresses,
            projected=self._projected,
            units=self._units,
            **numbers,
            **arrays_of_numbers,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Addresses mean nothing in another process: a copy is made from what was given."""
        return FacetKernel, self._given

    def compute(
        self, words: tuple[NDArray[Any], ...], queries: Sequence[tuple[NDArray[Any], ...]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """The features of the passages of every query, the weights, the targets, and the mask.

        What stands for a passage as a whole follows the words of its query directly, and zeros
        fill up the row: sums over a row are then the same in every batch, bit for bit.

        Args:
            words: The arrays of a `WordTable`: vectors, facts and stems.
            queries: The arrays of `QueryWords`, for each query.
        """
        tokens = max(int(start[1]) for _, start, *_ in queries)
        items = max(len(title) for _, _, title, *_ in queries)
        width = tokens + 1 + self._has_relevance
        features = np.zeros((len(queries), items, width), np.float32)
        weights, target = (np.zeros((len(queries), width), np.float32) for _ in range(2))
        mask = np.zeros((len(queries), items), np.bool_)
        dimension = words[0].shape[1]
        known = structures.Words(*map(address_of, words), dimension)
        at_features, at_weights, at_target = map(address_of, (features, weights, target))
        isa, run = highest_isa(), library()
        asked = (structures.Query * len(queries))()
        results = (structures.FacetResult * len(queries))()
        most_work = 0
        for row, query in enumerate(queries):
            rows, start, count = query[0], query[1], len(query[2])
            asked_words, titles = int(start[1]), len(start) - 2 - count
            # Counting costs more than the room, unless there are many words.
            distinct = len(rows) if len(rows) < _MANY_WORDS else len(np.unique(rows))
            size = run.dgn_facets_work(
                asked_words,
                len(rows),
                distinct,
                count,
                titles,
                dimension,
                self._projected,
                self._units,
            )
            most_work = max(most_work, size)
            asked[row] = structures.Query(*map(address_of, query), count, titles, distinct)
            results[row] = structures.FacetResult(
                at_features + 4 * row * items * width,
                at_weights + 4 * row * width,
                at_target + 4 * row * width,
                None,
                width,
                asked_words,
            )
            mask[row, :count] = True

        def compute(first: int, last: int) -> None:
            """One call for many queries: between calls, threads wait for each other."""
            work = np.empty(most_work, np.float32)
            for row in range(first, last):
                results[row].work = address_of(work)
            run.dgn_facets(
                isa,
                ctypes.byref(known),
                ctypes.byref(self._weights),
                ctypes.byref(asked, first * ctypes.sizeof(structures.Query)),
                ctypes.byref(results, first * ctypes.sizeof(structures.FacetResult)),
                ctypes.c_int64(last - first),
            )

        many = len(queries) >= 2 * _QUERIES_PER_THREAD
        threads = min(len(queries) // _QUERIES_PER_THREAD, available_cores()) if many else 1
        run_in_parts(compute, len(queries), threads)
        return features, weights, target, mask
