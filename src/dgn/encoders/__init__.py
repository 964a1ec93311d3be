"""What does a passage offer for a query? Encoder families, from text to a set function.

Each family is one subpackage with everything that belongs to it: its formula and weights, its
table of features on disk, its batches and its torch network. To add a family, add a folder and
register it here.
"""

from dgn.encoders.base import Encoder, EncoderFamily, Facet, FeatureOptions, FeatureWriter, Table
from dgn.encoders.facets import FacetEncoder, FacetFamily
from dgn.encoders.features import FeatureReport, build_features, read_key, read_source
from dgn.encoders.minilm import MiniLMFamily
from dgn.encoders.pooled import PooledEncoder, PooledFamily
from dgn.encoders.registry import family_names, find_family, register_family

register_family(PooledFamily())
register_family(FacetFamily())
register_family(MiniLMFamily())

__all__ = [
    "Encoder",
    "EncoderFamily",
    "Facet",
    "FacetEncoder",
    "FacetFamily",
    "FeatureOptions",
    "FeatureReport",
    "FeatureWriter",
    "MiniLMFamily",
    "PooledEncoder",
    "PooledFamily",
    "Table",
    "build_features",
    "family_names",
    "find_family",
    "read_key",
    "read_source",
    "register_family",
]
