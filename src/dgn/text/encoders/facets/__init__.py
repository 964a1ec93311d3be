"""Facets: the features are the words of the query, and a passage offers what it says about them."""

from dgn.text.encoders.facets.encoder import FacetEncoder

__all__ = ["FacetEncoder"]
