"""Contenders on the same questions: every score of each, and each against one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data.records import Candidate, Claim, Evidence, Example
from dgn.errors import InvalidInput
from dgn.evaluation.contenders.base import Contender, Picks, Questions
from dgn.evaluation.fever_scores import FeverEvidenceScores, fever_evidence_scores
from dgn.evaluation.scores import Hits, Scores
from dgn.evaluation.uncertainty import (
    Interval,
    PairedComparison,
    bootstrap_interval,
    paired_comparison,
)


@dataclass(frozen=True)
class ScoresAtK:
    """The scores of the first k picks; `recall` is the macro one with its interval."""

    k: int
    macro: Scores
    micro: Scores
    recall: Interval


@dataclass(frozen=True, eq=False)
class ContestResult:
    """How one contender did.

    fever: FeverEvidenceScores at the cut-off asked for; None where no claim has evidence groups.
    """

    name: str
    parameters: int
    picks: Picks
    at: tuple[ScoresAtK, ...]
    fever: FeverEvidenceScores | None

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "parameters": self.parameters,
            "at": [_with_f1(asdict(one), one) for one in self.at],
            "fever": None if self.fever is None else {**asdict(self.fever), "f1": self.fever.f1},
        }


def run_contest(
    contenders: Sequence[Contender],
    questions: Questions,
    ks: Sequence[int],
    *,
    cut_off: int = 5,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda _: None,
) -> list[ContestResult]:
    """Let every contender pick, and score it. seed: of the bootstrap."""
    if not ks or min(ks) < 1:
        raise InvalidInput("ks", found=str(tuple(ks)), allowed="numbers from 1 on")
    results: list[ContestResult] = []
    for contender in contenders:
        on_progress(contender.name)
        picks = _checked(contender, contender.pick(questions, max(*ks, cut_off)), questions)
        hits = [questions.hits_at(k, picks) for k in ks]
        results.append(
            ContestResult(
                contender.name,
                contender.parameters,
                picks,
                tuple(_scored(k, h, seed) for k, h in zip(ks, hits, strict=True)),
                _fever(questions, picks, cut_off),
            )
        )
    return results


def recalls_at(k: int, questions: Questions, picks: Picks) -> Any:
    """[claims with gold], the recall of each."""
    return questions.hits_at(k, picks).recalls


def compare(
    ours: ContestResult, theirs: ContestResult, questions: Questions, k: int, *, seed: int = 0
) -> PairedComparison:
    """Two contenders by their recall at k on the same claims."""
    first, second = (recalls_at(k, questions, result.picks) for result in (ours, theirs))
    return paired_comparison(first, second, seed=seed)


def claim_rows(questions: Questions, results: Sequence[ContestResult]) -> Iterable[dict[str, Any]]:
    """For every claim, what each contender picked and what was right."""
    for row, example in enumerate(questions.examples):
        right = [c for c, gold in zip(example.candidates, example.gold, strict=True) if gold]
        yield {
            "id": example.claim.id,
            "claim": example.claim.text,
            "gold": [_place(candidate) for candidate in right],
            "picks": {
                result.name: [
                    {**_place(candidate), "gold": candidate in right}
                    for candidate in _picked(example, result.picks[row])
                ]
                for result in results
            },
        }


def _checked(contender: Contender, picks: Any, questions: Questions) -> Picks:
    """What a contender gave, once it is known to be places of candidates, none of them twice."""
    found: Picks = np.asarray(picks)
    lengths = [len(example.candidates) for example in questions.examples]
    fits = found.ndim == 2 and len(found) == len(lengths) and found.dtype.kind == "i"
    fits = fits and bool((found >= -1).all() and (found < np.array(lengths)[:, None]).all())
    if not fits or any(len(set(row[row >= 0])) < (row >= 0).sum() for row in found):
        raise InvalidInput(
            f"the picks of {getattr(contender, 'name', contender)}",
            found=f"shape {found.shape}, {found.dtype}",
            allowed=f"[{len(lengths)} claims, k] of whole numbers, each a place among the claim's "
            "candidates, none twice, and −1 for no pick",
        )
    return found


def _scored(k: int, hits: Hits, seed: int) -> ScoresAtK:
    return ScoresAtK(k, hits.macro, hits.micro, bootstrap_interval(hits.recalls, seed=seed))


def _fever(questions: Questions, picks: Picks, cut_off: int) -> FeverEvidenceScores | None:
    predictions: list[tuple[Claim, list[Evidence]]] = []
    for row, example in enumerate(questions.examples):
        if example.claim.groups:
            picked = _picked(example, picks[row])
            predictions.append((example.claim, [Evidence(c.page, c.sentence) for c in picked]))
    predictions += [(example.claim, []) for example in questions.unanswerable]
    return fever_evidence_scores(predictions, cut_off) if predictions else None


def _picked(example: Example, places: NDArray[np.int64]) -> list[Candidate]:
    return [example.candidates[int(place)] for place in places if place >= 0]


def _with_f1(row: dict[str, Any], scores: ScoresAtK) -> dict[str, Any]:
    row["macro"]["f1"], row["micro"]["f1"] = scores.macro.f1, scores.micro.f1
    return row


def _place(candidate: Candidate) -> dict[str, Any]:
    return {"page": candidate.page, "sentence": candidate.sentence}
