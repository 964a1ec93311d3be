"""What does an item offer? From the texts of a claim and of sentences to features of a search."""

from dgn.encoders.encoder import Encoded, Facet, TextEncoder
from dgn.encoders.facet_encoder import FacetEncoder
from dgn.encoders.facet_weights import (
    FacetSizes,
    FacetWeights,
    start_weights,
    untrained_weights,
)
from dgn.encoders.facets import Facets, encode
from dgn.encoders.matcher import Matcher, word_table
from dgn.encoders.matches import ClaimMatches, Matches, WordTable, as_batch
from dgn.encoders.pooled import PooledEncoder
from dgn.encoders.query import Query

__all__ = [
    "ClaimMatches",
    "Encoded",
    "Facet",
    "FacetEncoder",
    "FacetSizes",
    "FacetWeights",
    "Facets",
    "Matcher",
    "Matches",
    "PooledEncoder",
    "Query",
    "TextEncoder",
    "WordTable",
    "as_batch",
    "encode",
    "start_weights",
    "untrained_weights",
    "word_table",
]
