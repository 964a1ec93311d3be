"""What the adapters of retrieval libraries share: limits, and what is said about a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
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
        options: The keyword arguments of the adapter. Limits that are given by themselves change
            `limits`; as everywhere, k is 5 if neither k, max_tokens nor stop_at is given.
    """
    names = {one.name for one in fields(Limits)}
    given = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    if not given:
        return others
    base = limits_of(others.get("limits", Limits()))
    values = {one.name: getattr(base, one.name) for one in fields(base)}
    return {**others, "limits": Limits(**(values | given))}


def scores_at(metadata: Sequence[Mapping[str, Any]], key: str | None) -> list[float] | None:
    """The scores in the metadata of some documents; None if there is no key.

    Raises:
        InvalidInput: A document lacks the key.
    """
    if key is None:
        return None
    for number, one in enumerate(metadata):
        if one.get(key) is None:
            raise InvalidInput(
                "score_key",
                message=f"documents[{number}] has no {key!r} in its metadata, which score_key "
                "names; every document needs it.",
            )
    return [one[key] for one in metadata]


def filled_scores(scores: Sequence[float | None]) -> list[float]:
    """Scores of which some may be missing; those count as the worst."""
    worst = min((score for score in scores if score is not None), default=0.0)
    return [worst if score is None else score for score in scores]


def marked(metadata: Sequence[Mapping[str, Any]], key: str | None) -> list[int] | None:
    """The documents whose metadata has a true value at a key; None if there is no key."""
    if key is None:
        return None
    return [number for number, one in enumerate(metadata) if one.get(key)]


def grouped(metadata: Sequence[Mapping[str, Any]], key: str | None) -> list[Any] | None:
    """The groups in the metadata of some documents; None if there is no key."""
    return None if key is None else [one.get(key) for one in metadata]


def choose(
    selector: Selector,
    query: str,
    texts: Sequence[str],
    limits: Limits,
    *,
    receipt: bool = False,
    **arguments: Any,
) -> list[Chosen]:
    """Select from texts; from none, none.

    Args:
        selector: What selects.
        query: A claim or a question.
        texts: The passages.
        limits: How much to select.
        receipt: Whether the metadata of the first one has the receipt, as `dgn_receipt`.
        arguments: titles, scores, embeddings and the other arguments of `Query.of`.
    """
    if not texts:
        return []
    built = Query.of(query, texts, **arguments)
    selection = selector.select_queries([built], limits)[0]
    chosen = chosen_of(selection)
    if receipt and chosen:
        chosen[0][1]["dgn_receipt"] = selection.receipt().to_dict()
    return chosen


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
