"""Learned subset selection: out of many items, pick the few that together say the most.

selector     the front door: a claim and text in, the sentences that cover it out, with reasons
objectives   what is a set worth?
maximizers   which set is best?
unfolding    how does the search learn? (needs torch: pip install 'dgn[train]')
"""

from dgn.errors import DGNError, InvalidInput, MissingExtra, SearchTooLarge
from dgn.maximizers import (
    Certificate,
    Selection,
    Selections,
    budgeted_greedy,
    exact,
    greedy,
    lazy_greedy,
    stochastic_greedy,
    top_k,
)
from dgn.objectives import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Mixture,
    ProbabilisticCoverage,
    SetFunction,
    State,
)
from dgn.selector import Document, Selector, Sentence, SentenceSelection

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "DGNError",
    "Document",
    "FacilityLocation",
    "FeatureCoverage",
    "InvalidInput",
    "Items",
    "MissingExtra",
    "Mixture",
    "ProbabilisticCoverage",
    "SearchTooLarge",
    "Selection",
    "Selections",
    "Selector",
    "Sentence",
    "SentenceSelection",
    "SetFunction",
    "State",
    "budgeted_greedy",
    "exact",
    "greedy",
    "lazy_greedy",
    "stochastic_greedy",
    "top_k",
]
