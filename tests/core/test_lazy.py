"""Lazy greedy, the search for one large ground set, dense or sparse."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compiled import KINDS, function_of, native_greedy, needs_kernels
from dgn.core import Selection, Selections, greedy, lazy_greedy
from dgn.core import native as kernels
from dgn.core.functions import FacilityLocation, FeatureCoverage, Items, Power
from dgn.errors import InvalidInput
from instances import Instance, instances, members


@given(instances(largest=12), st.integers(1, 14))
def test_lazy_selects_the_same_as_greedy(instance: Instance, k: int) -> None:
    lazy = lazy_greedy(instance.objective, instance.features, k)
    plain = greedy(instance.objective, instance.features, k)
    assert lazy.values == pytest.approx(plain.values, rel=1e-9, abs=1e-9)
    assert len(set(lazy.indices)) == len(lazy)


def test_lazy_selects_the_same_as_greedy_from_many_items() -> None:
    features = np.random.default_rng(0).gamma(0.3, size=(5000, 16))
    features[2500:] = features[:2500]
    for objective in (FeatureCoverage(), FacilityLocation()):
        lazy = lazy_greedy(objective, features, 40)
        assert lazy.indices == greedy(objective, features, 40).indices


@given(instances(smallest=2), st.integers(1, 4))
def test_lazy_certificate_holds(instance: Instance, k: int) -> None:
    lazy = lazy_greedy(instance.objective, instance.features, k)
    assert lazy.certificate.bound >= instance.best_value(k) - 1e-9


def test_lazy_respects_mask_and_context() -> None:
    features = np.random.default_rng(1).random((20, 4))
    mask = np.arange(20) % 2 == 0
    found = lazy_greedy(FeatureCoverage(), Items(features, mask), 30)
    assert sorted(found.indices) == list(range(0, 20, 2))
    f, items = FeatureCoverage(), Items(features)
    context = f.add(items, f.empty(items), members((3,), 20))
    assert lazy_greedy(f, items, 5, context=context).indices == (
        greedy(f, items, 5, context=context).indices
    )


def test_torch_selects_the_same_as_numpy() -> None:
    features = np.random.default_rng(5).random((60, 6))
    ours = lazy_greedy(FeatureCoverage(), features, 8)
    theirs = lazy_greedy(FeatureCoverage(), torch.from_numpy(features), 8)
    assert theirs.indices == ours.indices


@needs_kernels
def test_memory_stays_linear_in_the_items() -> None:
    features = np.random.default_rng(0).gamma(0.1, size=(20_000, 64)).astype(np.float32)
    tracemalloc.start()
    lazy_greedy(FeatureCoverage(), features, 5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6 + 100 * len(features)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("search", [greedy, lazy_greedy])
def test_batch_equals_single_searches(search: object, library: object) -> None:
    random = np.random.default_rng(8)
    features, weights = random.random((4, 9, 5)), random.random((4, 5))
    mask = random.random((4, 9)) < 0.7
    mask[:, 2] = True
    together = search(FeatureCoverage(library(weights)), Items(library(features), library(mask)), 4)
    assert isinstance(together, Selections)
    assert len(together) == 4
    for row, found in enumerate(together):
        one = Items(library(features[row]), library(mask[row]))
        alone = search(FeatureCoverage(library(weights[row])), one, 4)
        assert isinstance(alone, Selection)
        assert found.indices == alone.indices
        assert found.values == pytest.approx(alone.values, rel=1e-12)
        assert found.certificate.ratio == pytest.approx(alone.certificate.ratio, rel=1e-12)


@pytest.mark.parametrize("search", [greedy, lazy_greedy])
def test_batch_with_one_context_per_set(search: object) -> None:
    features = np.random.default_rng(9).random((3, 6, 4))
    f, items = FeatureCoverage(), Items(features)
    context = f.add(items, f.empty(items), np.eye(6)[:3])
    together = search(f, items, 2, context=context)
    for row, found in enumerate(together):
        one = Items(features[row])
        own = f.add(one, f.empty(one), np.eye(6)[row : row + 1])
        assert found.indices == search(f, one, 2, context=own).indices


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_parts_change_nothing(
    kind: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = np.minimum(np.random.default_rng(kind).gamma(0.3, size=(900, 37)), 1).astype(dtype)
    f = function_of(kind, None)
    wanted = lazy_greedy(f, features, 30)
    monkeypatch.setattr("dgn.core.native.lazy._ITEMS_PER_PART", 70)
    monkeypatch.setattr(native_greedy, "_WORK_PER_THREAD", 1)
    for cores in (1, 2, 5):
        monkeypatch.setattr(native_greedy, "available_cores", lambda n=cores: n)
        assert lazy_greedy(f, features, 30) == wanted


@needs_kernels
@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e-6, 1.0, 1e6, 1e25, 1e40])
def test_numbers_that_float_cannot_hold(scale: float) -> None:
    """Ceilings of float64 are found in float32, where it can hold the numbers."""
    random = np.random.default_rng(1)
    features = random.gamma(0.3, size=(500, 9)) * 10 ** random.uniform(-3, 0, (500, 1)) * scale
    for f in (FacilityLocation(), FeatureCoverage(concave=Power(0.5))):
        assert lazy_greedy(f, features, 25).indices == greedy(f, features, 25).indices


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
        found = lazy_greedy(f, rows, 12)
        if dtype is np.float64:
            assert found.indices == wanted.indices
        assert found.values[-1] == pytest.approx(wanted.values[-1], **close)
        assert found.certificate.bound == pytest.approx(wanted.certificate.bound, **close)
    items = Items(dense)
    context = f.add(items, f.empty(items), np.eye(300, dtype=dtype)[5:6])
    rows = sparse.csr_array(dense)
    some = {"context": context}
    assert lazy_greedy(f, rows, 9, **some).values == pytest.approx(
        lazy_greedy(f, dense, 9, **some).values, **close
    )


@needs_kernels
def test_numbers_that_are_stored_twice_add_up() -> None:
    rows = sparse.coo_array(([1.0, 2.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    found = lazy_greedy(FeatureCoverage(concave=Power(1.0)), rows, 2)
    assert found.gains == (3.0, 1.0)
    integers = sparse.csr_array(np.array([[0, 2], [1, 0]]))
    assert lazy_greedy(FeatureCoverage(concave=Power(1.0)), integers, 1).gains == (2.0,)


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
        lazy_greedy(FeatureCoverage(np.ones(3)), rows, 3)
    with pytest.raises(InvalidInput, match="at least one item"):
        lazy_greedy(FeatureCoverage(), sparse.csr_array((0, 4)), 3)
    other = FacilityLocation()
    with pytest.raises(InvalidInput, match="a state of FeatureCoverage"):
        lazy_greedy(FeatureCoverage(), rows, 3, context=other.empty(Items(matrix(0))))
    assert len(lazy_greedy(FeatureCoverage(), sparse.csr_array((3, 4)), 2)) == 2


def test_without_kernels_a_dense_matrix_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match="toarray"):
        lazy_greedy(FeatureCoverage(), sparse.csr_array(matrix(0)), 3)
