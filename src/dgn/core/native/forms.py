"""Which set functions the kernels know, and how they are told about them.

A new function with a kernel is added here and in greedy.h; the set functions know no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Log1p,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    Sqrt,
)

FORMS = {
    "log1p": 0,
    "sqrt": 1,
    "linear": 2,
    "saturated": 3,
    "facility_location": 4,
    "probabilistic": 5,
    "one_minus_exp": 6,
    "power": 7,
}
"""How the coverage of a feature grows; the numbers are those of greedy.h."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """A coverage function as the kernels know it.

    Attributes:
        form: One of FORMS.
        parameter: The cap of "saturated", the exponent of "power".
        weights: [features] or [batch, features]; None if every feature weighs 1.
    """

    form: str
    parameter: float = 0.0
    weights: Any = None


def compiled(objective: SetFunction) -> Coverage | None:
    """The function as the kernels know it; None if they do not.

    A class of the user may compute something else than the class that it derives from, so that
    only the classes of dgn themselves are known.
    """
    describe = _FUNCTIONS.get(type(objective))
    return None if describe is None else describe(objective)


def _feature_coverage(f: FeatureCoverage) -> Coverage | None:
    describe = _CONCAVE.get(type(f.concave))
    return None if describe is None else Coverage(*describe(f.concave), weights=f.weights)


def _power(concave: Power) -> tuple[str, float]:
    simple = {1: ("linear", 0.0), 0.5: ("sqrt", 0.0)}
    return simple.get(concave.exponent, ("power", concave.exponent))


_CONCAVE: dict[type, Callable[[Any], tuple[str, float]]] = {
    Log1p: lambda _: ("log1p", 0.0),
    Sqrt: lambda _: ("sqrt", 0.0),
    OneMinusExp: lambda _: ("one_minus_exp", 0.0),
    Saturated: lambda concave: ("saturated", concave.cap),
    Power: _power,
}
_FUNCTIONS: dict[type, Callable[[Any], Coverage | None]] = {
    FeatureCoverage: _feature_coverage,
    FacilityLocation: lambda f: Coverage("facility_location", weights=f.weights),
    ProbabilisticCoverage: lambda f: Coverage("probabilistic", weights=f.weights),
}
