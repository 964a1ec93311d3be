"""Baselines on the same queries: every score of each, and each against one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.data import Example
from dgn.errors import InvalidInput
from dgn.evaluation.baselines import Baseline
from dgn.evaluation.metrics import (
    Hits,
    Interval,
    PairedComparison,
    Scores,
    alpha_ndcg_at,
    aspect_hits_at,
    bootstrap_interval,
    hits_at,
    holm_p_values,
    paired_comparison,
)
from dgn.text.query import Query

_RESAMPLES = 2000

Indices = NDArray[np.int64]
"""[queries, k], the selected passages in order of selection, −1 where there are fewer."""


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """The queries of a comparison, with their gold.

    Args:
        examples: The queries with passages.
    """

    examples: tuple[Example, ...]

    def __post_init__(self) -> None:
        if not self.examples:
            raise InvalidInput("queries", message="The data set has no query with passages.")

    @property
    def queries(self) -> list[Query]:
        """The queries with their passages."""
        return [example.query for example in self.examples]

    @cached_property
    def gold(self) -> NDArray[np.bool_]:
        """[queries, passages], False for padding."""
        longest = max(len(example.gold) for example in self.examples)
        gold = np.zeros((len(self.examples), longest), dtype=bool)
        for row, example in enumerate(self.examples):
            gold[row, : len(example.gold)] = example.gold
        return gold

    @cached_property
    def missing(self) -> NDArray[np.int64]:
        """[queries], the number of gold sentences that are not among the passages."""
        return np.array([len(example.missing) for example in self.examples], dtype=np.int64)

    @property
    def aspects(self) -> list[tuple[tuple[int, ...], ...]]:
        """For each query, groups of passages that say the same; empty for rows with evidence."""
        return [example.aspects for example in self.examples]

    @property
    def has_aspects(self) -> bool:
        """Whether aspects are to be found, and not evidence."""
        return any(self.aspects)

    def hits_at(self, k: int, indices: Indices) -> Hits:
        """What the first k passages found."""
        if self.has_aspects:
            return aspect_hits_at(k, indices, self.aspects)
        return hits_at(k, indices, self.gold, self.missing)

    def recalls_at(self, k: int, indices: Indices) -> NDArray[np.float64]:
        """[queries with gold], the recall of each."""
        return self.hits_at(k, indices).recalls


@dataclass(frozen=True)
class ScoresAtK:
    """The scores of the first k passages.

    Attributes:
        k: How many passages.
        macro: Means over queries.
        micro: All passages together.
        recall: The macro recall with its interval; for rows with aspects, that of aspects.
        alpha_ndcg: α-nDCG with its interval; None for rows with evidence.
    """

    k: int
    macro: Scores
    micro: Scores
    recall: Interval
    alpha_ndcg: Interval | None = None


@dataclass(frozen=True, eq=False)
class BaselineResult:
    """How good a baseline is.

    Attributes:
        name: Its name.
        parameters: The number of its learned parameters.
        indices: What it selected.
        at: Its scores at each k.
    """

    name: str
    parameters: int
    indices: Indices
    at: tuple[ScoresAtK, ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        return {
            "name": self.name,
            "parameters": self.parameters,
            "at": [_with_f1(asdict(scores), scores) for scores in self.at],
        }


def run_comparison(
    baselines: Sequence[Baseline],
    evaluation_set: EvaluationSet,
    ks: Sequence[int],
    *,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda _: None,
) -> list[BaselineResult]:
    """Let every baseline select, and score it.

    Args:
        baselines: The baselines.
        evaluation_set: The queries with their gold.
        ks: Score the first k passages, for each of these k.
        seed: The seed of the bootstrap.
        on_progress: Called with the name of each baseline.
    """
    if not ks or min(ks) < 1:
        raise InvalidInput("ks", found=str(tuple(ks)), allowed="integers of at least 1")
    results: list[BaselineResult] = []
    for baseline in baselines:
        on_progress(baseline.name)
        selected = baseline.select(evaluation_set.queries, max(ks))
        indices = _checked(baseline, selected, evaluation_set)
        results.append(
            BaselineResult(
                baseline.name,
                baseline.parameters,
                indices,
                tuple(_scored(k, evaluation_set, indices, seed) for k in ks),
            )
        )
    return results


def compare(
    ours: BaselineResult,
    theirs: BaselineResult,
    evaluation_set: EvaluationSet,
    k: int,
    *,
    seed: int = 0,
) -> PairedComparison:
    """Two baselines by their recall at k on the same queries: one test, not corrected."""
    return _compare(ours, theirs, evaluation_set, k, seed, _RESAMPLES)


def compare_all(
    results: Sequence[BaselineResult],
    against: BaselineResult,
    evaluation_set: EvaluationSet,
    ks: Sequence[int],
    *,
    seed: int = 0,
) -> dict[str, dict[int, PairedComparison]]:
    """Every other baseline against one, at each k, corrected for the number of these tests.

    Returns:
        By name and k, comparisons that have a `holm_p_value`.
    """
    others = [result for result in results if result is not against]
    # The smallest p-value that permutations can give must survive the correction.
    resamples = max(_RESAMPLES, 100 * len(others) * len(ks))
    tests = [
        _compare(result, against, evaluation_set, k, seed, resamples)
        for result in others
        for k in ks
    ]
    corrected = iter(with_holm(tests))
    return {result.name: {k: next(corrected) for k in ks} for result in others}


def with_holm(comparisons: Iterable[PairedComparison]) -> list[PairedComparison]:
    """All comparisons of a table, in the same order, each with its corrected p-value."""
    given = list(comparisons)
    corrected = holm_p_values([test.p_value for test in given])
    return [replace(test, holm_p_value=float(p)) for test, p in zip(given, corrected, strict=True)]


def query_rows(
    evaluation_set: EvaluationSet, results: Sequence[BaselineResult]
) -> Iterable[dict[str, Any]]:
    """For every query, what each baseline selected and what is gold."""
    for row, example in enumerate(evaluation_set.examples):
        gold = [index for index, is_gold in enumerate(example.gold) if is_gold]
        yield {
            "id": example.query.id,
            "query": example.query.text,
            "gold": [_place(example, index) for index in gold],
            "selected": {
                result.name: [
                    {**_place(example, index), "gold": index in gold}
                    for index in result.indices[row].tolist()
                    if index >= 0
                ]
                for result in results
            },
        }


def format_score(number: float) -> str:
    """Three decimal places without the leading zero, as in tables."""
    return f"{number:.3f}".removeprefix("0")


def format_scores(numbers: Iterable[float]) -> str:
    """Several scores in a row."""
    return " / ".join(format_score(number) for number in numbers)


def format_difference(mean: float, p_value: float) -> str:
    """A difference with its sign and its p-value."""
    p = "<.001" if p_value < 0.001 else format_score(p_value)
    return f"{mean:+.3f}".replace("0.", ".", 1) + f" ({p})"


def format_comparison(comparison: PairedComparison) -> str:
    """A difference with its corrected p-value, marked by a star if that is below .05."""
    p = comparison.p_value if comparison.holm_p_value is None else comparison.holm_p_value
    return format_difference(comparison.difference.mean, p) + ("*" if p < 0.05 else " ")


def _compare(
    ours: BaselineResult,
    theirs: BaselineResult,
    evaluation_set: EvaluationSet,
    k: int,
    seed: int,
    resamples: int,
) -> PairedComparison:
    first, second = (evaluation_set.recalls_at(k, result.indices) for result in (ours, theirs))
    return paired_comparison(first, second, seed=seed, resamples=resamples)


def _place(example: Example, index: int) -> dict[str, Any]:
    """Where a passage is: its document, if there is one, and its sentence there, or its index."""
    passage = example.query.passages[index]
    sentence = index if passage.position is None else passage.position
    return {"document": passage.document, "sentence": sentence}


def _checked(baseline: Baseline, selected: Any, evaluation_set: EvaluationSet) -> Indices:
    """What a baseline returned, checked to be different passages of each query."""
    indices: Indices = np.asarray(selected)
    lengths = [len(example.gold) for example in evaluation_set.examples]
    fits = indices.ndim == 2 and len(indices) == len(lengths) and indices.dtype.kind == "i"
    fits = fits and bool((indices >= -1).all() and (indices < np.array(lengths)[:, None]).all())
    if not fits or any(len(set(row[row >= 0])) < (row >= 0).sum() for row in indices):
        raise InvalidInput(
            "baseline",
            message=f"{getattr(baseline, 'name', baseline)} returned {indices.dtype} of shape "
            f"{indices.shape}; it must return integers of shape ({len(lengths)}, k), different "
            "passages of each query and −1 for none.",
        )
    return indices


def _scored(k: int, evaluation_set: EvaluationSet, indices: Indices, seed: int) -> ScoresAtK:
    hits = evaluation_set.hits_at(k, indices)
    ranked = None
    if evaluation_set.has_aspects:
        values = alpha_ndcg_at(k, indices, evaluation_set.aspects)
        ranked = bootstrap_interval(values, seed=seed)
    recall = bootstrap_interval(hits.recalls, seed=seed)
    return ScoresAtK(k, hits.macro, hits.micro, recall, ranked)


def _with_f1(row: dict[str, Any], scores: ScoresAtK) -> dict[str, Any]:
    row["macro"]["f1"], row["micro"]["f1"] = scores.macro.f1, scores.micro.f1
    return row
