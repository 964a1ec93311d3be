"""From examples and vectors to features: the texts of a data set, embedded once, on disk."""

from dgn.features.build import FeatureReport, build_features
from dgn.features.pool import EmbeddingPool, FeatureOptions

__all__ = ["EmbeddingPool", "FeatureOptions", "FeatureReport", "build_features"]
