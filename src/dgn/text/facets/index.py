"""The words of many passages, read once: in memory, or in a file that is mapped into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from numpy.typing import NDArray

from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput
from dgn.text.detection import query_language
from dgn.text.encoder import PreparedPassages
from dgn.text.facets.matching import QueryWords
from dgn.text.facets.reading import order_of, tables_of_queries
from dgn.text.languages import ENGLISH, LANGUAGE_CODES
from dgn.text.query import Passage, Query
from dgn.text.spelling import title_text
from dgn.text.vectors import SubwordVectors
from dgn.text.vocabulary import WordReader, WordTable

if TYPE_CHECKING:
    from dgn.text.facets.encoder import Formulas

_ARRAYS = {
    "vectors": (np.float32, 2),
    "facts": (np.float32, 2),
    "stem_of": (np.int64, 1),
    "rows": (np.int64, 1),
    "start": (np.int64, 1),
    "title": (np.int64, 1),
    "title_rows": (np.int64, 1),
    "title_start": (np.int64, 1),
    "position": (np.float32, 1),
    "is_ordered": (np.bool_, 1),
    "follows": (np.bool_, 1),
    "language": (np.int64, 1),
}


@final
class IndexedWords(PreparedPassages):
    """The words of passages and titles, as rows of the words that a reader knows from the start.

    Args:
        reader: The reader, which knows all words of the passages.
        formulas: The formulas.
        arrays: `rows` and `start`: the words of the passages, and where each one begins; `title`,
            `title_rows` and `title_start`: the number of each passage's title, and the words of
            the titles; `position`, `is_ordered` and `follows` as in `QueryWords`; `language`: the
            number of the language in which all of them were read.
    """

    def __init__(
        self, reader: WordReader, formulas: Formulas, arrays: dict[str, NDArray[Any]]
    ) -> None:
        self._reader, self._formulas, self._arrays = reader, formulas, arrays
        self.language = LANGUAGE_CODES[int(arrays["language"][0])]

    @classmethod
    def of(
        cls,
        vectors: SubwordVectors,
        idf: NDArray[np.float32],
        formulas: Formulas,
        passages: Sequence[Passage],
    ) -> IndexedWords:
        """Read passages."""
        reader = WordReader(vectors, idf)
        titles = {title: n for n, title in enumerate(dict.fromkeys(p.title for p in passages))}
        texts, names = [passage.text for passage in passages], [*map(title_text, titles)]
        code = query_language(texts)
        rows, _ = reader.read(texts, [code] * len(texts), forgets=False)
        named, _ = reader.read(names, [code] * len(names), forgets=False)
        position, is_ordered, follows = order_of(passages)
        arrays = {
            **dict(zip(("rows", "start"), laid_out(rows), strict=True)),
            "title": np.array([titles[passage.title] for passage in passages], np.int64),
            **dict(zip(("title_rows", "title_start"), laid_out(named), strict=True)),
            "position": position,
            "is_ordered": is_ordered,
            "follows": follows,
            "language": np.array([LANGUAGE_CODES.index(code)], np.int64),
        }
        return cls(reader.with_words_met(), formulas, arrays)

    def encode(self, query: Query, indices: NDArray[np.int64]) -> tuple[SetFunction, Items]:
        words, table = self._words(query, indices)
        if self.language != ENGLISH:
            (words,), table = tables_of_queries([words], table, [self.language])
        return self._formulas.encode([words], table, [self.language])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**arrays_of_words(self._reader, "vectors"), **self._arrays}

    @classmethod
    def load(
        cls,
        vectors: SubwordVectors,
        idf: NDArray[np.float32],
        formulas: Formulas,
        arrays: Mapping[str, NDArray[Any]],
    ) -> IndexedWords:
        """From what `arrays` returned.

        Raises:
            InvalidInput: The arrays do not fit together.
        """
        read = read_arrays(arrays, _ARRAYS, _fits, "vectors", vectors, idf)
        return cls(read[0], formulas, read[1])

    def _words(self, query: Query, indices: NDArray[np.int64]) -> tuple[QueryWords, WordTable]:
        """The words of a query and of the passages at `indices`, and what is known about them."""
        arrays = self._arrays
        title, numbers = np.unique(arrays["title"][indices], return_inverse=True)
        texts = taken(arrays["rows"], arrays["start"], indices)
        titles = taken(arrays["title_rows"], arrays["title_start"], title)
        (asked,), table = self._reader.read([query.text], [self.language])
        if not asked:
            raise InvalidInput("query", found=repr(query.text), allowed="a text with a word in it")
        start = np.zeros(len(indices) + len(title) + 2, np.int64)
        np.cumsum([len(asked), *texts[1].tolist(), *titles[1].tolist()], out=start[1:])
        # A passage follows the one before it only where both are asked for.
        is_next = np.zeros(len(indices), np.bool_)
        is_next[1:] = indices[1:] == indices[:-1] + 1
        words = QueryWords(
            np.concatenate([np.array(asked, np.int64), texts[0], titles[0]]),
            start,
            numbers.astype(np.int64),
            np.ascontiguousarray(arrays["position"][indices]),
            np.ascontiguousarray(arrays["is_ordered"][indices]),
            arrays["follows"][indices] & is_next,
        )
        return words, table


def arrays_of_words(reader: WordReader, vectors: str) -> dict[str, NDArray[Any]]:
    """The words that a reader has met; `vectors` is the name of the array of their vectors."""
    table = reader.table
    assert table is not None  # noqa: S101
    names = json.dumps({"words": reader.words, "stems": reader.stems})
    return {
        "words": np.frombuffer(names.encode(), np.uint8),
        vectors: table.vectors,
        "facts": table.facts,
        "stem_of": table.stem,
    }


def read_arrays(
    arrays: Mapping[str, NDArray[Any]],
    expected: Mapping[str, tuple[Any, int]],
    fits: Callable[[dict[str, NDArray[Any]], int, int, int], bool],
    vectors: str,
    static: SubwordVectors,
    idf: NDArray[np.float32],
) -> tuple[WordReader, dict[str, NDArray[Any]]]:
    """A reader that has met the words of an index, and the other arrays of the index.

    Args:
        arrays: What an index has saved.
        expected: The type and the number of axes of each array but that of the words' names.
        fits: Whether the arrays fit together, given the number of words, that of stems, and the
            dimension of a vector.
        vectors: The name of the array of the words' vectors.
        static: The vectors of words that the reader meets later.
        idf: The IDF of every token.

    Raises:
        InvalidInput: The arrays do not fit together.
    """
    kept = {name: arrays.get(name) for name in ("words", *expected)}
    wrong = [
        name
        for name, array in kept.items()
        if array is None or (array.dtype, array.ndim) != expected.get(name, (np.uint8, 1))
    ]
    try:
        if wrong:
            raise ValueError(f"{wrong[0]} is missing")
        names = json.loads(bytes(cast("Any", kept.pop("words"))))
        words, stems = tuple(map(str, names["words"])), tuple(map(str, names["stems"]))
        checked = cast("dict[str, NDArray[Any]]", kept)
        if not fits(checked, len(words), len(stems), static.dimension):
            raise ValueError("an array points outside another one")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(
            "arrays", message=f"the arrays do not fit together ({error}); make it again."
        ) from None
    parts = (checked.pop(name) for name in (vectors, "facts", "stem_of"))
    table = WordTable(*cast("Any", parts))
    plain = {name: np.asarray(array) for name, array in checked.items()}
    return WordReader(static, idf, words, stems, table), plain


def laid_out(texts: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    start = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=start[1:])
    rows = np.fromiter((row for text in texts for row in text), np.int64, int(start[-1]))
    return rows, start


def taken(
    rows: NDArray[np.int64], start: NDArray[np.int64], indices: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The words of some texts, end to end, and how many each has."""
    first, lengths = start[indices], start[indices + 1] - start[indices]
    if len(indices) and (indices[1:] == indices[:-1] + 1).all():
        return rows[first[0] : start[indices[-1] + 1]], lengths
    before = np.cumsum(lengths) - lengths
    return rows[np.repeat(first - before, lengths) + np.arange(int(lengths.sum()))], lengths


def _fits(arrays: dict[str, NDArray[Any]], words: int, stems: int, dimension: int) -> bool:
    """Whether every number that points into an array points inside it."""
    passages, titles = len(arrays["start"]) - 1, len(arrays["title_start"]) - 1
    by_passage = ("title", "position", "is_ordered", "follows")
    room = len(arrays["stem_of"])
    return (
        arrays["vectors"].shape == (room, dimension)
        and arrays["facts"].shape == (room, 5)
        and room >= words
        and all(len(arrays[name]) == passages for name in by_passage)
        and len(arrays["language"]) == 1
        and points_into(arrays["language"], len(LANGUAGE_CODES))
        and points_into(arrays["stem_of"][:words], stems)
        and points_into(arrays["title"], titles)
        and points_into(arrays["rows"], words)
        and points_into(arrays["title_rows"], words)
        and is_layout(arrays["start"], len(arrays["rows"]))
        and is_layout(arrays["title_start"], len(arrays["title_rows"]))
        and bool(np.isfinite(arrays["facts"]).all())
    )


def points_into(numbers: NDArray[Any], size: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < size)


def is_layout(start: NDArray[Any], end: int) -> bool:
    return (
        len(start) > 0 and start[0] == 0 and start[-1] == end and bool((np.diff(start) >= 0).all())
    )
