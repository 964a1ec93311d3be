"""How much to select: one value object that everything passes on whole."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict, cast

from dgn.errors import InvalidInput

DEFAULT_K = 5


@dataclass(frozen=True, repr=False)
class Limits:
    """How much to select, of what, and how much the caller's scores count.

    The limits can be combined. If neither k, max_tokens nor stop_at is given, k is 5.

    Args:
        k: Select this many passages, or all if there are fewer. The last ones may add nothing;
            their gains say so.
        max_tokens: Select passages with at most this many tokens together.
        stop_at: Stop once this fraction of the achievable coverage is reached; above 0 and at
            most 1.
        min_relevance: Leave out passages that cover less than this share of the query by
            themselves, from 0 to 1; then fewer than k, or none, may be selected.
        count_tokens: Counts the tokens of a text for max_tokens; by default, the tokens of the
            encoder.
        score_weight: What the best of the caller's scores, or the nearest of the caller's
            embeddings, is worth, as a multiple of the largest gain without them. None finds it out
            for each query: 1 at most, and less for scores that say what the words say already, or
            that contradict them.
        max_per_document: Select at most this many passages of one document; of loose passages, of
            those with the same title.
        max_per_group: Select at most this many passages of each of the query's `groups`.
        breadth: How much it counts that the selected passages represent all passages, and do not
            repeat each other in other words: from 0, where the words of the query alone count, to
            1, where nothing else does. None for what the model says: .1 for the shipped ones, and
            what suits the rows for a trained one. With an objective of your own, it is 0.

    Raises:
        InvalidInput: A value is not what is described here.

    Examples:
        >>> Limits(k=3, stop_at=0.9)
        Limits(k=3, stop_at=0.9)
    """

    k: int | None = None
    max_tokens: float | None = None
    stop_at: float | None = None
    min_relevance: float = 0.0
    count_tokens: Callable[[str], int] | None = None
    score_weight: float | None = None
    max_per_document: int | None = None
    max_per_group: int | None = None
    breadth: float | None = None

    def __post_init__(self) -> None:
        checked = {
            "k": _count("k", self.k),
            "max_tokens": _within("max_tokens", self.max_tokens, "a finite number greater than 0"),
            "stop_at": _within("stop_at", self.stop_at, "greater than 0 and at most 1"),
            "min_relevance": _within("min_relevance", self.min_relevance, "from 0 to 1"),
            "score_weight": _within("score_weight", self.score_weight, "from 0 to 1,000,000"),
            "breadth": _within("breadth", self.breadth, "from 0 to 1"),
            "max_per_document": _count("max_per_document", self.max_per_document),
            "max_per_group": _count("max_per_group", self.max_per_group),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.max_per_document is not None and self.max_per_group is not None:
            raise InvalidInput(
                "max_per_group",
                message="max_per_group cannot be combined with max_per_document; pass one of them.",
            )
        counts: Any = self.count_tokens
        if counts is not None and self.max_tokens is None:
            raise InvalidInput("count_tokens", message="count_tokens needs max_tokens.")
        if counts is not None and not callable(counts):
            found = f"a {type(counts).__name__}"
            raise InvalidInput("count_tokens", found=found, allowed="a function of a string")

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Limits:
        """The limits among the arguments of a caller, who may know them by other names.

        Raises:
            InvalidInput: There is no such limit; the message names ours.
        """
        names = [one.name for one in fields(cls)]
        for name in arguments:
            if name not in names:
                ours = _OTHER_NAMES.get(name)
                hint = f"; use {ours}" if ours else f"; the limits are {', '.join(names)}"
                raise InvalidInput(name, message=f"There is no argument {name:.40}{hint}.")
        return cls(**arguments)

    def __repr__(self) -> str:
        given = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) != one.default
        }
        return f"Limits({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def most(self, passages: int) -> int:
        """The largest number of passages to select out of so many."""
        if self.k is not None:
            return self.k
        return DEFAULT_K if self.max_tokens is None and self.stop_at is None else passages

    def to_dict(self) -> dict[str, Any]:
        """The limits as JSON can hold them, without `count_tokens`."""
        return {
            one.name: getattr(self, one.name) for one in fields(self) if one.name != "count_tokens"
        }


class LimitArguments(TypedDict, total=False):
    """The fields of Limits, as keyword arguments."""

    k: int | None
    max_tokens: float | None
    stop_at: float | None
    min_relevance: float
    count_tokens: Callable[[str], int] | None
    score_weight: float | None
    max_per_document: int | None
    max_per_group: int | None
    breadth: float | None


_OTHER_NAMES = {
    **dict.fromkeys(("top_k", "top_n", "n", "limit", "num_results"), "k"),
    **dict.fromkeys(("diversity", "lambda_mult", "mmr_lambda"), "breadth"),
    **dict.fromkeys(("max_length", "token_limit", "budget"), "max_tokens"),
    **dict.fromkeys(("threshold", "min_score"), "min_relevance"),
}
"""What other libraries call the limits."""

_RANGES: dict[str, Callable[[float], bool]] = {
    "max_tokens": lambda x: 0 < x < math.inf,
    "stop_at": lambda x: 0 < x <= 1,
    "min_relevance": lambda x: 0 <= x <= 1,
    "score_weight": lambda x: 0 <= x <= 1e6,
    "breadth": lambda x: 0 <= x <= 1,
}


def _within(argument: str, value: Any, allowed: str) -> float | None:
    """The value as a float in its range; NumPy's numbers are fine, strings are not."""
    if value is None and argument != "min_relevance":
        return None
    given: Any = value
    try:
        number = math.nan if isinstance(given, str | bytes | bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise InvalidInput(argument, found=repr(value), allowed="a number")
    if not _RANGES[argument](number):
        raise InvalidInput(argument, found=f"{number:g}", allowed=allowed)
    return cast("float", value) if isinstance(value, int | float) else number


def _count(argument: str, value: Any) -> int | None:
    return None if value is None else integer(argument, value)


def integer(argument: str, value: Any, least: int = 1) -> int:
    """The value as an int; NumPy's integers are fine."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise InvalidInput(argument, found=repr(value), allowed=f"an integer of at least {least}")
    return number
