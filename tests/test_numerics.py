import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.numerics import log_softmax_with_complement, safe_divide, safe_power


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=6))
def test_complement_of_softmax_where_the_direct_way_still_works(logits: list[float]) -> None:
    log_p, log_rest = log_softmax_with_complement(np.array([logits]))
    p = np.exp(log_p)
    assert p.sum() == pytest.approx(1.0)
    direct = [sum(p[0, j] for j in range(len(logits)) if j != i) for i in range(len(logits))]
    np.testing.assert_allclose(np.exp(log_rest[0]), direct, rtol=1e-6, atol=1e-300)


def test_complement_of_softmax_where_the_direct_way_is_the_log_of_zero() -> None:
    logits = torch.tensor([[0.0, 10_000.0, 9_000.0]], requires_grad=True)
    log_p, log_rest = log_softmax_with_complement(logits)
    assert log_p[0].tolist() == pytest.approx([-10_000.0, 0.0, -1_000.0])
    assert log_rest[0].tolist() == pytest.approx([0.0, -1_000.0, 0.0])
    (log_p + log_rest).sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_powers_and_quotients_at_zero() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    safe_power(x, 0.5).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]
    quotient = safe_divide(np.array([1.0, 1.0]), np.array([0.0, 2.0]), at_zero=7.0)
    assert quotient.tolist() == [7.0, 0.5]
    assert math.isfinite(quotient.sum())
