"""Facets: the features are the words of the query, and a passage offers what it says about them."""

from dgn.text.encoder import register_encoder
from dgn.text.facets.encoder import FacetEncoder

register_encoder(FacetEncoder)

__all__ = ["FacetEncoder"]
