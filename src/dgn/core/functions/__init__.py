"""What is a set worth? Set functions on batches of ragged sets, hard and soft."""

from dgn.core.functions.base import Items, SetFunction, State, as_items
from dgn.core.functions.concave import (
    CONCAVE,
    Concave,
    Log1p,
    OneMinusExp,
    Power,
    Saturated,
    Sqrt,
)
from dgn.core.functions.coverage import (
    FacilityLocation,
    FeatureCoverage,
    ProbabilisticCoverage,
)
from dgn.core.functions.deep import DeepSubmodular
from dgn.core.functions.determinant import LogDeterminant
from dgn.core.functions.focused import ConditionalGain, MutualInformation
from dgn.core.functions.mixture import Mixture
from dgn.core.functions.pairwise import DisparityMin, DisparitySum, GraphCut
from dgn.core.functions.weighted import WeightedCoverage

__all__ = [
    "CONCAVE",
    "Concave",
    "ConditionalGain",
    "DeepSubmodular",
    "DisparityMin",
    "DisparitySum",
    "FacilityLocation",
    "FeatureCoverage",
    "GraphCut",
    "Items",
    "Log1p",
    "LogDeterminant",
    "Mixture",
    "MutualInformation",
    "OneMinusExp",
    "Power",
    "ProbabilisticCoverage",
    "Saturated",
    "SetFunction",
    "Sqrt",
    "State",
    "WeightedCoverage",
    "as_items",
]
