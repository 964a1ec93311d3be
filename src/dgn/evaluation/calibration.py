"""Fit "is the answer in here at all?" on labelled rows, and say how far it can be trusted.

Every row is used twice: as it is, and without its gold passages, where nothing can answer the
query. The answer is there if a gold passage was selected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.selector import Limits, PassageSelection, Selector
from dgn.selector.calibration import Calibration
from dgn.selector.calibration import facts_of as selected_facts

LEAST_ROWS = 20
BINS = 10
SCORE_WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
_FOLDS = 5
_STEPS = 50
_PRIOR = 2.0
"""How many rows the start is worth, for each coefficient."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """How probabilities compare with what was the case, on rows that they were not fitted on.

    Attributes:
        predicted: [bins], the mean probability of the rows of each bin; NaN for an empty one.
        observed: [bins], the share of these rows whose answer was selected.
        counts: [bins], how many there are.
        error: The mean difference of the two, weighted by the counts.
        auroc: The probability that a row with its answer has a larger probability than one without.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    counts: NDArray[np.int64]
    error: float
    auroc: float

    @classmethod
    def of(cls, probabilities: NDArray[np.float64], labels: NDArray[np.bool_]) -> Reliability:
        """From one probability and one label for each row."""
        bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
        counts = np.bincount(bins, minlength=BINS)
        with np.errstate(invalid="ignore"):
            predicted = np.bincount(bins, probabilities, BINS) / counts
            observed = np.bincount(bins, labels, BINS) / counts
        gaps = np.where(counts > 0, np.abs(predicted - observed), 0.0)
        return cls(
            predicted,
            observed,
            counts,
            float((gaps * counts).sum() / counts.sum()),
            _auroc(probabilities, labels),
        )


@dataclass(frozen=True, eq=False)
class Facts:
    """What a calibration sees of some selections.

    Attributes:
        facts: [selections, facts], what `dgn.selector.calibration.facts_of` returns.
        labels: [selections], whether the answer was selected.
        rows: [selections], the row that each one comes from.
    """

    facts: NDArray[np.float64]
    labels: NDArray[np.bool_]
    rows: NDArray[np.int64]


def facts_of(selector: Selector, examples: Sequence[Example], limits: Limits) -> Facts:
    """Select from every row as it is, and without its gold passages."""
    queries: list[Any] = []
    golds: list[tuple[bool, ...]] = []
    rows: list[int] = []
    for row, example in enumerate(examples):
        if not any(example.gold):
            continue
        queries.append(example.query)
        golds.append(tuple(example.gold))
        rows.append(row)
        pairs = zip(example.query.passages, example.gold, strict=True)
        others = tuple(passage for passage, is_gold in pairs if not is_gold)
        if others:
            queries.append(replace(example.query, passages=others, embeddings=None))
            golds.append((False,) * len(others))
            rows.append(row)
    if len(set(rows)) < LEAST_ROWS:
        raise InvalidInput(
            "rows",
            message=f"{len(set(rows))} rows have evidence among their passages; a calibration "
            f"needs at least {LEAST_ROWS}.",
        )
    found: list[tuple[float, ...]] = []
    labels: list[bool] = []
    for start in range(0, len(queries), 64):
        part = selector.select_queries(queries[start : start + 64], limits)
        for selection, gold in zip(part, golds[start:], strict=False):
            found.append(_facts(selection))
            labels.append(any(gold[index] for index in selection.indices))
    # A model may know other things about queries in other languages; most rows decide.
    (usual, _), *_ = Counter(map(len, found)).most_common(1)
    kept = [n for n, one in enumerate(found) if len(one) == usual]
    return Facts(np.array([found[n] for n in kept]), np.array(labels)[kept], np.array(rows)[kept])


def _facts(selection: PassageSelection) -> tuple[float, ...]:
    if selection.coverage is None:
        raise InvalidInput(
            "model", message="The model does not define coverage, and cannot be calibrated."
        )
    return selected_facts(
        selection.coverage, selection.objective, selection.items, selection.indices
    )


def fit(
    facts: Facts,
    start: Calibration | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Calibration:
    """A logistic regression by Newton's method; with few rows it stays near its start.

    Args:
        facts: What was selected, and whether it has the answer.
        start: Where it starts; by default a probability of one half.
        weights: [selections], how much each one counts; by default alike.
    """
    center = np.zeros(facts.facts.shape[1] + 1)
    if start is not None and len(start.coefficients) + 1 == len(center):
        center = np.array([*start.coefficients, start.bias])
    x = np.column_stack([facts.facts, np.ones(len(facts.facts))])
    y = facts.labels.astype(np.float64)
    count = np.ones(len(y)) if weights is None else weights
    found = center.copy()
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        slope = x.T @ (count * (y - p)) - _PRIOR * (found - center)
        curvature = (x * (count * p * (1 - p))[:, None]).T @ x + _PRIOR * np.eye(len(center))
        step = np.linalg.solve(curvature, slope)
        found += step
        if np.abs(step).max() < 1e-10:
            break
    *coefficients, bias = (round(float(one), 4) for one in found)
    return Calibration(tuple(coefficients), bias, len(set(facts.rows.tolist())))


def probabilities(calibration: Calibration, facts: Facts) -> NDArray[np.float64]:
    """The probability of each selection."""
    found = [calibration.probability(one) for one in facts.facts.tolist()]
    return np.array([math.nan if one is None else one for one in found])


def cross_validated(facts: Facts, start: Calibration | None) -> Reliability:
    """The reliability on rows that were not fitted on, in five parts."""
    fold = facts.rows % _FOLDS
    found = np.zeros(len(facts.labels))
    for part in range(_FOLDS):
        own = fold == part
        if own.any() and not own.all():
            rest = Facts(facts.facts[~own], facts.labels[~own], facts.rows[~own])
            some = Facts(facts.facts[own], facts.labels[own], facts.rows[own])
            found[own] = probabilities(fit(rest, start), some)
    return Reliability.of(found, facts.labels)


def best_score_weight(
    selector: Selector, examples: Sequence[Example], limits: Limits
) -> tuple[float | None, dict[str, float]]:
    """What the scores or embeddings of the rows are worth, by their recall.

    Returns:
        The weight with the best recall, or None if finding it out for each query is as good; and
        the mean recall by weight ("auto" for finding it out). Nothing if no row has scores.
    """
    usable = [
        one
        for one in examples
        if any(one.gold) and (one.query.scores is not None or one.query.embeddings is not None)
    ]
    if len(usable) < LEAST_ROWS:
        return None, {}
    queries = [one.query for one in usable]
    recalls: dict[str, float] = {}
    for weight in (None, *SCORE_WEIGHTS):
        found: list[float] = []
        own = replace(limits, score_weight=weight)
        for start in range(0, len(queries), 64):
            part = selector.select_queries(queries[start : start + 64], own)
            for selection, example in zip(part, usable[start:], strict=False):
                hits = sum(example.gold[index] for index in selection.indices)
                found.append(hits / sum(example.gold))
        recalls["auto" if weight is None else f"{weight:g}"] = math.fsum(found) / len(found)
    best = max(SCORE_WEIGHTS, key=lambda weight: recalls[f"{weight:g}"])
    # A fixed weight must pay: the automatic one knows each query.
    noise = 1 / math.sqrt(len(usable)) / 10
    return (best if recalls[f"{best:g}"] > recalls["auto"] + noise else None), recalls


def _auroc(values: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    positive, negative = values[labels], values[~labels]
    if not len(positive) or not len(negative):
        return math.nan
    order = np.sort(negative)
    below = np.searchsorted(order, positive, side="left")
    upto = np.searchsorted(order, positive, side="right")
    return float((below + upto).mean() / 2 / len(negative))
