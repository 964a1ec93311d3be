"""Facets: the features are the words of the query, and a passage offers what it says about them."""

from dgn.encoders.facets.encoder import FacetEncoder
from dgn.encoders.facets.family import FacetFamily, FacetSettings

__all__ = ["FacetEncoder", "FacetFamily", "FacetSettings"]
