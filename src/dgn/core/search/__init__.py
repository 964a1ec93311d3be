"""Which set is best? Searches for every set function, each result with its certificate.

    greedy(f, items, k)                        small sets, batches, any array library
    lazy_greedy(f, items, k)                   one large set, with far fewer evaluations
    stochastic_greedy(f, items, k)             one huge set and a large k
    budgeted_greedy(f, items, costs, budget)   items have costs, such as tokens
    exact(f, items, k)                         the best set itself, with a proof; small sets
    random_greedy(f, items, k)                 functions that are not monotone
    double_greedy(f, items)                    the same, without a limit
    top_k(scores, k)                           the baseline: each item by itself

All but top_k take constraints: `given` items that are already there, `pinned` items that must be
selected, and `groups` with a quota, `max_per_group` (constraints.py; not the searches that draw
random numbers, and double_greedy takes `given` alone).
`explain` replays a selection and says what every item was worth at every step.
"""

from dgn.core.search.budgeted import budgeted_greedy
from dgn.core.search.exact import exact
from dgn.core.search.greedy import greedy, top_k
from dgn.core.search.large import lazy_greedy, stochastic_greedy
from dgn.core.search.randomized import double_greedy, random_greedy
from dgn.core.search.selection import Certificate, Selection, Selections
from dgn.core.search.steps import Step, explain

__all__ = [
    "Certificate",
    "Selection",
    "Selections",
    "Step",
    "budgeted_greedy",
    "double_greedy",
    "exact",
    "explain",
    "greedy",
    "lazy_greedy",
    "random_greedy",
    "stochastic_greedy",
    "top_k",
]
