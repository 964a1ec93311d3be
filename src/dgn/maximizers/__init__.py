"""Which set is best? Searches for every set function, each result with its certificate."""

from dgn.maximizers.budgeted import budgeted_greedy
from dgn.maximizers.certificate import Certificate
from dgn.maximizers.exact import exact
from dgn.maximizers.greedy import greedy
from dgn.maximizers.lazy import lazy_greedy
from dgn.maximizers.selection import Selection, Selections
from dgn.maximizers.stochastic import stochastic_greedy
from dgn.maximizers.top_k import top_k

__all__ = [
    "Certificate",
    "Selection",
    "Selections",
    "budgeted_greedy",
    "exact",
    "greedy",
    "lazy_greedy",
    "stochastic_greedy",
    "top_k",
]
