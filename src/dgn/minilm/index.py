"""The words of many passages as MiniLM read them, with 8 bits: in memory, or mapped into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput
from dgn.minilm.reading import contextual
from dgn.text.encoder import PreparedPassages
from dgn.text.facets.index import (
    arrays_of_words,
    is_layout,
    laid_out,
    points_into,
    read_arrays,
    taken,
)
from dgn.text.facets.matching import QueryWords, TextVectors
from dgn.text.facets.reading import order_of
from dgn.text.languages import ENGLISH
from dgn.text.query import Passage, Query
from dgn.text.spelling import title_text
from dgn.text.vocabulary import WordReader

if TYPE_CHECKING:
    from dgn.minilm.encoder import MiniLMEncoder

_ARRAYS = {
    "facts": (np.float32, 2),
    "stem_of": (np.int64, 1),
    "static": (np.float32, 2),
    "rows": (np.int64, 1),
    "start": (np.int64, 1),
    "vectors": (np.int8, 2),
    "scales": (np.float32, 1),
    "wholes": (np.float32, 2),
    "title": (np.int64, 1),
    "title_rows": (np.int64, 1),
    "title_start": (np.int64, 1),
    "title_vectors": (np.int8, 2),
    "title_scales": (np.float32, 1),
    "position": (np.float32, 1),
    "is_ordered": (np.bool_, 1),
    "follows": (np.bool_, 1),
}
_LARGEST = 127
_TEXTS_AT_ONCE = 512
_WORDS_AT_ONCE = 4096


@final
class IndexedVectors(PreparedPassages):
    """Passages and titles that MiniLM has read.

    Args:
        encoder: The encoder.
        reader: Knows all words of the passages, read as English.
        arrays: `rows` and `start`: the words of the passages, and where each one begins; `vectors`
            and `scales`: a vector for each of these words, and what 1 of it is worth; `wholes`: a
            vector for each passage; the same for titles, without wholes, and `title`: which of them
            each passage has; `position`, `is_ordered` and `follows` as in `QueryWords`.
    """

    def __init__(
        self, encoder: MiniLMEncoder, reader: WordReader, arrays: dict[str, NDArray[Any]]
    ) -> None:
        self._encoder, self._reader, self._arrays = encoder, reader, arrays

    @classmethod
    def of(cls, encoder: MiniLMEncoder, passages: Sequence[Passage]) -> IndexedVectors:
        """Read passages."""
        reader = WordReader(encoder.reader.vectors, encoder.reader.idf)
        titles = {title: n for n, title in enumerate(dict.fromkeys(p.title for p in passages))}
        texts, names = [passage.text for passage in passages], [*map(title_text, titles)]
        rows, start = laid_out(reader.read(texts, forgets=False)[0])
        title_rows, title_start = laid_out(reader.read(names, forgets=False)[0])
        vectors, scales, wholes = _read_texts(encoder, texts)
        title_vectors, title_scales, _ = _read_texts(encoder, names)
        position, is_ordered, follows = order_of(passages)
        arrays = {
            "rows": rows,
            "start": start,
            "vectors": vectors,
            "scales": scales,
            "wholes": wholes,
            "title": np.array([titles[passage.title] for passage in passages], np.int64),
            "title_rows": title_rows,
            "title_start": title_start,
            "title_vectors": title_vectors,
            "title_scales": title_scales,
            "position": position,
            "is_ordered": is_ordered,
            "follows": follows,
        }
        return cls(encoder, reader.with_words_met(), arrays)

    def encode(self, query: Query, indices: NDArray[np.int64]) -> tuple[SetFunction, Items]:
        if query.read_language != ENGLISH:
            return self._encoder.encode([query])
        arrays = self._arrays
        (asked,) = self._encoder.embed([[query.text]])
        (own,), table = self._reader.read([query.text])
        if not own:
            raise InvalidInput("query", found=repr(query.text), allowed="a text with a word in it")
        title, numbers = np.unique(arrays["title"][indices], return_inverse=True)
        texts = taken(arrays["rows"], arrays["start"], indices)
        titles = taken(arrays["title_rows"], arrays["title_start"], title)
        start = np.zeros(len(indices) + len(title) + 2, np.int64)
        np.cumsum([len(own), *texts[1].tolist(), *titles[1].tolist()], out=start[1:])
        # A passage follows the one before it only where both are asked for.
        is_next = np.zeros(len(indices), np.bool_)
        is_next[1:] = indices[1:] == indices[:-1] + 1
        words = QueryWords(
            np.concatenate([np.array(own, np.int64), texts[0], titles[0]]),
            start,
            numbers.astype(np.int64),
            np.ascontiguousarray(arrays["position"][indices]),
            np.ascontiguousarray(arrays["is_ordered"][indices]),
            arrays["follows"][indices] & is_next,
        )
        cosines = np.concatenate(
            [
                _cosines(
                    asked.words, arrays["vectors"], arrays["scales"], arrays["start"], indices
                ),
                _cosines(
                    asked.words,
                    arrays["title_vectors"],
                    arrays["title_scales"],
                    arrays["title_start"],
                    title,
                ),
            ]
        )
        wholes = np.concatenate([asked.wholes, arrays["wholes"][indices]])
        self._encoder.keep([query], [wholes])
        vectors = TextVectors(asked.words, wholes, cosines)
        return self._encoder.encode_matches([contextual(words, table, vectors)])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**arrays_of_words(self._reader, "static"), **self._arrays}

    @classmethod
    def load(cls, encoder: MiniLMEncoder, arrays: Mapping[str, NDArray[Any]]) -> IndexedVectors:
        """From what `arrays` returned.

        Raises:
            InvalidInput: The arrays do not fit together.
        """
        static = encoder.reader
        return cls(
            encoder,
            *read_arrays(arrays, _ARRAYS, _fits, "static", static.vectors, static.idf),
        )


def _read_texts(
    encoder: MiniLMEncoder, texts: Sequence[str]
) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float32]]:
    """The vectors of all words with 8 bits, their scales, and the vectors of the texts."""
    vectors: list[NDArray[np.int8]] = []
    scales: list[NDArray[np.float32]] = []
    wholes: list[NDArray[np.float32]] = []
    for first in range(0, len(texts), _TEXTS_AT_ONCE):
        (found,) = encoder.embed([texts[first : first + _TEXTS_AT_ONCE]])
        scale = np.abs(found.words).max(axis=1, initial=0) / np.float32(_LARGEST)
        scale[scale == 0] = 1
        vectors.append(np.rint(found.words / scale[:, None]).astype(np.int8))
        scales.append(scale.astype(np.float32))
        wholes.append(found.wholes)
    return np.concatenate(vectors), np.concatenate(scales), np.concatenate(wholes)


def _cosines(
    asked: NDArray[np.float32],
    vectors: NDArray[np.int8],
    scales: NDArray[np.float32],
    start: NDArray[np.int64],
    indices: NDArray[np.int64],
) -> NDArray[np.float32]:
    """[words of these texts, words of the query]; some words at a time, in little memory."""
    parts = [np.zeros((0, len(asked)), np.float32)]
    for rows in _runs(start, indices):
        for first in range(rows.start, rows.stop, _WORDS_AT_ONCE):
            some = slice(first, min(first + _WORDS_AT_ONCE, rows.stop))
            products = vectors[some].astype(np.float32) @ asked.T
            parts.append(products * scales[some, None])
    return np.concatenate(parts)


def _runs(start: NDArray[np.int64], indices: NDArray[np.int64]) -> Iterator[slice]:
    """The words of some texts; texts that follow each other are one run."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    for run in np.split(indices, breaks):
        if len(run):
            yield slice(int(start[run[0]]), int(start[run[-1] + 1]))


def _fits(arrays: dict[str, NDArray[Any]], words: int, stems: int, dimension: int) -> bool:
    """Whether every number that points into an array points inside it."""
    passages, titles = len(arrays["start"]) - 1, len(arrays["title_start"]) - 1
    room, width = len(arrays["stem_of"]), arrays["wholes"].shape[1]
    by_passage = ("title", "position", "is_ordered", "follows", "wholes")
    return (
        arrays["static"].shape == (room, dimension)
        and arrays["facts"].shape == (room, 5)
        and room >= words
        and width == arrays["vectors"].shape[1] == arrays["title_vectors"].shape[1]
        and all(len(arrays[name]) == passages for name in by_passage)
        and all(
            len(arrays[f"{kind}rows"])
            == len(arrays[f"{kind}vectors"])
            == len(arrays[f"{kind}scales"])
            for kind in ("", "title_")
        )
        and points_into(arrays["stem_of"][:words], stems)
        and points_into(arrays["title"], titles)
        and points_into(arrays["rows"], words)
        and points_into(arrays["title_rows"], words)
        and is_layout(arrays["start"], len(arrays["rows"]))
        and is_layout(arrays["title_start"], len(arrays["title_rows"]))
        and all(bool(np.isfinite(arrays[name]).all()) for name in ("facts", "scales", "wholes"))
    )
