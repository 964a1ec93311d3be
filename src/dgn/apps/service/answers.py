"""The bodies of answers: as OpenAPI describes them, and how selections become them."""

from __future__ import annotations

import json
import uuid
from functools import cache
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from dgn.core import Selections, top_k
from dgn.evaluation import Bm25, Diversified, PooledTopK
from dgn.selector import PassageSelection, Selector
from dgn.selector.coverage import coverage_after
from dgn.text import PooledVectors, open_vectors
from dgn.text.explanation import Reason

_DIVERSITY = 0.3
"""Of MMR, as in docs/quality.md."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SelectedRow(_Answer):
    """A selected passage."""

    index: int = Field(description="Its number among the passages, or sentences, from 0.")
    text: str
    gain: float = Field(description="What it added to the model's function.")
    relevance: float = Field(
        description="The share of the query that it covers alone, from 0 to 1."
    )
    title: str | None = None
    document: int | None = Field(None, description="The number of its document, from 0.")
    position: int | None = Field(None, description="Its position in the document, from 0.")
    start: int | None = Field(None, description="Where it begins in the text, in characters.")
    end: int | None = None
    id: str | None = None
    metadata: dict[str, JsonValue] | None = None


class SelectionAnswer(_Answer):
    """What was selected for one query."""

    id: str | None = None
    query: str
    selected: list[SelectedRow] = Field(description="In the order of selection.")
    coverage: float | None = Field(description="The share of the query that is covered.")
    sufficiency: float | None = Field(
        description="The probability that the answer is among the selected passages; null if the "
        "model is not calibrated."
    )
    certificate: float = Field(
        description="At least this share of the best possible value was reached; 1 is optimal."
    )
    context: str | None = Field(None, description="The text for a prompt, if it was asked for.")
    receipt: dict[str, JsonValue] | None = Field(
        None, description="What happened to every passage, if it was asked for; see the docs."
    )


class SelectionsAnswer(_Answer):
    """What was selected for many queries, in their order."""

    selections: list[SelectionAnswer]


class WordRow(_Answer):
    """A word of the query, and how far it is covered after 0, 1, … selections."""

    word: str
    weight: float
    is_content: bool = Field(description="Whether it is more than a function word.")
    covered: list[float]


class PassageRow(_Answer):
    """A passage, and where it comes from."""

    text: str
    title: str
    document: int | None
    position: int | None
    start: int | None
    end: int | None
    id: str | None
    score: float | None
    metadata: dict[str, JsonValue]


class CoverRow(_Answer):
    """A word of the query that a passage covers further."""

    word: str
    before: float
    after: float
    source: Literal["text", "title", "similar", "asked"]


class SelectedReason(_Answer):
    """Why a passage was selected; see `dgn.text.explanation.SelectedPassage`."""

    index: int
    passage: PassageRow
    gain: float
    gains: list[float]
    word_gain: float
    runner_up: int | None
    runner_up_gain: float
    covers: list[CoverRow]
    covered: float
    is_pinned: bool


class PassedReason(_Answer):
    """Why a passage was not selected; see `dgn.text.explanation.PassedPassage`."""

    index: int
    passage: PassageRow
    gains: list[float]
    like: int | None
    overlap: float
    reason: Reason


class ExplanationRow(_Answer):
    """The reasons, as data; see `dgn.text.explanation.Explanation`."""

    query: str
    words: list[WordRow]
    selected: list[SelectedReason]
    passed: list[PassedReason]
    certificate: float
    length_counts: bool


class ExplanationAnswer(_Answer):
    """A selection with its reasons."""

    selection: SelectionAnswer
    explanation: ExplanationRow
    text: str = Field(description="The explanation for people.")


class ComparedRow(_Answer):
    """What another method selects from the same passages."""

    method: str
    description: str
    indices: list[int]
    coverage: float | None = Field(
        description="The share of the query that its passages cover, by dgn's own function."
    )


class ComparisonAnswer(_Answer):
    """Methods next to each other; each selects as many passages as dgn."""

    methods: list[ComparedRow]


class RerankText(_Answer):
    """The text of a document."""

    text: str


class RerankRow(_Answer):
    """A document, best first."""

    index: int
    relevance_score: float = Field(
        description="From 0 to 1 and never increasing: the share of the query that the first "
        "document covers, then smaller in proportion to what each document adds."
    )
    document: RerankText | None = None


class RerankAnswer(_Answer):
    """What the clients of Cohere and Jina read."""

    id: str
    object: Literal["list"]
    model: str
    results: list[RerankRow]
    usage: dict[str, int]
    meta: dict[str, Any]


class RefusalAnswer(BaseModel):
    """An error: RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[dict[str, Any]] | None = None


class StatusAnswer(_Answer):
    """Whether the service works."""

    status: str
    version: str


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _row(selection: PassageSelection, asked: Any) -> dict[str, Any]:
    found = selection.to_dict()
    if selection.query.id:
        found = {"id": selection.query.id} | found
    if asked.context:
        found["context"] = selection.context()
    if asked.receipt:
        found["receipt"] = selection.receipt().to_dict()
    return found


def one_body(found: list[PassageSelection], asked: Any) -> bytes:
    """The selection of the only query of a request."""
    return _to_json(_row(found[0], asked))


def many_body(found: list[PassageSelection], asked: Any) -> bytes:
    """The selections of many queries."""
    return _to_json({"selections": [_row(one, asked) for one in found]})


def explained_body(found: list[PassageSelection], asked: Any) -> bytes:
    """The selection of the only query, with its reasons."""
    explanation = found[0].explain()
    return _to_json(
        {
            "selection": _row(found[0], asked),
            "explanation": explanation.to_dict(),
            "text": str(explanation),
        }
    )


def compared_body(found: list[PassageSelection], asked: Any) -> bytes:
    """What several methods select for the only query."""
    del asked
    return _to_json({"methods": _other_methods(found[0])})


def reranked_body(
    selection: PassageSelection, count: int, with_texts: bool, selector: Selector
) -> bytes:
    """Documents in the order of selection, then those that repeat others."""
    texts = selection.query.texts
    order = [*selection.indices, *sorted(set(range(len(texts))) - set(selection.indices))][:count]
    first = selection.gains[0] if selection.gains else 0.0
    best = selection.relevance[order[0]]
    scores = [best * gain / first if first > 0 else 0.0 for gain in selection.gains]
    scores += [0.0] * (len(order) - len(scores))
    results: list[dict[str, Any]] = []
    least = 1.0
    for index, score in zip(order, scores, strict=True):
        least = min(least, max(0.0, score))
        row: dict[str, Any] = {"index": index, "relevance_score": least}
        if with_texts:
            row["document"] = {"text": texts[index]}
        results.append(row)
    tokens = sum(selector.encoder.count_tokens([selection.query.text, *texts]))
    return _to_json(
        {
            "id": uuid.uuid4().hex,
            "object": "list",
            "model": "dgn",
            "results": results,
            "usage": {"total_tokens": tokens},
            "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 0}},
        }
    )


@cache
def _vectors() -> PooledVectors:
    return open_vectors("wordllama")


def _other_methods(selection: PassageSelection) -> list[dict[str, Any]]:
    """Select as many passages as dgn did, by other methods.

    Returns:
        For each method its name, a description, the passages it selects and how much of the query
        they cover by dgn's function.
    """
    count = len(selection)
    found: list[tuple[str, str, tuple[int, ...]]] = [
        ("dgn", "the passages that together cover most", selection.indices)
    ]
    if count:
        query = selection.query
        f, items = selection.objective, selection.items
        gains = f.gains(items, f.empty(items))
        alone = cast("Selections", top_k(gains, count, items.mask))[0]
        by_words = Bm25(stemmed=True).select([query], count)[0]
        by_vectors = PooledTopK(_vectors()).select([query], count)[0]
        diverse = Diversified("mmr", _vectors(), _DIVERSITY).select([query], count)[0]
        found += [
            ("one by one", "the same function on each passage alone: no search", alone.indices),
            ("BM25", "top-k by BM25 with stems", _kept(by_words)),
            ("top-k", "top-k by cosine of word vectors", _kept(by_vectors)),
            ("MMR", f"MMR of pyversity, diversity {_DIVERSITY:g}, same vectors", _kept(diverse)),
        ]
    rows: list[dict[str, Any]] = []
    twins = selection.query.twins
    for method, description, indices in found:
        # A repeated passage is covered by the one that it repeats.
        originals = [twins[index] for index in indices]
        covered = coverage_after(selection.objective, selection.items, originals)
        rows.append(
            {
                "method": method,
                "description": description,
                "indices": list(indices),
                "coverage": None if covered is None else float(covered[-1]),
            }
        )
    return rows


def _kept(indices: Any) -> tuple[int, ...]:
    return tuple(int(index) for index in indices if index >= 0)
