"""What is a set worth? Set functions on batches of ragged sets, hard and soft.

    FeatureCoverage(weights)        a little of every feature is worth more than much of one
    FacilityLocation(weights)       every feature is served by its best item alone
    ProbabilisticCoverage(weights)  every item covers a feature with some probability
    LogDeterminant()                items that differ in every direction
    GraphCut(redundancy)            items that are similar to many, and not to each other
    Mixture(functions, weights)     a weighted sum of them

A function of your own derives from `SetFunction`, or from `WeightedCoverage` if it is a sum over
features.
"""

from dgn.core.functions.base import SetFunction, WeightedCoverage
from dgn.core.functions.concave import Concave, Log1p, OneMinusExp, Power, Saturated
from dgn.core.functions.determinant import LogDeterminant
from dgn.core.functions.facility import FacilityLocation
from dgn.core.functions.features import FeatureCoverage
from dgn.core.functions.graph_cut import GraphCut
from dgn.core.functions.mixture import Mixture
from dgn.core.functions.probability import ProbabilisticCoverage
from dgn.core.items import Items, State, as_items

__all__ = [
    "Concave",
    "FacilityLocation",
    "FeatureCoverage",
    "GraphCut",
    "Items",
    "Log1p",
    "LogDeterminant",
    "Mixture",
    "OneMinusExp",
    "Power",
    "ProbabilisticCoverage",
    "Saturated",
    "SetFunction",
    "State",
    "WeightedCoverage",
    "as_items",
]
