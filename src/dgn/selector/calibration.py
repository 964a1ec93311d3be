"""Is the answer in here at all? A probability, fitted on labelled rows.

The facts are how much of the query is covered, and how relevant the best selected passage is as a
whole; a logistic regression turns them into a probability. `dgn calibrate` fits it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, final

import numpy as np

from dgn.core.functions import Items, SetFunction
from dgn.errors import InvalidInput


@final
@dataclass(frozen=True)
class Calibration:
    """What was fitted on labelled rows.

    Attributes:
        coverage: The coefficient of the coverage of the query.
        relevance: The coefficient of the relevance of the best selected passage as a whole.
        bias: The constant.
        rows: The number of rows that it was fitted on.
        score_weight: What the caller's scores are worth, if the rows had scores; None to find it
            out for each query.
    """

    coverage: float
    relevance: float
    bias: float
    rows: int
    score_weight: float | None = None

    def probability(self, coverage: float, relevance: float) -> float:
        """The probability that the answer is among the selected passages."""
        logit = self.coverage * coverage + self.relevance * relevance + self.bias
        return 0.5 * (1 + math.tanh(0.5 * logit))

    def to_dict(self) -> dict[str, Any]:
        """As config.json holds it."""
        return asdict(self)

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
        for name in values:
            value: Any = values[name]
            is_missing = value is None and name == "score_weight"
            if not is_missing and not _is_finite(value):
                raise InvalidInput(f"calibration.{name}", found=repr(value), allowed="a number")
        return cls(**values)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def whole_relevance(objective: SetFunction, items: Items, indices: Sequence[int]) -> float:
    """What the best of these passages is worth by features that are not words of the query."""
    if not len(indices):
        return 0.0
    worth = np.asarray(objective.contributions(items, objective.empty(items)), np.float64)[0]
    measured = objective.coverage(objective.empty(items))
    if measured is not None:
        worth = worth[:, np.asarray(measured[1])[0] <= 0]
    return float(worth[list(indices)].sum(axis=1).max())
