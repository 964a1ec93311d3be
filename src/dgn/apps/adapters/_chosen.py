"""What the adapters of retrieval libraries share: limits, and what is said about a passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from dgn.selector import Limits, PassageSelection, Selector
from dgn.text.query import Query

Chosen = tuple[int, dict[str, Any]]
"""A selected passage: its number among those given, and what is said about it.

The metadata has `dgn_gain`, what it added to the model's function; `dgn_relevance`, the share of
the query that it covers by itself; and `dgn_covers`, the content words of the query that it, or its
title, contains and that were not fully covered before.
"""


def gather_limits(options: dict[str, Any]) -> dict[str, Any]:
    """The options of an adapter, where `k`, `max_tokens` and so on become one `limits`.

    Args:
        options: The keyword arguments of the adapter. Limits that are given by themselves change
            `limits`; as everywhere, k is 5 if neither k, max_tokens nor stop_at is given.
    """
    names = {one.name for one in fields(Limits)}
    given = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    if not given:
        return others
    base: Limits = others.get("limits", Limits())
    values = {one.name: getattr(base, one.name) for one in fields(base)}
    return {**others, "limits": Limits(**(values | given))}


def choose(
    selector: Selector,
    query: str,
    texts: Sequence[str],
    limits: Limits,
    *,
    titles: Sequence[str] | None = None,
    scores: Sequence[float] | None = None,
) -> list[Chosen]:
    """Select from texts; from none, none.

    Args:
        selector: What selects.
        query: A claim or a question.
        texts: The passages.
        limits: How much to select.
        titles: One title for each, or None.
        scores: One score for each, or None.
    """
    if not texts:
        return []
    built = Query.of(query, texts, titles=titles, scores=scores)
    return chosen_of(selector.select_queries([built], limits)[0])


def chosen_of(selection: PassageSelection) -> list[Chosen]:
    """The selected passages of a selection."""
    explanation = selection.explain()
    content = {explanation.words[number] for number in explanation.content_words}
    chosen: list[Chosen] = []
    for one in explanation.selected:
        contained = (word.word for word in one.covers if word.source != "similar")
        metadata = {
            "dgn_gain": one.gain,
            "dgn_relevance": selection.relevance[one.index],
            "dgn_covers": list(dict.fromkeys(word for word in contained if word in content)),
        }
        chosen.append((one.index, metadata))
    return chosen
