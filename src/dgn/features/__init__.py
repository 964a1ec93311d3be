"""From examples and vectors to features: the texts of a data set, embedded once, on disk."""

from dgn.features.build import FeatureReport, build_features
from dgn.features.match_batches import MatchBatches
from dgn.features.pool import ENCODERS, EmbeddingPool, FeatureOptions
from dgn.features.source import ExampleSource

__all__ = [
    "ENCODERS",
    "EmbeddingPool",
    "ExampleSource",
    "FeatureOptions",
    "FeatureReport",
    "MatchBatches",
    "build_features",
]
