import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.core.numerics import (
    log_softmax_with_complement,
    lowest_log,
    row_dot,
    safe_divide,
    safe_power,
)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=6))
def test_complement_of_softmax_equals_the_direct_computation(logits: list[float]) -> None:
    log_p, log_rest = log_softmax_with_complement(np.array([logits]))
    p = np.exp(log_p)
    assert p.sum() == pytest.approx(1.0)
    direct = [sum(p[0, j] for j in range(len(logits)) if j != i) for i in range(len(logits))]
    np.testing.assert_allclose(np.exp(log_rest[0]), direct, rtol=1e-6, atol=1e-300)


def test_complement_of_softmax_is_finite_for_large_logits() -> None:
    logits = torch.tensor([[0.0, 10_000.0, 9_000.0]], requires_grad=True)
    log_p, log_rest = log_softmax_with_complement(logits)
    assert log_p[0].tolist() == pytest.approx([-10_000.0, 0.0, -1_000.0])
    assert log_rest[0].tolist() == pytest.approx([0.0, -1_000.0, 0.0])
    (log_p + log_rest).sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_powers_and_quotients_at_zero() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    safe_power(x, 0.5).sum().backward()
    assert x.grad.tolist() == [0.5, 0.25], "the slope at 0 is that at 1"
    quotient = safe_divide(np.array([1.0, 1.0]), np.array([0.0, 2.0]), at_zero=7.0)
    assert quotient.tolist() == [7.0, 0.5]
    assert math.isfinite(quotient.sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_numbers_have_equal_powers_wherever_they_stand(dtype: torch.dtype) -> None:
    for size in range(1, 40):
        x = torch.full((size,), 0.3719, dtype=dtype)
        assert len(set(safe_power(x, 0.7).tolist())) == 1
    wide = torch.logspace(-37, 38, 200, dtype=torch.float64).to(dtype)
    torch.testing.assert_close(safe_power(wide, 0.3), (wide.double() ** 0.3).to(dtype))


def test_lowest_log_can_be_added_a_few_times() -> None:
    for like in (np.zeros(1, np.float32), torch.zeros(1)):
        assert np.isfinite(np.float32(4 * lowest_log(like)))
        assert lowest_log(like) < -1e37


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("shape", [(7,), (3, 1, 7)])
def test_dot_product_of_a_row_does_not_depend_on_other_rows(
    library: object, shape: tuple[int, ...]
) -> None:
    random = np.random.default_rng(0)
    rows, weights = random.random((3, 50, 7), np.float32), random.random(shape, np.float32)
    found = row_dot(library(rows), library(weights))
    np.testing.assert_allclose(found, (rows * weights).sum(axis=-1), rtol=1e-6)
    for size in (1, 3, 17):
        assert (row_dot(library(rows[:, :size]), library(weights)) == found[:, :size]).all()
