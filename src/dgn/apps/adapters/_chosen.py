"""What the adapters of retrieval libraries share: limits, and what is said about a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

from dgn.errors import InvalidInput
from dgn.selector import Limits, PassageSelection, Selector
from dgn.text.query import Query

Chosen = tuple[int, dict[str, Any]]
"""A selected passage: its number among those given, and what is said about it.

The metadata has `dgn_gain`, what it added to the model's function; `dgn_relevance`, the share of
the query that it covers by itself; and `dgn_covers`, the content words of the query that it, or its
title, contains and that were not fully covered before.
"""


UNNAMED = "a selector without a name"
"""What an adapter saves as its model if it was given a selector, and not the name of a model."""


def selector_for(model: str | None, selector: Selector | None) -> Selector:
    """The selector of an adapter.

    Args:
        model: A model of `Selector.from_pretrained`.
        selector: A selector that is loaded already, or None.
    """
    if selector is not None:
        return selector
    if model == UNNAMED:
        raise InvalidInput(
            "model",
            message="The adapter was saved with a selector that has no name; pass selector=…, or "
            "give the adapter that is saved model=… in addition to selector=….",
        )
    return Selector.from_pretrained(model)


def saved_model(model: str | None, *, has_own_selector: bool) -> str | None:
    """What an adapter saves as its model: never the default in place of a selector of its own."""
    return UNNAMED if has_own_selector and model is None else model


def limits_of(given: Any) -> Limits:
    """Limits, or a dictionary of them such as `Limits.to_dict` returns.

    Raises:
        InvalidInput: It is neither, or has an unknown key.
    """
    if isinstance(given, Limits):
        return given
    names = [one.name for one in fields(Limits)]
    if not isinstance(given, Mapping):
        raise InvalidInput("limits", found=f"{given!r:.40}", allowed="Limits or a dictionary")
    values = cast("Mapping[str, Any]", given)
    unknown = [name for name in values if name not in names]
    if unknown:
        raise InvalidInput("limits", found=repr(unknown[0]), allowed=", ".join(names))
    return Limits(**values)


def gather_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an adapter, where `k`, `max_tokens` and so on become one `limits`.

    Args:
        options: The keyword arguments of the adapter. `top_n` and `top_k`, as other adapters call
            it, are k. Limits that are given by themselves change `limits`; as everywhere, k is 5 if
            neither k, max_tokens nor stop_at is given.
    """
    names = {one.name for one in fields(Limits)}
    options = {
        "k" if name in ("top_n", "top_k") else name: value for name, value in options.items()
    }
    given = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    if not given:
        return others
    base = limits_of(others.get("limits", Limits()))
    values = {one.name: getattr(base, one.name) for one in fields(base)}
    return {**others, "limits": Limits(**(values | given))}


def filled_scores(scores: Sequence[float | None]) -> list[float]:
    """Scores of which some may be missing; those count as the worst."""
    worst = min((one for one in scores if isinstance(one, int | float)), default=0.0)
    return [worst if one is None else one for one in scores]


def choose(
    selector: Selector,
    query: str,
    texts: Sequence[str],
    limits: Limits,
    metadata: Sequence[Mapping[str, Any]],
    *,
    title_key: str = "title",
    group_key: str | None = None,
    pinned_key: str | None = None,
    **arguments: Any,
) -> list[Chosen]:
    """Select from the texts of some documents; from none, none.

    Args:
        selector: What selects.
        query: A claim or a question.
        texts: The texts of the documents.
        limits: How much to select. What `max_per_document` counts is named by `source` in the
            metadata, or else by the title.
        metadata: The metadata of the documents.
        title_key: The key with the title; documents may lack it.
        group_key: The key with the group, for `max_per_group`.
        pinned_key: The key that is true for documents that must be kept.
        arguments: scores, given and embeddings, as in `Query.of`.
    """
    if not texts:
        return []
    titles = [str(one.get(title_key) or "") for one in metadata]
    groups = None if group_key is None else [one.get(group_key) for one in metadata]
    if limits.max_per_document is not None and any("source" in one for one in metadata):
        limits = replace(limits, max_per_document=None, max_per_group=limits.max_per_document)
        groups = [
            one.get("source") or title or None for one, title in zip(metadata, titles, strict=True)
        ]
    pinned = [number for number, one in enumerate(metadata) if pinned_key and one.get(pinned_key)]
    built = Query.of(query, texts, titles=titles, groups=groups, pinned=pinned, **arguments)
    return chosen_of(selector.select_queries([built], limits)[0])


def chosen_of(selection: PassageSelection) -> list[Chosen]:
    """The selected passages of a selection."""
    explanation = selection.explain()
    content = {explanation.words[number] for number in explanation.content_words}
    chosen: list[Chosen] = []
    for report in explanation.selected:
        contained = (word.word for word in report.covers if word.source != "similar")
        metadata = {
            "dgn_gain": report.gain,
            "dgn_relevance": report.relevance,
            "dgn_covers": list(dict.fromkeys(word for word in contained if word in content)),
        }
        chosen.append((report.index, metadata))
    return chosen
