"""What is a set worth? Monotone submodular functions on batches of ragged sets, hard and soft."""

from dgn.core.functions.base import Items, SetFunction, State, as_items
from dgn.core.functions.concave import Concave, Log1p, OneMinusExp, Power, Saturated, Sqrt
from dgn.core.functions.coverage import (
    FacilityLocation,
    FeatureCoverage,
    ProbabilisticCoverage,
)
from dgn.core.functions.mixture import Mixture
from dgn.core.functions.weighted import WeightedCoverage

__all__ = [
    "Concave",
    "FacilityLocation",
    "FeatureCoverage",
    "Items",
    "Log1p",
    "Mixture",
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
