"""How good is it? Ways to select, compared on the same queries with the same passages."""

from dgn.evaluation.baselines import Baseline, Bm25, FirstPassages, SelectorBaseline, TfIdf
from dgn.evaluation.comparison import (
    BaselineResult,
    EvaluationSet,
    compare,
    compare_all,
    query_rows,
    run_comparison,
)
from dgn.evaluation.vector_baselines import STRATEGIES, Diversified, PooledTopK, untrained_greedy

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
    "untrained_greedy",
]
