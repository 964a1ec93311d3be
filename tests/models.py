"""What the tests share of the selector's parts; each is loaded once per process."""

from functools import cache

import dgn
from dgn.encoders.facets.encoder import FacetEncoder
from dgn.encoders.facets.matching import Matcher
from dgn.text import WordReader, token_idf
from dgn.text.wordllama import WordLlamaVectors


@cache
def wordllama() -> WordLlamaVectors:
    return WordLlamaVectors()


@cache
def reader() -> WordReader:
    return WordReader(wordllama(), token_idf())


@cache
def matcher() -> Matcher:
    return Matcher(reader())


@cache
def untrained() -> dgn.Selector:
    return dgn.Selector(FacetEncoder(vectors=wordllama()))


@cache
def shipped() -> dgn.Selector:
    return dgn.Selector.from_pretrained()
