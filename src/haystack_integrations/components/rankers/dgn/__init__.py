"""dgn as a ranker of Haystack; needs `dgn[haystack]`."""

from haystack_integrations.components.rankers.dgn.ranker import DGNRanker

__all__ = ["DGNRanker"]
