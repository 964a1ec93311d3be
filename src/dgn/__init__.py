"""Learned subset selection: out of many items, select the few that together cover what is asked.

    core         which set is best? set functions and searches, on arrays
    text         what do words and passages say? queries, encoders, explanations
    data         what is asked, and what is right? readers of data sets
    selector     the front door: a query and text in, the passages that cover it out, with reasons
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
        budgeted_greedy,
        double_greedy,
        exact,
        explain,
        greedy,
        lazy_greedy,
        random_greedy,
        stochastic_greedy,
        top_k,
    )
    from dgn.core.functions import (
        ConditionalGain,
        DeepSubmodular,
        DisparityMin,
        DisparitySum,
        FacilityLocation,
        FeatureCoverage,
        GraphCut,
        Items,
        LogDeterminant,
        Mixture,
        MutualInformation,
        ProbabilisticCoverage,
        SetFunction,
        State,
    )
    from dgn.errors import (
        BrokenInput,
        DGNError,
        InvalidInput,
        MissingExtra,
        SearchTooLarge,
        StoreError,
        StudyStopped,
        WorkerDied,
    )
    from dgn.selector import Limits, PassageIndex, PassageSelection, Receipt, Selector
    from dgn.selector.scores import vector_function
    from dgn.text import Document, Passage, Query
    from dgn.text.explanation import Explanation

__version__ = "0.1.0"

_MODULES = {
    "BrokenInput": "errors",
    "Certificate": "core",
    "ConditionalGain": "core.functions",
    "DGNError": "errors",
    "DeepSubmodular": "core.functions",
    "DisparityMin": "core.functions",
    "DisparitySum": "core.functions",
    "Document": "text",
    "Explanation": "text.explanation",
    "FacilityLocation": "core.functions",
    "FeatureCoverage": "core.functions",
    "GraphCut": "core.functions",
    "InvalidInput": "errors",
    "Items": "core.functions",
    "Limits": "selector",
    "LogDeterminant": "core.functions",
    "MissingExtra": "errors",
    "Mixture": "core.functions",
    "MutualInformation": "core.functions",
    "Passage": "text",
    "PassageIndex": "selector",
    "PassageSelection": "selector",
    "ProbabilisticCoverage": "core.functions",
    "Query": "text",
    "Receipt": "selector",
    "SearchTooLarge": "errors",
    "Selection": "core",
    "Selections": "core",
    "Selector": "selector",
    "SetFunction": "core.functions",
    "State": "core.functions",
    "StoreError": "errors",
    "StudyStopped": "errors",
    "WorkerDied": "errors",
    "budgeted_greedy": "core",
    "double_greedy": "core",
    "exact": "core",
    "explain": "core",
    "greedy": "core",
    "lazy_greedy": "core",
    "random_greedy": "core",
    "stochastic_greedy": "core",
    "top_k": "core",
    "vector_function": "selector.scores",
}

__all__ = [
    "BrokenInput",
    "Certificate",
    "ConditionalGain",
    "DGNError",
    "DeepSubmodular",
    "DisparityMin",
    "DisparitySum",
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
    "MutualInformation",
    "Passage",
    "PassageIndex",
    "PassageSelection",
    "ProbabilisticCoverage",
    "Query",
    "Receipt",
    "SearchTooLarge",
    "Selection",
    "Selections",
    "Selector",
    "SetFunction",
    "State",
    "StoreError",
    "StudyStopped",
    "WorkerDied",
    "budgeted_greedy",
    "double_greedy",
    "exact",
    "explain",
    "greedy",
    "lazy_greedy",
    "random_greedy",
    "stochastic_greedy",
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
