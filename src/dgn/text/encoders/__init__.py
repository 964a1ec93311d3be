"""What does a passage offer for a query? Encoders, from text to a set function.

| encoder | what it compares | when to choose it |
| --- | --- | --- |
| `FacetEncoder` | the words of query and passages | the default: fast, explains itself |
| `MiniLMEncoder` | the same, read by a transformer | quality matters more than milliseconds |
| `PooledEncoder` | one vector for each text | the paper's encoder, or vectors of your own model |

To add one, derive from `Encoder` and call `register_encoder`.
"""

from dgn.text.encoders.base import (
    Encoder,
    Facet,
    KnownScores,
    PreparedPassages,
    find_encoder,
    register_encoder,
)
from dgn.text.encoders.facets import FacetEncoder
from dgn.text.encoders.minilm import MiniLMEncoder
from dgn.text.encoders.pooled import PooledEncoder

register_encoder(FacetEncoder)
register_encoder(MiniLMEncoder)
register_encoder(PooledEncoder)

__all__ = [
    "Encoder",
    "Facet",
    "FacetEncoder",
    "KnownScores",
    "MiniLMEncoder",
    "PooledEncoder",
    "PreparedPassages",
    "find_encoder",
    "register_encoder",
]
