"""From a search to its reasons: one replay of the search, in the words of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dgn.core.constraints import Constraints
from dgn.core.functions import FacilityLocation, Items, Mixture, SetFunction
from dgn.core.steps import Step, replay
from dgn.errors import InvalidInput
from dgn.selector.coverage import covered_alone, covered_features
from dgn.selector.search import context_of, length_exponent
from dgn.text.encoder import Facet
from dgn.text.explanation import (
    NEARLY_EQUAL,
    Explanation,
    PassageReport,
    Reason,
    Source,
    WordCoverage,
)
from dgn.text.languages import stems_of
from dgn.text.query import Query
from dgn.text.similarity import contents_of, default_reader
from dgn.text.spelling import title_text

if TYPE_CHECKING:
    from dgn.selector.result import PassageSelection

_LEAST_INCREASE = 0.02
"""A smaller increase of coverage is not reported."""

_LEAST_SIMILARITY = 0.5
"""A smaller similarity is not reported."""

_MOST_COMPARED = 512
_MOST_WITHOUT_QUERY = 2048

_LEAST_WORTH = 0.1
"""An item that covers less than this share of the best one covers next to nothing."""


def explained(selection: PassageSelection) -> Explanation:
    """Why each passage of a query was selected, or was not."""
    if len(selection.query.passages) > _MOST_WITHOUT_QUERY and not selection.query.text:
        raise InvalidInput(
            "passages",
            message=f"Without a query, reasons are given for at most {_MOST_WITHOUT_QUERY:,} "
            "passages.",
        )
    query, f, items = selection.query, selection.objective, selection.items
    constraints = selection.constraints
    if constraints is None:
        most = selection.limits.most(len(query.passages))
        (constraints,) = Constraints.of_sets(items.mask, most, single=True)
    context = None if selection.given is None else context_of(f, selection.given)
    searched = items if selection.new is None else selection.new
    steps, left = replay(f, searched, selection, constraints, context)
    covered = None
    if query.text:
        covered = covered_features(f, items, selection.indices, selection.given)
    facets = selection.facets if covered is not None else ()
    shares, weights = covered or (np.zeros((len(selection) + 1, 0)), np.zeros(0))
    measured = None if covered is None else covered_alone(f, items, selection.indices)
    alone = np.zeros((len(selection), 0)) if measured is None else measured[0]
    word_weights = np.array([weights[list(facet.features)].sum() for facet in facets])
    coverage = _by_facet(facets, shares, weights)
    sources = tuple(_sources(facets, query, index) for index in selection.indices)
    content = [number for number, facet in enumerate(facets) if facet.is_content]
    covers = [
        _increases(facets, coverage[place : place + 2], step, sources[place], selection)
        for place, step in enumerate(steps)
    ]
    return Explanation(
        query.text,
        query.passages,
        _with_similarities(_reports(selection, steps, left, covers, constraints), selection),
        selection.indices,
        selection.certificate,
        tuple(facet.name for facet in facets),
        tuple(content or range(len(facets))),
        tuple((word_weights / (word_weights.sum() or 1.0)).tolist()),
        coverage,
        _by_facet(facets, alone, weights),
        sources,
        selection.tokens is not None,
        selection.compared,
    )


def _reports(
    selection: PassageSelection,
    steps: Sequence[Step],
    left: NDArray[np.float64],
    covers: Sequence[tuple[WordCoverage, ...]],
    constraints: Constraints,
) -> list[PassageReport]:
    """What happened to each passage.

    Args:
        selection: What was selected.
        steps: Its steps.
        left: [passages], what each would add to the selection.
        covers: For each step, the words that its passage covers.
        constraints: Those of the search.
    """
    query, tokens = selection.query, selection.tokens
    place_of = {step.index: place for place, step in enumerate(steps)}
    overlaps = _overlaps(selection.objective.counted(), selection.items, selection.indices)
    too_long = _too_long(steps, left, constraints)
    for step in steps:
        constraints = constraints.after(step.index)
    reports: list[PassageReport] = []
    for index, relevance in enumerate(selection.relevance):
        count = None if tokens is None else tokens[index]
        gains = tuple(step.gains[index] for step in steps)
        if index in place_of:
            step = steps[place_of[index]]
            report = PassageReport(
                index,
                "pinned" if step.is_pinned else "selected",
                step.gain,
                gains[: place_of[index] + 1],
                relevance,
                count,
                covers[place_of[index]],
                step.runner_up,
            )
        elif index in query.blank:
            report = PassageReport(index, "adds_nothing", None, (), relevance, count)
        elif index in query.repeats_given:
            report = PassageReport(index, "repeats_given", None, (), relevance, count)
        elif query.twins[index] != index:
            twin = query.twins[index]
            report = PassageReport(
                index, "repeats", None, (), relevance, count, like=twin, overlap=1.0
            )
        elif relevance < selection.limits.min_relevance:
            report = PassageReport(index, "irrelevant", None, (), relevance, count)
        else:
            like, overlap = None, 0.0
            if overlaps[index].any():
                nearest = int(overlaps[index].argmax())
                like, overlap = selection.indices[nearest], float(overlaps[index, nearest])
            reason = "too_long" if index in too_long else ""
            reason = reason or _dropped(index, selection, left, constraints)
            report = PassageReport(
                index, reason, None, gains, relevance, count, like=like, overlap=overlap
            )
        reports.append(report)
    return reports


def _with_similarities(
    reports: list[PassageReport], selection: PassageSelection
) -> tuple[PassageReport, ...]:
    """The same reports with how similar the passages are to the selected ones."""
    similar, order = _similarities(selection), list(selection.indices)
    if similar is None or not order:
        return tuple(reports)
    columns = similar[:, order].copy()
    columns[order, range(len(order))] = 0  # other than itself
    nearest, highest = columns.argmax(axis=1), columns.max(axis=1)
    stands_for: dict[int, list[int]] = {}
    found: list[PassageReport] = []
    for report in reports:
        index = report.index
        similarity, other = float(highest[index]), order[int(nearest[index])]
        if similarity >= _LEAST_SIMILARITY:
            report = replace(report, similar_to=other, similarity=similarity)
            if similarity >= NEARLY_EQUAL and not report.is_selected:
                stands_for.setdefault(other, []).append(index)
        found.append(report)
    return tuple(
        replace(report, stands_for=tuple(stands_for[report.index]))
        if report.index in stands_for
        else report
        for report in found
    )


def _similarities(selection: PassageSelection) -> NDArray[np.float32] | None:
    """[passages, passages], how similar they are; None for too many passages.

    They are those of the search, or, where it compared no passages, those of their words.
    """
    query, f, features = selection.query, selection.objective, selection.items.features[0]
    count = len(query.passages)
    if not query.text:
        return features
    if (
        isinstance(f, Mixture)
        and isinstance(f.functions[-1], FacilityLocation)
        and f.columns is not None
        and len(f.columns) == 2
    ):
        said = features[:count, f.columns[1]]
        compared = np.flatnonzero(said.any(axis=1))
        if len(compared) == said.shape[1]:
            similar = np.zeros((count, count), np.float32)
            similar[:, compared] = said
            return np.maximum(similar, similar.T)
    if count > _MOST_COMPARED:
        return None
    alone = replace(query, given=())
    return contents_of(default_reader(), alone, np.arange(count)).similarities()


def _too_long(
    steps: Sequence[Step], left: NDArray[np.float64], constraints: Constraints
) -> set[int]:
    """The passages that would have been taken, had there been room for them.

    At some step they were better, for their length, than what was taken; or they are the best of
    what is left in the end.
    """
    costs = constraints.costs
    if costs is None:
        return set()
    exponent = length_exponent(constraints)
    found: set[int] = set()
    for step in [*steps, None]:
        if step is not None and step.is_pinned:
            constraints = constraints.after(step.index)
            continue
        gains = left if step is None else np.array(step.gains)
        worth = gains / np.asarray(costs, np.float64) ** exponent
        worth = np.where(constraints.allowed & (gains > 0), worth, -1.0)
        best = worth.max(initial=-1.0) if step is None else worth[step.index] * (1 + 1e-9)
        is_over = costs > constraints.budget
        if best > 0:
            found |= set(np.flatnonzero(is_over & (worth >= best)).tolist())
        if step is not None:
            constraints = constraints.after(step.index)
    return found


def _dropped(
    index: int, selection: PassageSelection, left: NDArray[np.float64], constraints: Constraints
) -> Reason:
    """Why a passage that took part was not selected."""
    if left[index] <= 0:
        return "adds_nothing"
    groups, quotas = constraints.groups, constraints.quotas
    if groups is not None and quotas is not None and quotas[groups[index]] < 1:
        return "over_quota"
    most = selection.limits.most(len(selection.query.passages))
    if selection.limits.stop_at is not None and len(selection) < most:
        return "stopped"
    return "less_gain"


def _by_facet(
    facets: Sequence[Facet], shares: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[rows, facets], from [rows, features]: the weighted mean of the features of each facet."""
    found = np.zeros((len(shares), len(facets)))
    for number, facet in enumerate(facets):
        columns = list(facet.features)
        # A word whose features do not weigh anything is covered as far as they are on average.
        parts = weights[columns] if weights[columns].sum() else np.ones(len(columns))
        found[:, number] = shares[:, columns] @ parts / parts.sum()
    return np.clip(found, 0.0, 1.0)


def _increases(
    facets: Sequence[Facet],
    coverage: NDArray[np.float64],
    step: Step,
    sources: Sequence[Source],
    selection: PassageSelection,
) -> tuple[WordCoverage, ...]:
    """The words that a step covers further; `coverage` is that before and after it."""
    before, after = coverage
    gained = np.array(step.contributions)
    increased = [n for n in range(len(facets)) if after[n] - before[n] >= _LEAST_INCREASE]
    increased.sort(key=lambda n: -gained[list(facets[n].features)].sum())
    near: tuple[tuple[str, float], ...] = ()
    if selection.nearest_of is not None and any(sources[n] == "similar" for n in increased):
        near = selection.nearest_of(selection.query, step.index)
    words: dict[str, WordCoverage] = {}  # a word that the query repeats is told once
    for n in increased:
        name = facets[n].name
        nearest = near[n] if sources[n] == "similar" and len(near) == len(facets) else ("", 0.0)
        covered = WordCoverage(name, float(before[n]), float(after[n]), sources[n], *nearest)
        words.setdefault(name.lower(), covered)
    return tuple(words.values())


def _sources(facets: Sequence[Facet], query: Query, index: int) -> tuple[Source, ...]:
    """By what a passage covers each word, if it does."""
    passage = query.passages[index]
    stems = stems_of(passage.text, query.read_language)
    title = stems_of(title_text(passage.title), query.read_language)
    return tuple(
        "text" if facet.stem in stems else "title" if facet.stem in title else "similar"
        for facet in facets
    )


def _overlaps(
    objective: SetFunction, items: Items, selected: tuple[int, ...]
) -> NDArray[np.float64]:
    """[items, selected], the share of what an item covers that a selected item covers too.

    It is 0 for an item that covers next to nothing: what it shares says nothing then.
    """
    alone = objective.contributions(items, objective.empty(items))
    worth = np.asarray(alone, np.float64)[0]
    overlaps = np.zeros((len(worth), len(selected)))
    total = worth.sum(axis=1)
    covers = total > _LEAST_WORTH * total.max(initial=0.0)
    for number, index in enumerate(selected):
        shared = np.minimum(worth, worth[index]).sum(axis=1)
        overlaps[covers, number] = shared[covers] / total[covers]
    return overlaps
