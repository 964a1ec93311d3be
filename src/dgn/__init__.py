"""Learned subset selection: out of many items, select the few that together cover what is asked.

    core         which set is best? set functions and searches, on arrays
    text         what do words and passages say? queries, encoders, explanations
    minilm       the contextual encoder, a plug-in (needs dgn[minilm])
    selector     the front door: a query and text in, the passages that cover it out, with reasons
    data         what is right? rows of labelled passages
    evaluation   how good is it? metrics, baselines, comparisons
    learn        how does the search learn? (needs torch: dgn[train])
    apps         how is it used? command line, service, adapters

Names are imported when they are first used, so that `import dgn` takes no time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgn.core import (
        Certificate,
        Selection,
        Selections,
        explain,
        greedy,
        lazy_greedy,
        top_k,
    )
    from dgn.core.functions import (
        FacilityLocation,
        FeatureCoverage,
        GraphCut,
        Items,
        LogDeterminant,
        Mixture,
        ProbabilisticCoverage,
        SetFunction,
        State,
    )
    from dgn.errors import BrokenInput, DGNError, InvalidInput, MissingExtra
    from dgn.selector import Limits, PassageIndex, PassageSelection, Selector
    from dgn.selector.scores import vector_function
    from dgn.text import Document, Passage, Query
    from dgn.text.explanation import Explanation, PassageReport

__version__ = "0.1.0"

_NAMES = {
    "core": (
        *("Certificate", "Selection", "Selections", "explain", "greedy", "lazy_greedy", "top_k"),
    ),
    "core.functions": (
        *("FacilityLocation", "FeatureCoverage", "GraphCut", "Items", "LogDeterminant", "Mixture"),
        *("ProbabilisticCoverage", "SetFunction", "State"),
    ),
    "errors": ("BrokenInput", "DGNError", "InvalidInput", "MissingExtra"),
    "selector": ("Limits", "PassageIndex", "PassageSelection", "Selector"),
    "selector.scores": ("vector_function",),
    "text": ("Document", "Passage", "Query"),
    "text.explanation": ("Explanation", "PassageReport"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "BrokenInput",
    "Certificate",
    "DGNError",
    "Document",
    "Explanation",
    "FacilityLocation",
    "FeatureCoverage",
    "GraphCut",
    "InvalidInput",
    "Items",
    "Limits",
    "LogDeterminant",
    "MissingExtra",
    "Mixture",
    "Passage",
    "PassageIndex",
    "PassageReport",
    "PassageSelection",
    "ProbabilisticCoverage",
    "Query",
    "Selection",
    "Selections",
    "Selector",
    "SetFunction",
    "State",
    "explain",
    "greedy",
    "lazy_greedy",
    "top_k",
    "vector_function",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dgn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"dgn.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
