"""What is a set worth? Monotone submodular functions on batches of ragged sets, hard and soft."""

from dgn.objectives.base import Items, SetFunction, State, as_items
from dgn.objectives.concave import Concave, Log1p, OneMinusExp, Power, Saturated, Sqrt
from dgn.objectives.coverage import FacilityLocation, FeatureCoverage, ProbabilisticCoverage
from dgn.objectives.mixture import Mixture
from dgn.objectives.weighted import WeightedCoverage

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
