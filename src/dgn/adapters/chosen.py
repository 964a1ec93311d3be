"""What the adapters of retrieval libraries share: selected passages, and what to say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dgn.selector import PassageSelection, Selector

GAIN, SCORE, COVERS = "dgn_gain", "dgn_score", "dgn_covers"
"""The keys of the metadata."""


@dataclass(frozen=True)
class Chosen:
    """A selected passage.

    Attributes:
        index: Its number among those given.
        gain: What it added to the model's function.
        score: The share of the query that it covers by itself, from 0 to 1.
        covers: The content words of the query that it, or its title, contains and that were not
            fully covered before.
    """

    index: int
    gain: float
    score: float
    covers: tuple[str, ...]

    def metadata(self) -> dict[str, Any]:
        """The same as plain values, for the metadata of a document."""
        return {GAIN: self.gain, SCORE: self.score, COVERS: list(self.covers)}


def choose(
    selector: Selector,
    query: str,
    texts: Sequence[str],
    *,
    titles: Sequence[str] | None = None,
    scores: Sequence[float] | None = None,
    **limits: Any,
) -> list[Chosen]:
    """Select from texts; from none, none.

    Args:
        selector: What selects.
        query: A claim or a question.
        texts: The passages.
        titles: One title for each, or None.
        scores: One score for each, or None.
        limits: k, max_tokens, coverage, min_relevance and score_weight of `Selector.select`.
    """
    if not texts:
        return []
    return chosen_of(selector.select(query, texts, titles=titles, scores=scores, **limits))


def chosen_of(selection: PassageSelection) -> list[Chosen]:
    """The selected passages of a selection."""
    explanation = selection.explain()
    content = {explanation.words[place] for place in explanation.content_words}
    found: list[Chosen] = []
    for one in explanation.selected:
        said = (word.word for word in one.covers if word.source != "similar")
        covers = tuple(dict.fromkeys(word for word in said if word in content))
        found.append(Chosen(one.index, one.gain, selection.scores[one.index], covers))
    return found
