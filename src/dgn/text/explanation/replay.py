"""From a search to its reasons: replay it, and describe every step in the words of the query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.core import Selection, Step, explain
from dgn.core.functions import Items, SetFunction, State
from dgn.text.encoders.base import Facet
from dgn.text.explanation.reasons import (
    Explanation,
    PassedPassage,
    Reason,
    SelectedPassage,
    Source,
    WordCoverage,
)
from dgn.text.languages import stems_of
from dgn.text.query import Query
from dgn.text.spelling import title_text

_LEAST_INCREASE = 0.02
"""A smaller increase of coverage is not reported."""

_LEAST_WORTH = 0.1
"""An item that covers less than this share of the best one covers next to nothing."""


def explain_passages(
    query: Query,
    selection: Selection,
    objective: SetFunction,
    items: Items,
    facets: Sequence[Facet],
    covered: NDArray[np.float64],
    alone: NDArray[np.float64],
    weights: NDArray[np.float64],
    constraints: Mapping[str, Any],
    *,
    is_stopped: bool = False,
    irrelevant: Collection[int] = (),
) -> Explanation:
    """Replay a search for passages, and describe it in the words of the query.

    Args:
        query: The query with its passages.
        selection: What was selected.
        objective: The function that was maximized.
        items: The passages as items.
        facets: The words of the query, with their features.
        covered: [selected + 1, features], how far each feature is covered.
        alone: [selected, features], how far each selected passage covers each feature by itself.
        weights: [features], how much each feature counts.
        constraints: Further arguments of the search, as `dgn.explain` takes them.
        is_stopped: Whether the search stopped because enough was covered.
        irrelevant: The passages that were left out because of their relevance.
    """
    steps = explain(objective, items, selection, **constraints)
    names = tuple(facet.name for facet in facets)
    word_weights = np.array([weights[list(facet.features)].sum() for facet in facets])
    content = [
        number
        for number, facet in enumerate(facets)
        # What is asked for weighs nothing if no rule can find it in these passages.
        if facet.is_content and (word_weights[number] > 0 or not facet.is_asked)
    ]
    word_weights = word_weights / (word_weights.sum() or 1.0)
    coverage = _by_facet(facets, covered, weights)
    total = np.clip(coverage @ word_weights, 0.0, 1.0)
    sources = tuple(_sources(facets, query, step.index) for step in steps)
    selected = tuple(
        SelectedPassage(
            step.index,
            query.passages[step.index],
            step.gain,
            tuple(earlier.gains[step.index] for earlier in steps[: number + 1]),
            float(_facet_gains(facets, step).sum()),
            step.runner_up,
            step.runner_up_gain,
            _increases(
                facets,
                coverage[number],
                coverage[number + 1],
                _facet_gains(facets, step),
                sources[number],
            ),
            float(total[number + 1]),
            step.is_pinned,
        )
        for number, step in enumerate(steps)
    )
    return Explanation(
        query.text,
        selected,
        _passed(
            query,
            selection,
            objective,
            items,
            steps,
            constraints,
            is_stopped=is_stopped,
            irrelevant=irrelevant,
        ),
        selection.certificate,
        names,
        tuple(content or range(len(facets))),
        tuple(word_weights.tolist()),
        coverage,
        _by_facet(facets, alone, weights),
        sources,
        "costs" in constraints,
    )


def _by_facet(
    facets: Sequence[Facet], shares: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[rows, facets], from [rows, features]: the weighted mean of the features of each facet."""
    found = np.zeros((len(shares), len(facets)))
    for number, facet in enumerate(facets):
        own = list(facet.features)
        # A word whose features do not weigh anything is covered as far as they are on average.
        parts = weights[own] if weights[own].sum() else np.ones(len(own))
        found[:, number] = shares[:, own] @ parts / parts.sum()
    return np.clip(found, 0.0, 1.0)


def _facet_gains(facets: Sequence[Facet], step: Step) -> NDArray[np.float64]:
    """[facets], what the selected passage added by each of them."""
    gained = np.array(step.contributions)
    return np.array([gained[list(facet.features)].sum() for facet in facets])


def _increases(
    facets: Sequence[Facet],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    gains: NDArray[np.float64],
    sources: Sequence[Source],
) -> tuple[WordCoverage, ...]:
    increased = [n for n in range(len(facets)) if after[n] - before[n] >= _LEAST_INCREASE]
    increased.sort(key=lambda n: -gains[n])
    words: dict[str, WordCoverage] = {}  # a word that the query repeats is told once
    for n in increased:
        name = facets[n].name
        covered = WordCoverage(name, float(before[n]), float(after[n]), sources[n])
        words.setdefault(name.lower(), covered)
    return tuple(words.values())


def _sources(facets: Sequence[Facet], query: Query, index: int) -> tuple[Source, ...]:
    """By what a passage covers each word, if it does."""
    passage, languages = query.passages[index], query.languages
    title = stems_of(title_text(passage.title), languages[0])  # it is read as the query is
    stems = stems_of(passage.text, languages[index + 1]), title
    return tuple("asked" if one.is_asked else _source(one.stem, *stems) for one in facets)


def _source(stem: str, text: frozenset[str], title: frozenset[str]) -> Source:
    if stem in text:
        return "text"
    return "title" if stem in title else "similar"


def _passed(
    query: Query,
    selection: Selection,
    objective: SetFunction,
    items: Items,
    steps: tuple[Step, ...],
    constraints: Mapping[str, Any],
    *,
    is_stopped: bool,
    irrelevant: Collection[int],
) -> tuple[PassedPassage, ...]:
    chosen = set(selection.indices)
    overlaps = _overlaps(objective.counted(), items, selection.indices)
    left = _gains_left(objective, items, selection, constraints.get("context"))
    found: list[PassedPassage] = []
    nothing = (0.0,) * len(steps)
    for index, passage in enumerate(query.passages):
        if index in chosen:
            continue
        twin = query.twins[index]
        if index in query.repeats_given:
            found.append(PassedPassage(index, passage, nothing, None, 1.0, "repeats_given"))
        elif twin != index:
            found.append(PassedPassage(index, passage, nothing, twin, 1.0, "repeats"))
        elif index in irrelevant:
            found.append(PassedPassage(index, passage, nothing, None, 0.0, "irrelevant"))
        else:
            nearest = int(overlaps[index].argmax()) if overlaps[index].any() else None
            reason: Reason = "adds_nothing"
            if left[index] > 0:
                reason = _limit(index, selection, constraints) or (
                    "stopped" if is_stopped else "less_gain"
                )
            found.append(
                PassedPassage(
                    index,
                    passage,
                    tuple(step.gains[index] for step in steps),
                    None if nearest is None else selection.indices[nearest],
                    0.0 if nearest is None else float(overlaps[index, nearest]),
                    reason,
                )
            )
    found.sort(key=lambda one: -max(one.gains, default=0.0))
    return tuple(found)


def _gains_left(
    objective: SetFunction, items: Items, selection: Selection, context: State | None
) -> NDArray[np.float64]:
    """[items], what each item would add to the selection."""
    state = objective.empty(items, context)
    for index in selection.indices:
        member = np.zeros((1, items.size), items.features.dtype)
        member[0, index] = 1
        state = objective.add(items, state, member)
    return np.asarray(objective.gains(items, state), np.float64)[0]


def _limit(index: int, selection: Selection, constraints: Mapping[str, Any]) -> Reason | None:
    """The limit that a further item would exceed, apart from the number of items."""
    chosen = list(selection.indices)
    groups, costs = constraints.get("groups"), constraints.get("costs")
    if groups is not None and groups[0, index] >= 0:
        count = int((groups[0, chosen] == groups[0, index]).sum())
        if count >= constraints["max_per_group"]:
            return "over_quota"
    if costs is not None and costs[0, [*chosen, index]].sum() > constraints["budget"]:
        return "too_long"
    return None


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
