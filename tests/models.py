"""What the tests share of the selector's parts; each is loaded once per process."""

from collections.abc import Sequence
from functools import cache

import dgn
from dgn.text import Query, WordReader, token_idf
from dgn.text.facets.encoder import FacetEncoder
from dgn.text.facets.matching import Matches, QueryMatches, match_query
from dgn.text.facets.reading import read_queries
from dgn.text.vectors import WordLlamaVectors
from dgn.text.vocabulary import WordTable


@cache
def wordllama() -> WordLlamaVectors:
    return WordLlamaVectors()


@cache
def reader() -> WordReader:
    return WordReader(wordllama(), token_idf())


def match(queries: Sequence[Query], *, titles: bool = True) -> tuple[list[QueryMatches], WordTable]:
    """The matches of each query, and the table of words that they refer to."""
    words, table, _ = read_queries(reader(), queries, titles=titles)
    return [match_query(one, table) for one in words], table


def matches_of(queries: Sequence[Query]) -> Matches:
    """The same as one padded batch."""
    return Matches.of(*match(queries))


@cache
def untrained() -> dgn.Selector:
    return dgn.Selector(FacetEncoder(vectors=wordllama()))


@cache
def shipped() -> dgn.Selector:
    return dgn.Selector.from_pretrained()
