"""Which encoders can be trained, and how: features on disk, batches, torch modules.

Nothing here imports torch until a module is built, so that features can be made without it. To add
a family, derive from `TrainableFamily` and call `register_family`.
"""

from dgn.learn.families.base import (
    FAMILIES,
    FeatureOptions,
    FeatureWriter,
    Table,
    TrainableFamily,
    family_names,
    find_family,
    register_family,
)
from dgn.learn.families.facets import FacetFamily
from dgn.learn.families.pooled import PooledFamily

register_family(PooledFamily())
register_family(FacetFamily())

__all__ = [
    "FAMILIES",
    "FacetFamily",
    "FeatureOptions",
    "FeatureWriter",
    "PooledFamily",
    "Table",
    "TrainableFamily",
    "family_names",
    "find_family",
    "register_family",
]
