"""Shared by the tests of the kernels: one set function of every form that has a kernel."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from dgn.core import native as kernels
from dgn.core.functions import (
    Concave,
    FacilityLocation,
    FeatureCoverage,
    Log1p,
    Mixture,
    OneMinusExp,
    Power,
    ProbabilisticCoverage,
    Saturated,
    SetFunction,
)

native_greedy = importlib.import_module("dgn.core.native.greedy")
"""The module; `dgn.core.native.greedy` is the function in it."""

CONCAVE: list[Concave] = [
    *(Log1p(), Power(0.5), Power(1.0), Saturated(1.5), OneMinusExp(), Power(0.7)),
]
KINDS = range(len(CONCAVE) + 2)

needs_kernels = pytest.mark.skipif(
    not kernels.is_available(), reason=f"the search is {kernels.describe()}"
)


def function_of(kind: int, weights: np.ndarray | None) -> SetFunction:
    """The set function of a kind, one of KINDS."""
    if kind < len(CONCAVE):
        return FeatureCoverage(weights, CONCAVE[kind])
    return FacilityLocation(weights) if kind == len(CONCAVE) else ProbabilisticCoverage(weights)


def sum_of(kinds: tuple[int, int], weights: np.ndarray, split: int, shares: np.ndarray) -> Mixture:
    """The sum of two functions: one of the first `split` features, the other of the rest."""
    first, second = (
        function_of(kind, weights[..., columns])
        for kind, columns in zip(kinds, (slice(split), slice(split, None)), strict=True)
    )
    return Mixture((first, second), shares, (slice(0, split), slice(split, None)))
