"""Learned subset selection: out of many items, select the few that together cover what is asked.

    selector     the front door: a query and text in, the passages that cover it out, with reasons
    objectives   what is a set worth?
    maximizers   which set is best?
    unfolding    how does the search learn? (needs torch: dgn[train])

Names are imported when they are first used, so that `import dgn` takes no time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgn.errors import (
        BrokenInput,
        DGNError,
        InvalidInput,
        MissingExtra,
        SearchTooLarge,
        StoreError,
        StudyStopped,
    )
    from dgn.maximizers import (
        Certificate,
        Selection,
        Selections,
        budgeted_greedy,
        exact,
        greedy,
        lazy_greedy,
        maximize,
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
    from dgn.query import Document, Passage, Query
    from dgn.selector import PassageSelection, Selector

__version__ = "0.1.0"

_MODULES = {
    "BrokenInput": "errors",
    "Certificate": "maximizers",
    "DGNError": "errors",
    "Document": "query",
    "FacilityLocation": "objectives",
    "FeatureCoverage": "objectives",
    "InvalidInput": "errors",
    "Items": "objectives",
    "MissingExtra": "errors",
    "Mixture": "objectives",
    "Passage": "query",
    "PassageSelection": "selector",
    "ProbabilisticCoverage": "objectives",
    "Query": "query",
    "SearchTooLarge": "errors",
    "Selection": "maximizers",
    "Selections": "maximizers",
    "Selector": "selector",
    "SetFunction": "objectives",
    "State": "objectives",
    "StoreError": "errors",
    "StudyStopped": "errors",
    "budgeted_greedy": "maximizers",
    "exact": "maximizers",
    "greedy": "maximizers",
    "lazy_greedy": "maximizers",
    "maximize": "maximizers",
    "stochastic_greedy": "maximizers",
    "top_k": "maximizers",
}

__all__ = [
    "BrokenInput",
    "Certificate",
    "DGNError",
    "Document",
    "FacilityLocation",
    "FeatureCoverage",
    "InvalidInput",
    "Items",
    "MissingExtra",
    "Mixture",
    "Passage",
    "PassageSelection",
    "ProbabilisticCoverage",
    "Query",
    "SearchTooLarge",
    "Selection",
    "Selections",
    "Selector",
    "SetFunction",
    "State",
    "StoreError",
    "StudyStopped",
    "budgeted_greedy",
    "exact",
    "greedy",
    "lazy_greedy",
    "maximize",
    "stochastic_greedy",
    "top_k",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dgn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dgn.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
