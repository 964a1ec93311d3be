"""Which set is best? Searches for every set function, each result with its certificate."""

from dgn.maximizers.budgeted import budgeted_greedy
from dgn.maximizers.exact import exact
from dgn.maximizers.greedy import greedy, top_k
from dgn.maximizers.large import lazy_greedy, stochastic_greedy
from dgn.maximizers.methods import maximize
from dgn.maximizers.selection import Certificate, Selection, Selections

__all__ = [
    "Certificate",
    "Selection",
    "Selections",
    "budgeted_greedy",
    "exact",
    "greedy",
    "lazy_greedy",
    "maximize",
    "stochastic_greedy",
    "top_k",
]
