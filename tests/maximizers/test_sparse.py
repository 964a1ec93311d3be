"""SciPy's sparse matrices: the same selections as the dense matrix."""

import numpy as np
import pytest

from compiled import KINDS, function_of, needs_kernels
from dgn import InvalidInput, kernels
from dgn.maximizers import greedy, lazy_greedy, stochastic_greedy
from dgn.objectives import (
    FacilityLocation,
    FeatureCoverage,
    Items,
    Power,
)

sparse = pytest.importorskip("scipy.sparse")


def matrix(seed: int, dtype: type = np.float64) -> np.ndarray:
    random = np.random.default_rng(seed)
    dense = random.random((300, 90)) * (random.random((300, 90)) < 0.1)
    dense[7] = 0
    dense[9] = dense[200]
    return dense.astype(dtype)


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_as_the_dense_matrix(kind: int, dtype: type) -> None:
    dense = matrix(kind, dtype)
    f = function_of(kind, np.random.default_rng(kind).random(90).astype(dtype))
    close = {"rel": 1e-4 if dtype is np.float32 else 1e-9}
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        rows = form(dense)
        wanted = lazy_greedy(f, dense, 12)
        for found in (lazy_greedy(f, rows, 12), greedy(f, rows, 12)):
            if dtype is np.float64:
                assert found.indices == wanted.indices
            assert found.values[-1] == pytest.approx(wanted.values[-1], **close)
            assert found.certificate.bound == pytest.approx(wanted.certificate.bound, **close)
    drawn = stochastic_greedy(f, sparse.csr_array(dense), 12, seed=3)
    assert drawn.values[-1] == pytest.approx(
        stochastic_greedy(f, dense, 12, seed=3).values[-1], **close
    )
    items = Items(dense)
    context = f.add(items, f.empty(items), np.eye(300, dtype=dtype)[5:6])
    rows = sparse.csr_array(dense)
    some = {"context": context, "stop_share": 0.5}
    assert lazy_greedy(f, rows, 9, **some).values == pytest.approx(
        lazy_greedy(f, dense, 9, **some).values, **close
    )


@needs_kernels
def test_numbers_that_are_stored_twice_add_up() -> None:
    rows = sparse.coo_array(([1.0, 2.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    found = greedy(FeatureCoverage(concave=Power(1.0)), rows, 2)
    assert found.gains == (3.0, 1.0)
    integers = sparse.csr_array(np.array([[0, 2], [1, 0]]))
    assert greedy(FeatureCoverage(concave=Power(1.0)), integers, 1).gains == (2.0,)


@needs_kernels
@pytest.mark.parametrize("bad", [np.nan, -1.0, np.inf, 1e30])
def test_bad_numbers_are_refused(bad: float) -> None:
    dense = matrix(0)
    dense[4, 4] = bad
    with pytest.raises(InvalidInput, match="finite numbers of at least 0"):
        lazy_greedy(FeatureCoverage(), sparse.csr_array(dense), 3)


@needs_kernels
def test_bad_arguments_are_refused() -> None:
    rows = sparse.csr_array(matrix(0))
    with pytest.raises(InvalidInput, match="90 numbers"):
        greedy(FeatureCoverage(np.ones(3)), rows, 3)
    with pytest.raises(InvalidInput, match="at least one item"):
        greedy(FeatureCoverage(), sparse.csr_array((0, 4)), 3)
    other = FacilityLocation()
    with pytest.raises(InvalidInput, match="a state of FeatureCoverage"):
        greedy(FeatureCoverage(), rows, 3, context=other.empty(Items(matrix(0))))
    assert len(greedy(FeatureCoverage(), sparse.csr_array((3, 4)), 2)) == 2


def test_without_kernels_a_dense_matrix_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match="toarray"):
        greedy(FeatureCoverage(), sparse.csr_array(matrix(0)), 3)
