"""Is the answer in here at all? A probability, fitted on labelled rows.

The facts are how much of the query is covered, and how like the query and how relevant the best
selected passages are as wholes; a logistic regression turns them into a probability.
`dgn calibrate` fits it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast, final

import numpy as np

from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput


@final
@dataclass(frozen=True)
class Calibration:
    """What was fitted on labelled rows.

    Attributes:
        coefficients: Of the facts, in the order of `facts_of`.
        bias: The constant.
        rows: The number of rows that it was fitted on.
        score_weight: What the caller's scores are worth, if the rows had scores; None to find it
            out for each query.
    """

    coefficients: tuple[float, ...]
    bias: float
    rows: int
    score_weight: float | None = None

    def probability(self, facts: Sequence[float]) -> float | None:
        """The probability that the answer is among the selected passages.

        It is None for facts of another kind than those that it was fitted on: a model may know
        more about queries in one language than about those in others.
        """
        if len(facts) != len(self.coefficients):
            return None
        pairs = zip(self.coefficients, facts, strict=True)
        logit = math.fsum([self.bias, *(one * other for one, other in pairs)])
        return 0.5 * (1 + math.tanh(0.5 * logit))

    def to_dict(self) -> dict[str, Any]:
        """As config.json holds it."""
        return {**asdict(self), "coefficients": list(self.coefficients)}

    @classmethod
    def from_dict(cls, content: Any) -> Calibration:
        """From what `to_dict` returned.

        Raises:
            InvalidInput: The content is something else.
        """
        names = {one.name for one in fields(cls)}
        if not isinstance(content, Mapping) or set(content) != names:  # pyright: ignore[reportUnknownArgumentType]
            allowed = f"an object with {', '.join(sorted(names))}"
            raise InvalidInput("calibration", found=f"{content!r:.40}", allowed=allowed)
        values: dict[str, Any] = dict(content)  # pyright: ignore[reportUnknownArgumentType]
        is_list = type(values["coefficients"]) is list
        given: Any = values["coefficients"] if is_list else [None]
        coefficients = cast("list[float]", given)
        weight = values["score_weight"]
        others = [values["bias"], values["rows"], *([] if weight is None else [weight])]
        if not all(map(_is_finite, [*coefficients, *others])):
            raise InvalidInput("calibration", found=f"{values!r:.80}", allowed="finite numbers")
        return cls(tuple(coefficients), values["bias"], values["rows"], weight)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def facts_of(
    coverage: float, objective: SetFunction, items: Items, indices: Sequence[int]
) -> tuple[float, ...]:
    """What a calibration sees of a selection.

    Args:
        coverage: The share of the query that is covered.
        objective: The set function of the query, as the encoder gave it.
        items: Its passages as items.
        indices: The selected ones.

    Returns:
        The coverage; then, for each feature that is not a word of the query, the largest value of
        the selected passages.
    """
    measured = objective.coverage(objective.empty(items))
    weights: Any = getattr(objective, "weights", None)
    if measured is None or weights is None:
        return (coverage,)
    is_whole = (np.asarray(measured[1])[0] <= 0) & (np.atleast_2d(weights)[0] > 0)
    features = np.asarray(items.features, np.float64)[0][:, is_whole]
    best = features[list(indices)].max(axis=0, initial=0.0)
    return (coverage, *best.tolist())
