"""What is a set worth? Monotone submodular functions on batches of ragged sets, hard and soft."""

from dgn.objectives.base import SetFunction
from dgn.objectives.concave import Concave, Log1p, OneMinusExp, Power, Saturated, Sqrt
from dgn.objectives.coverage import WeightedCoverage
from dgn.objectives.facility_location import FacilityLocation
from dgn.objectives.feature_coverage import FeatureCoverage
from dgn.objectives.items import Items, State, as_items
from dgn.objectives.mixture import Mixture
from dgn.objectives.probabilistic_coverage import ProbabilisticCoverage

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
