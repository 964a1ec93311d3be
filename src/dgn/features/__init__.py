"""From examples and vectors to features: the texts of a data set, embedded once, on disk."""

from dgn.features.build import FeatureReport, build_features
from dgn.features.pool import EmbeddingPool, FeatureOptions
from dgn.features.source import ExampleSource

__all__ = ["EmbeddingPool", "ExampleSource", "FeatureOptions", "FeatureReport", "build_features"]
