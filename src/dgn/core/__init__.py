"""Which set is best? Set functions and searches, on arrays; no text, no torch.

greedy(f, features, 5)         the items with the largest gains, one after the other
lazy_greedy(f, features, 50)   the same for one large or sparse set
top_k(scores, 5)               the baseline: every item by itself
explain(f, features, found)    a search replayed, step by step
"""

from dgn.core.functions import Items, SetFunction, State
from dgn.core.greedy import greedy, top_k
from dgn.core.lazy import lazy_greedy
from dgn.core.selection import Certificate, Selection, Selections
from dgn.core.steps import Step, explain

__all__ = [
    "Certificate",
    "Items",
    "Selection",
    "Selections",
    "SetFunction",
    "State",
    "Step",
    "explain",
    "greedy",
    "lazy_greedy",
    "top_k",
]
