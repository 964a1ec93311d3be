"""Why was each passage selected, and why not another one? In the words of the query.

An `Explanation` can be printed, drawn, or read as data.
"""

from dgn.text.explanation.reasons import Explanation, PassedPassage, SelectedPassage, WordCoverage
from dgn.text.explanation.replay import explain_passages

__all__ = [
    "Explanation",
    "PassedPassage",
    "SelectedPassage",
    "WordCoverage",
    "explain_passages",
]
