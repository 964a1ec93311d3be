"""How good is it? The paper's scores, FEVER's official ones, and how sure we are of them."""

from dgn.evaluation.contenders import Contender, Questions
from dgn.evaluation.contest import ContestResult, claim_rows, compare, run_contest
from dgn.evaluation.fever_scores import FeverEvidenceScores, fever_evidence_scores
from dgn.evaluation.scores import Hits, Scores, hits_at, scores_at
from dgn.evaluation.uncertainty import (
    Interval,
    PairedComparison,
    bootstrap_interval,
    paired_comparison,
)

__all__ = [
    "Contender",
    "ContestResult",
    "FeverEvidenceScores",
    "Hits",
    "Interval",
    "PairedComparison",
    "Questions",
    "Scores",
    "bootstrap_interval",
    "claim_rows",
    "compare",
    "fever_evidence_scores",
    "hits_at",
    "paired_comparison",
    "run_contest",
    "scores_at",
]
