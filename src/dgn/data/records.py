"""What a labelled row contains: a query with its passages, and which of them are gold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dgn.text.query import Query


@dataclass(frozen=True, slots=True)
class Example:
    """A query with the passages to select from, and which of them are gold.

    Attributes:
        query: The query with its passages.
        gold: For each passage, whether some group of evidence names it.
        missing: Evidence that is not among the passages, as it is written in the row.
        label: What the row says about the query, if anything.
        source: The file and the line that it was read from, if any.
        unknown_keys: Keys of the row that have no meaning.
        aspects: Groups of passages that say the same, as numbers; a passage may be in several.
    """

    query: Query
    gold: tuple[bool, ...]
    missing: tuple[str, ...] = ()
    label: str | None = None
    source: str = ""
    unknown_keys: tuple[str, ...] = ()
    aspects: tuple[tuple[int, ...], ...] = ()


def without_blanks(example: Example) -> Example:
    """The example without blank sentences of documents; evidence in them is missing.

    Loose passages are identified by their index, so that none of them may be left out.
    """
    kept = [
        index
        for index, passage in enumerate(example.query.passages)
        if passage.text.strip() or passage.position is None
    ]
    query, gold = example.query, example.gold
    blank = set(range(len(gold))) - set(kept)
    lost = tuple(
        f"sentence {query.passages[index].position}, which is blank"
        for index in sorted(blank)
        if gold[index]
    )
    passages = tuple(query.passages[index] for index in kept)
    return replace(
        example,
        query=Query(query.text, passages, query.id, language=query.language),
        gold=tuple(gold[index] for index in kept),
        missing=(*example.missing, *lost),
    )
