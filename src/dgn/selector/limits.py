"""How much to select: the limits that a user gives, checked."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dgn.encoders import Encoder
from dgn.errors import InvalidInput

DEFAULT_K = 5
DEFAULT_SCORE_WEIGHT = 0.25


@dataclass(frozen=True)
class Limits:
    """How much to select, checked."""

    k: int | None
    max_tokens: float | None
    coverage: float | None
    count_tokens: Callable[[str], int] | None
    score_weight: float
    min_relevance: float

    @classmethod
    def of(
        cls,
        k: Any,
        max_tokens: Any,
        coverage: Any,
        count_tokens: Any,
        score_weight: Any,
        min_relevance: Any,
    ) -> Limits:
        """The arguments of `Selector.select` of the same names, checked."""
        k = None if k is None else integer("k", k)
        if max_tokens is not None:
            max_tokens = number_of("max_tokens", max_tokens)
            if not 0 < max_tokens < math.inf:
                allowed = "a finite number greater than 0"
                raise InvalidInput("max_tokens", found=f"{max_tokens:g}", allowed=allowed)
        if coverage is not None:
            coverage = number_of("coverage", coverage)
            if not 0 < coverage <= 1:
                allowed = "greater than 0 and at most 1"
                raise InvalidInput("coverage", found=f"{coverage:g}", allowed=allowed)
        if count_tokens is not None and max_tokens is None:
            raise InvalidInput("count_tokens", message="count_tokens needs max_tokens.")
        if count_tokens is not None and not callable(count_tokens):
            found = f"a {type(count_tokens).__name__}"
            raise InvalidInput("count_tokens", found=found, allowed="a function of a string")
        weight = number_of("score_weight", score_weight)
        if not 0 <= weight < math.inf:
            raise InvalidInput("score_weight", found=f"{weight:g}", allowed="at least 0")
        least = number_of("min_relevance", min_relevance)
        if not 0 <= least <= 1:
            raise InvalidInput("min_relevance", found=f"{least:g}", allowed="from 0 to 1")
        if k is None and max_tokens is None and coverage is None:
            k = DEFAULT_K
        return cls(k, max_tokens, coverage, cast("Any", count_tokens), weight, least)

    def tokens_of(self, texts: Sequence[str], encoder: Encoder) -> list[int]:
        """The number of tokens of each text."""
        if self.count_tokens is None:
            return encoder.count_tokens(texts)
        return [integer("count_tokens(text)", self.count_tokens(text), 0) for text in texts]


def integer(argument: str, value: Any, least: int = 1) -> int:
    """The value as an int; NumPy's integers are fine."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise InvalidInput(argument, found=repr(value), allowed=f"an integer of at least {least}")
    return number


def number_of(argument: str, value: Any) -> float:
    """The value as a float; NumPy's numbers are fine, strings are not."""
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise InvalidInput(argument, found=repr(value), allowed="a number")
    return number
