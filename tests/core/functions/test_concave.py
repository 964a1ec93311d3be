import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.core.functions import Concave, Log1p, OneMinusExp, Power, Saturated
from dgn.errors import InvalidInput

FUNCTIONS = [Log1p(), Power(0.5), Power(0.3), Power(1.0), OneMinusExp(), Saturated(2.0)]
amounts = st.floats(0, 50)


@given(st.sampled_from(FUNCTIONS), amounts, amounts, amounts)
def test_zero_at_zero_monotone_and_concave(
    phi: Concave, x: float, more: float, step: float
) -> None:
    low, high, steps = np.array([x]), np.array([x + more]), np.array([step])
    assert phi.of(np.zeros(1))[0] == 0
    assert phi.increase(low, steps)[0] >= 0
    assert phi.increase(low, steps)[0] >= phi.increase(high, steps)[0] - 1e-12


@given(st.sampled_from(FUNCTIONS), amounts, amounts)
def test_increase_is_the_difference(phi: Concave, x: float, step: float) -> None:
    difference = phi.of(np.array([x + step])) - phi.of(np.array([x]))
    np.testing.assert_allclose(phi.increase(np.array([x]), np.array([step])), difference, atol=1e-9)


def test_small_increases_of_the_logarithm_are_exact() -> None:
    x, step = 1000.0, 1e-12
    exact = step / (1 + x)
    assert Log1p().increase(np.array([x]), np.array([step]))[0] == pytest.approx(
        exact, rel=1e-9, abs=0
    )
    # The plain difference has no correct digit left.
    assert math.log1p(x + step) - math.log1p(x) != pytest.approx(exact, rel=1e-3, abs=0)


@pytest.mark.parametrize("phi", FUNCTIONS)
def test_slope_at_zero_is_finite(phi: Concave) -> None:
    x = torch.zeros(3, requires_grad=True)
    (phi.of(x) + phi.increase(x, x)).sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Power(0), "exponent"),
        (lambda: Power(1.5), "exponent"),
        (lambda: Saturated(0), "cap"),
    ],
)
def test_parameters_out_of_range_are_refused(make: object, argument: str) -> None:
    with pytest.raises(InvalidInput, match=argument):
        make()
