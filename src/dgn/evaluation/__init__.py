"""How good is it? The paper's scores, FEVER's official ones, and how sure we are of them."""

from dgn.evaluation.fever_scores import FeverEvidenceScores, fever_evidence_scores
from dgn.evaluation.scores import Hits, Scores, hits_at, scores_at
from dgn.evaluation.uncertainty import (
    Interval,
    PairedComparison,
    bootstrap_interval,
    paired_comparison,
)

__all__ = [
    "FeverEvidenceScores",
    "Hits",
    "Interval",
    "PairedComparison",
    "Scores",
    "bootstrap_interval",
    "fever_evidence_scores",
    "hits_at",
    "paired_comparison",
    "scores_at",
]
