"""Why was each item selected, and why not another one?

`explain` replays any search step by step; `Explanation` tells a selection of passages in the words
of the query, as data, as text and as a figure.
"""

from dgn.explanation.reasons import Explanation, PassedPassage, SelectedPassage, WordCoverage
from dgn.explanation.steps import Step, explain

__all__ = [
    "Explanation",
    "PassedPassage",
    "SelectedPassage",
    "Step",
    "WordCoverage",
    "explain",
]
