"""From queries to words: rows of one table, each query in its language."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput
from dgn.text.detection import query_language
from dgn.text.facets.matching import QueryWords
from dgn.text.languages import ENGLISH
from dgn.text.query import Passage, Query
from dgn.text.spelling import title_text
from dgn.text.vocabulary import WordReader, WordTable
from dgn.text.words import pieces_of

RARITY = 1.5
"""How much the number of passages with a word counts in languages without an IDF."""


def texts_of(query: Query, *, titles: bool = True) -> tuple[list[str], list[int]]:
    """The texts of a query, and which of its titles each passage has.

    Args:
        query: The query.
        titles: Whether the titles of the passages are used.

    Returns:
        The query itself, its passages, and its different titles; then, for each passage, the
        number of its title.
    """
    if not query.passages:
        raise InvalidInput("passages", found="none", allowed="at least one passage")
    names = [passage.title if titles else "" for passage in query.passages]
    numbers = {title: number for number, title in enumerate(dict.fromkeys(names))}
    texts = [query.text, *query.texts, *map(title_text, numbers)]
    return texts, [numbers[name] for name in names]


def read_queries(
    reader: WordReader, queries: Sequence[Query], *, titles: bool = True
) -> tuple[list[QueryWords], WordTable, list[str]]:
    """The words of each query, of its passages and of its titles, in the language of the query.

    Returns:
        The words, the table of all words, and the language of each query.
    """
    named = [texts_of(query, titles=titles) for query in queries]
    pieces = [[*map(pieces_of, texts)] for texts, _ in named]
    codes: list[str] = []
    for query, (texts, _), split in zip(queries, named, pieces, strict=True):
        code = query.language or query_language(texts[: 1 + len(query.passages)], split)
        query.__dict__["read_language"] = code  # where cached_property looks first
        codes.append(code)
    flat = [*itertools.chain.from_iterable(pieces)]
    is_english = all(code == ENGLISH for code in codes)
    languages = [code for code, split in zip(codes, pieces, strict=True) for _ in split]
    rows, table = reader.read_pieces(flat, None if is_english else languages)
    words: list[QueryWords] = []
    start = 0
    for query, (texts, title) in zip(queries, named, strict=True):
        words.append(_words_of(query, rows[start : start + len(texts)], title))
        start += len(texts)
    if is_english:
        reader.keep(queries, words, table)
    else:
        words, table = tables_of_queries(words, table, codes)
    return words, table, codes


def _words_of(query: Query, rows: Sequence[list[int]], title: Sequence[int]) -> QueryWords:
    if not rows[0]:
        raise InvalidInput("query", found=repr(query.text), allowed="a text with a word in it")
    start = np.array([0, *itertools.accumulate(map(len, rows))], np.int64)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(start[-1]))
    return QueryWords(flat, start, np.array(title, np.int64), *order_of(query.passages))


def tables_of_queries(
    queries: Sequence[QueryWords], table: WordTable, languages: Sequence[str]
) -> tuple[list[QueryWords], WordTable]:
    """The same words with a table in which every query has rows of its own.

    There is no IDF for languages other than English, so that the passages of the query tell how
    rare a word is.

    Args:
        queries: The words of each query.
        table: What is known about them.
        languages: The language of each query.
    """
    found: list[QueryWords] = []
    tables: list[WordTable] = []
    first = 0
    for query, code in zip(queries, languages, strict=True):
        used, rows = np.unique(query.rows, return_inverse=True)
        vectors, facts = table.vectors[used], table.facts[used]
        stem = np.asarray(table.stem[used])
        if code != ENGLISH:
            facts[:, 0] += np.where(facts[:, 3] == 0, _rarity(query, rows, stem), 0)
        tables.append(WordTable(vectors, facts, stem))
        found.append(query._replace(rows=rows.astype(np.int64) + first))
        first += len(used)
    vectors, facts, stem = (
        np.concatenate([getattr(own, name) for own in tables])
        for name in ("vectors", "facts", "stem")
    )
    return found, WordTable(vectors, facts, stem)


def _rarity(
    query: QueryWords, rows: NDArray[np.int64], stem: NDArray[np.int64]
) -> NDArray[np.float32]:
    """[words], larger for a word of which few passages of the query have a form."""
    passages = len(query.title)
    lengths = np.diff(query.start)[1 : passages + 1]
    numbers, places = np.unique(stem, return_inverse=True)
    inside = places[rows[query.start[1] : query.start[passages + 1]]]
    pairs = np.unique(np.repeat(np.arange(passages), lengths) * len(numbers) + inside)
    having = np.bincount(pairs % len(numbers), minlength=len(numbers))
    rarity = RARITY * np.log((passages + 1) / (having + 0.5))
    return rarity[places].astype(np.float32)


def order_of(
    passages: Sequence[Passage],
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
    """The position of each passage, whether it is known, and whether it follows the last.

    Loose passages have no position, so that their order cannot matter. A document of a single
    passage has no order either.
    """
    if all(passage.position is None for passage in passages):
        count = len(passages)
        return np.zeros(count, np.float32), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    sizes = Counter(passage.document for passage in passages)
    is_ordered = np.array([p.position is not None and sizes[p.document] > 1 for p in passages])
    position = np.array([p.position or 0 for p in passages], np.float32)
    follows = np.zeros(len(passages), np.bool_)
    follows[1:] = [
        one.position is not None
        and before.position is not None
        and one.document == before.document
        and one.position == before.position + 1
        for before, one in itertools.pairwise(passages)
    ]
    return position * is_ordered, is_ordered, follows
