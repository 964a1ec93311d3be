"""How good is it? Ways to select, compared on the same queries with the same passages."""

from dgn.evaluation.baselines import (
    STRATEGIES,
    Baseline,
    Bm25,
    Diversified,
    FirstPassages,
    PooledTopK,
    SelectorBaseline,
    TfIdf,
)
from dgn.evaluation.comparison import (
    BaselineResult,
    EvaluationSet,
    compare,
    compare_all,
    query_rows,
    run_comparison,
)

__all__ = [
    "STRATEGIES",
    "Baseline",
    "BaselineResult",
    "Bm25",
    "Diversified",
    "EvaluationSet",
    "FirstPassages",
    "PooledTopK",
    "SelectorBaseline",
    "TfIdf",
    "compare",
    "compare_all",
    "query_rows",
    "run_comparison",
]
