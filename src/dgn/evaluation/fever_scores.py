"""FEVER's official evidence scores, which are not the paper's recall: never mix the two.

The rules of the shared task: claims of NOT ENOUGH INFO do not count; predictions beyond the cut-off
do not count; a claim is recalled when all of some one group is among what is left; a prediction is
precise when any group names it; a claim without predictions has a precision of 1. Both are means
over claims, and F1 is that of the two means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dgn.data.records import Claim, Evidence
from dgn.errors import InvalidInput
from dgn.evaluation.scores import harmonic_mean

OFFICIAL_CUT_OFF = 5


@dataclass(frozen=True)
class FeverEvidenceScores:
    """The official evidence precision and recall, over `claims` claims."""

    precision: float
    recall: float
    claims: int

    @property
    def f1(self) -> float:
        """The harmonic mean of the two."""
        return harmonic_mean(self.precision, self.recall)


def fever_evidence_scores(
    predictions: Iterable[tuple[Claim, Sequence[Evidence]]],
    cut_off: int | None = OFFICIAL_CUT_OFF,
) -> FeverEvidenceScores:
    """Score predicted evidence, in the order of the predictions, best first.

    cut_off: how many predictions of a claim count; None for all of them.
    """
    if cut_off is not None and cut_off < 1:
        raise InvalidInput("cut_off", found=str(cut_off), allowed="at least 1, or None")
    precisions: list[float] = []
    recalls: list[float] = []
    for claim, predicted in predictions:
        if claim.label != "NOT ENOUGH INFO":
            counted = list(predicted[:cut_off])
            precisions.append(_precision(claim, counted))
            recalls.append(_recall(claim, counted))
    if not precisions:
        raise InvalidInput("predictions", found="none that count", allowed="at least one claim")
    count = len(precisions)
    return FeverEvidenceScores(sum(precisions) / count, sum(recalls) / count, count)


def _precision(claim: Claim, predicted: list[Evidence]) -> float:
    if not predicted:
        return 1.0
    return sum(piece in claim.evidence for piece in predicted) / len(predicted)


def _recall(claim: Claim, predicted: list[Evidence]) -> float:
    if not claim.groups:
        return 1.0
    return float(any(all(piece in predicted for piece in group) for group in claim.groups))
