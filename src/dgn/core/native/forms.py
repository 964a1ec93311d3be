"""Which set functions the kernels know, and how they are told about them.

A new function with a kernel is added here and in greedy.h; the set functions know no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dgn.core.functions import (
    FacilityLocation,
    FeatureCoverage,
    Log1p,
    Mixture,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
    State,
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
    """A coverage function, or a sum of two, as the kernels know it.

    Attributes:
        form: One of FORMS.
        parameter: The cap of "saturated", the exponent of "power".
        weights: [features] or [batch, features]; None if every feature weighs 1.
        split: In a sum of two functions, how many features the first one has; 0 if there is one.
        second_form: The form of the second function.
        second_parameter: Its parameter.
    """

    form: str
    parameter: float = 0.0
    weights: Any = None
    split: int = 0
    second_form: str = "linear"
    second_parameter: float = 0.0

    def with_weights(self, weights: Any) -> Coverage:
        """The same function with other weights."""
        return replace(self, weights=weights)


def compiled(objective: SetFunction) -> Coverage | None:
    """The function as the kernels know it; None if they do not.

    A class of the user may compute something else than the class that it derives from, so that
    only the classes of dgn themselves are known.
    """
    describe = _FUNCTIONS.get(type(objective))
    return None if describe is None else describe(objective)


def level_of(state: State) -> Any:
    """[batch, features], the level of a state that the kernels can start from."""
    if not state.parts:
        return state.level
    return np.concatenate([level_of(part) for part in state.parts], axis=-1)


def is_sparse(items: Any) -> bool:
    """Whether this is a SciPy sparse matrix or array."""
    return hasattr(items, "tocsr") and hasattr(items, "nnz")


def _mixture(f: Mixture) -> Coverage | None:
    """The sum of two functions with weights of their own, on features that follow each other."""
    if f.columns is None or len(f.functions) != 2:
        return None
    first, second = (compiled(part) for part in f.functions)
    if first is None or second is None or first.split or second.split:
        return None
    if first.weights is None or second.weights is None or type(f.weights) is not np.ndarray:
        return None
    split = first.weights.shape[-1]
    here, there = f.columns
    if (here.start or 0, here.stop, there.start) != (0, split, split):
        return None
    shares = f.weights if f.weights.ndim == 2 else f.weights[None]
    scaled = [
        np.atleast_2d(part.weights) * shares[:, place : place + 1]
        for place, part in enumerate((first, second))
    ]
    batch = max(len(part) for part in scaled)
    weights = np.concatenate([np.broadcast_to(p, (batch, p.shape[1])) for p in scaled], axis=1)
    return Coverage(
        first.form,
        first.parameter,
        weights if batch > 1 or f.weights.ndim == 2 else weights[0],
        split,
        second.form,
        second.parameter,
    )


def _feature_coverage(f: FeatureCoverage) -> Coverage | None:
    describe = _CONCAVE.get(type(f.concave))
    return None if describe is None else Coverage(*describe(f.concave), weights=f.weights)


def _power(concave: Power) -> tuple[str, float]:
    simple = {1: ("linear", 0.0), 0.5: ("sqrt", 0.0)}
    return simple.get(concave.exponent, ("power", concave.exponent))


_CONCAVE: dict[type, Callable[[Any], tuple[str, float]]] = {
    Log1p: lambda _: ("log1p", 0.0),
    OneMinusExp: lambda _: ("one_minus_exp", 0.0),
    Saturated: lambda concave: ("saturated", concave.cap),
    Power: _power,
}
_FUNCTIONS: dict[type, Callable[[Any], Coverage | None]] = {
    FeatureCoverage: _feature_coverage,
    FacilityLocation: lambda f: Coverage("facility_location", weights=f.weights),
    ProbabilisticCoverage: lambda f: Coverage("probabilistic", weights=f.weights),
    Mixture: _mixture,
}
