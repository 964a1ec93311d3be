"""Shared by the tests of the kernels: one set function of every form that has a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from dgn.core import native as kernels
from dgn.core.functions import (
    Concave,
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

CONCAVE: list[Concave] = [Log1p(), Sqrt(), Power(1.0), Saturated(1.5), OneMinusExp(), Power(0.7)]
KINDS = range(len(CONCAVE) + 2)

needs_kernels = pytest.mark.skipif(
    not kernels.is_available(), reason=f"the search is {kernels.describe()}"
)


def function_of(kind: int, weights: np.ndarray | None) -> SetFunction:
    """The set function of a kind, one of KINDS."""
    if kind < len(CONCAVE):
        return FeatureCoverage(weights, CONCAVE[kind])
    return FacilityLocation(weights) if kind == len(CONCAVE) else ProbabilisticCoverage(weights)
