"""The receipt of a selection: what happened to every passage, and why, so that it can be checked.

receipt = selection.receipt()
Path("receipt.json").write_text(receipt.to_json())    # dgn verify receipt.json computes it again
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, final

import dgn
from dgn.core import Certificate
from dgn.errors import InvalidInput
from dgn.selector.limits import Limits
from dgn.text.explanation.reasons import Reason
from dgn.text.passages import Passage
from dgn.text.query import Query

if TYPE_CHECKING:
    from dgn.selector.result import PassageSelection
    from dgn.selector.selector import Selector

SCHEMA = "dgn-receipt-1"
_TOLERANCE = 1e-4
"""Numbers may differ by this much: processors round differently."""

Outcome: TypeAlias = Literal["selected", "pinned"] | Reason


@final
@dataclass(frozen=True)
class PassageOutcome:
    """What happened to a passage.

    Attributes:
        index: The passage.
        kept: Whether it was selected.
        reason: "selected", "pinned", or why it was dropped: see `PassedPassage.reason`.
        of: The passage that it repeats; None if it repeats none.
        gain: What it added; None if it was dropped.
        gains: What it would have added at each step, up to the one at which it was selected.
        relevance: The share of the query that it covers by itself.
        tokens: Its tokens; None without a token limit.
    """

    index: int
    kept: bool
    reason: Outcome
    of: int | None
    gain: float | None
    gains: tuple[float, ...]
    relevance: float
    tokens: int | None


@final
@dataclass(frozen=True, eq=False)
class Receipt:
    """What was asked, what was selected, and what happened to every passage.

    Attributes:
        query: The query with all its passages.
        limits: How much was to be selected.
        model: The name and the hash of the model.
        passages: What happened to each passage, in order.
        selected: The selected passages, in the order of selection.
        coverage: The share of the query that is covered.
        gap: The content words of the query that are covered less than half.
        sufficiency: The probability that what was selected answers the query; None if the model
            was not calibrated.
        certificate: How close to the best possible set the selection is, at least.
    """

    query: Query
    limits: Limits
    model: tuple[str, str]
    passages: tuple[PassageOutcome, ...]
    selected: tuple[int, ...]
    coverage: float | None
    gap: tuple[str, ...]
    sufficiency: float | None
    certificate: Certificate

    @classmethod
    def of(cls, selection: PassageSelection) -> Receipt:
        """The receipt of a selection."""
        explanation = selection.explain()
        tokens: Sequence[int | None] = (None,) * len(selection.query.passages)
        tokens = selection.search.tokens or tokens
        outcomes = [
            PassageOutcome(
                one.index,
                True,
                "pinned" if one.is_pinned else "selected",
                None,
                one.gain,
                one.gains,
                selection.relevance[one.index],
                tokens[one.index],
            )
            for one in explanation.selected
        ]
        outcomes += [
            PassageOutcome(
                one.index,
                False,
                one.reason,
                one.like if one.reason == "repeats" else None,
                None,
                one.gains,
                selection.relevance[one.index],
                tokens[one.index],
            )
            for one in explanation.passed
        ]
        return cls(
            selection.query,
            selection.limits,
            selection.model,
            tuple(sorted(outcomes, key=lambda one: one.index)),
            selection.indices,
            selection.coverage,
            explanation.gap,
            selection.sufficiency,
            selection.certificate,
        )

    def to_dict(self) -> dict[str, Any]:
        """The receipt as JSON can hold it; docs/receipts.md describes it."""
        asked = _input_of(self.query)
        return {
            "schema": SCHEMA,
            "dgn": dgn.__version__,
            "model": {"name": self.model[0], "hash": self.model[1]},
            "input": {"hash": _hash_of(asked), **asked},
            "limits": self.limits.to_dict(),
            "tokens_by": "model" if self.limits.count_tokens is None else "caller",
            "passages": [asdict(one) for one in self.passages],
            "selected": list(self.selected),
            "coverage": self.coverage,
            "gap": list(self.gap),
            "sufficiency": self.sufficiency,
            "certificate": {**asdict(self.certificate), "ratio": self.certificate.ratio},
        }

    def to_json(self) -> str:
        """The receipt as a JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"


def verify_receipt(content: Any, selector: Selector) -> list[str]:
    """Compute a receipt again.

    Args:
        content: What `Receipt.to_dict` returned.
        selector: A selector with the model of the receipt.

    Returns:
        What differs, a sentence each; empty if the receipt is right.

    Raises:
        InvalidInput: The content is not a receipt.
    """
    receipt = _checked(content)
    asked = receipt["input"]
    differences: list[str] = []
    if asked.get("hash") != _hash_of({k: v for k, v in asked.items() if k != "hash"}):
        differences.append("The input does not have the hash that the receipt names.")
    model = receipt["model"]
    if model.get("hash") != selector.identity[1]:
        differences.append(
            f"The receipt was made with the model {model.get('hash')}, and this one is "
            f"{selector.identity[1]}."
        )
    try:
        query, limits = _query_of(asked), _limits_of(receipt)
        (selection,) = selector.select_queries([query], limits)
    except (InvalidInput, TypeError, ValueError, KeyError) as error:
        raise InvalidInput(
            "receipt", message=f"The input of the receipt cannot be selected from: {error}"
        ) from None
    again = selection.receipt().to_dict()
    for key in ("selected", "passages", "coverage", "gap", "sufficiency", "certificate"):
        if place := _difference(receipt[key], again[key], key):
            differences.append(place)
    return differences


def _checked(content: Any) -> dict[str, Any]:
    keys = {"schema", "model", "input", "limits", "tokens_by", *_RESULTS}
    if not isinstance(content, Mapping) or not keys <= set(cast("Mapping[str, Any]", content)):
        found = "something else"
        raise InvalidInput("receipt", found=found, allowed=f"a JSON object of schema {SCHEMA}")
    receipt = dict(cast("Mapping[str, Any]", content))
    if receipt["schema"] != SCHEMA:
        raise InvalidInput("receipt", found=repr(receipt["schema"]), allowed=f"schema {SCHEMA}")
    for key in ("model", "input", "limits"):
        if not isinstance(receipt[key], Mapping):
            raise InvalidInput(f"receipt.{key}", found=f"{receipt[key]!r:.40}", allowed="an object")
    return receipt


_RESULTS = ("passages", "selected", "coverage", "gap", "sufficiency", "certificate")


def _input_of(query: Query) -> dict[str, Any]:
    """The query as JSON can hold it, so that the selection can be computed again."""
    found: dict[str, Any] = {
        "query": query.text,
        "passages": [_row_of(one) for one in query.passages],
        "given": [_row_of(one) for one in query.given],
        "pinned": list(query.pinned),
        "groups": None if query.groups is None else [_plain(one) for one in query.groups],
        "embeddings": None if query.embeddings is None else query.embeddings.tolist(),
    }
    others = {one.name for one in fields(query)} - {*found, "text", "id"}
    return found | {name: getattr(query, name) for name in sorted(others)}


def _row_of(passage: Passage) -> dict[str, Any]:
    # Metadata is the caller's and may be anything; nothing is selected by it.
    row = asdict(replace(passage, metadata={}))
    return {name: value for name, value in row.items() if value not in (None, "", {})} | {
        "text": passage.text
    }


def _plain(group: Any) -> Any:
    return group if group is None or isinstance(group, str | int | float) else str(group)


def _hash_of(asked: Mapping[str, Any]) -> str:
    text = json.dumps(asked, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _query_of(asked: Mapping[str, Any]) -> Query:
    known = {name: value for name, value in asked.items() if name != "hash"}
    known |= {key: [Passage(**row) for row in known[key]] for key in ("passages", "given")}
    vectors = known.pop("embeddings")
    if vectors is not None:
        known |= {"query_embedding": vectors[0], "embeddings": vectors[1:]}
    return Query.of(**known)


def _limits_of(receipt: Mapping[str, Any]) -> Limits:
    limits = Limits(**receipt["limits"])
    if limits.max_tokens is None or receipt["tokens_by"] != "caller":
        return limits
    # A function that counts tokens is not part of a receipt; what it returned is.
    texts = [row["text"] for row in receipt["input"]["passages"]]
    counts = dict(zip(texts, (one["tokens"] for one in receipt["passages"]), strict=False))
    return replace(limits, count_tokens=cast("Callable[[str], int]", counts.__getitem__))


def _difference(first: Any, second: Any, place: str) -> str:
    """The first place at which two values differ, as a sentence; empty if they do not."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        mapped, again = cast("Mapping[str, Any]", first), cast("Mapping[str, Any]", second)
        if set(mapped) != set(again):
            return f"{place} has other fields."
        pairs = ((mapped[key], again[key], f"{place}.{key}") for key in mapped)
        return next(filter(None, (_difference(*pair) for pair in pairs)), "")
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        row, rest = cast("Sequence[Any]", first), cast("Sequence[Any]", second)
        if len(row) != len(rest):
            return f"{place} has {len(row)} entries, and {len(rest)} were computed."
        rows = enumerate(zip(row, rest, strict=True))
        return next(filter(None, (_difference(*both, f"{place}[{n}]") for n, both in rows)), "")
    is_same = _is_same(first, second)
    return "" if is_same else f"{place} is {first!r:.60}, and {second!r:.60} was computed."


def _is_same(first: Any, second: Any) -> bool:
    if _is_number(first) and _is_number(second):
        return math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return type(first) is type(second) and first == second


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
