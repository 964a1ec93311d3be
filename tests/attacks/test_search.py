"""Attacks on the searches: batches and padding, broken matrices, extreme numbers, huge problems.

Every input gives a true result or one sentence that says what is wrong with it.
"""

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import dgn
from compiled import KINDS, function_of, native_greedy, needs_kernels
from dgn.core import greedy, lazy_greedy, top_k
from dgn.core.functions import FeatureCoverage, Items, Power, ProbabilisticCoverage
from dgn.errors import InvalidInput

CLAIMS = Path(__file__).parents[2] / "samples" / "claims.jsonl"

SEARCHES = {
    "greedy": lambda f, items, _, k: greedy(f, items, k),
    "lazy": lambda f, items, _, k: lazy_greedy(f, items, k),
    "budget": lambda f, items, costs, _: greedy(f, items, costs=costs, budget=9.0),
    "budget, k": lambda f, items, costs, k: greedy(f, items, k, costs=costs, budget=9.0),
}


def ragged(seed: int, dtype: type) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Features, weights and costs of sets of different sizes."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(4):
        items, width = (int(random.integers(1, most)) for most in (60, 90))
        features = np.minimum(random.gamma(0.4, size=(items, width)), 1)
        features[random.random(features.shape) < 0.3] = 0
        features[0, 0] = 1
        weights = random.random(width) + 0.1
        costs = random.integers(1, 9, items).astype(float)
        found.append((features.astype(dtype), weights.astype(dtype), costs))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_a_set_alone_is_the_same_set_in_any_batch(
    kind: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, (more, wider, threads) in enumerate([(0, 30, 1), (40, 1, 3)]):
        monkeypatch.setattr(native_greedy, "_WORK_PER_THREAD", 1)
        monkeypatch.setattr(native_greedy, "available_cores", lambda n=threads: n)
        sets = ragged(seed, dtype)
        items = max(len(one) for one, _, _ in sets) + more
        width = max(one.shape[1] for one, _, _ in sets) + wider
        features = np.zeros((len(sets), items, width), dtype)
        mask, costs = np.zeros((len(sets), items), bool), np.ones((len(sets), items))
        weights = np.zeros((len(sets), width), dtype)
        for row, (own, its_weights, its_costs) in enumerate(sets):
            features[row, : len(own), : own.shape[1]] = own
            mask[row, : len(own)] = True
            weights[row, : own.shape[1]] = its_weights
            costs[row, : len(own)] = its_costs
        batch = Items(features, mask)
        for name, search in SEARCHES.items():
            together = search(function_of(kind, weights), batch, costs, 7)
            for row, (own, its_weights, its_costs) in enumerate(sets):
                alone = search(function_of(kind, its_weights), own, its_costs, 7)
                if name == "lazy":  # a batch is searched by greedy, with sums of its own
                    assert together[row].indices == alone.indices
                    assert together[row].gains == pytest.approx(alone.gains, rel=1e-6)
                else:
                    assert together[row] == alone, name


def test_a_query_alone_is_the_same_query_in_any_batch() -> None:
    selector = dgn.Selector.from_pretrained()
    queries = []
    for line in CLAIMS.read_text(encoding="utf-8").splitlines():
        claim = json.loads(line)
        queries.append({"query": claim["claim"], "documents": claim["documents"]})
    for limits in ({"k": 5}, {"max_tokens": 90}, {"k": 20, "stop_at": 0.9}):
        alone = [selector.select(**query, **limits) for query in queries]
        together = selector.select_many(queries, batch_size=len(queries), **limits)
        for one, found in zip(alone, together, strict=True):
            assert found.certificate == one.certificate
            assert found.to_dict() == one.to_dict()


def full_range(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Features, costs from the smallest float to the largest one, and a budget among them."""
    random = np.random.default_rng(seed)
    items = int(random.integers(1, 6))
    low = int(random.integers(-1074, 1020))
    high = min(1023, low + int(random.choice([3, 30, 300, 2100])))
    costs = np.ldexp(1 + random.random(items), random.integers(low, high, items))
    some = random.random(items) < 0.6
    budget = float(costs[some].sum() if some.any() else costs.min() / 2)
    features = np.ldexp(random.integers(0, 8, (items, 3)), int(random.integers(-20, 18)))
    return features.astype(float), costs, min(max(budget, 5e-324), 1.7e308)


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_budget_of_any_size_is_kept_and_its_certificate_holds(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_compiled:
        monkeypatch.setattr("dgn.core.native.is_available", lambda: False)
    f = FeatureCoverage(concave=Power(1.0))
    for seed in range(150):
        features, costs, budget = full_range(seed)
        found = greedy(f, features, costs=costs, budget=budget)
        prices, worth = list(map(Fraction, costs)), [Fraction(row.sum()) for row in features]
        sets = [
            chosen
            for size in range(len(costs) + 1)
            for chosen in combinations(range(len(costs)), size)
            if sum(prices[i] for i in chosen) <= Fraction(budget)
        ]
        best = max(sum((worth[i] for i in chosen), Fraction(0)) for chosen in sets)
        assert tuple(sorted(found.indices)) in sets, seed
        reached = sum((worth[i] for i in found.indices), Fraction(0))
        assert reached >= best * Fraction(found.certificate.ratio) * (1 - Fraction(1, 10**12)), seed
        assert 3 * reached >= best, seed


BAD_NUMBERS = [np.nan, np.inf, -np.inf, -1.0]
BAD_FEATURES = {
    "no item": np.zeros((0, 5)),
    "no feature": np.zeros((6, 0)),
    "no set": np.zeros((0, 6, 5)),
    "one axis": np.ones(5),
    "four axes": np.ones((1, 2, 3, 4)),
    "integers": np.ones((6, 5), int),
    "booleans": np.ones((6, 5), bool),
    "objects": np.ones((6, 5), object),
    "complex numbers": np.ones((6, 5), complex),
    "texts": np.full((6, 5), "1"),
    "a masked array": np.ma.masked_array(np.ones((6, 5)), mask=True),
    "a list": [[1.0, 2.0]],
    "nothing": None,
}
GOOD_FEATURES = {
    "big-endian": lambda x: x.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "not aligned": lambda x: (
        np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape)
    ),
    "a negative zero": lambda x: np.where(x == 0, -0.0, x),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_features_that_are_no_features_are_refused(name: str) -> None:
    search = SEARCHES[name]
    for bad in BAD_FEATURES.values():
        with pytest.raises(InvalidInput):
            search(FeatureCoverage(), bad, np.ones(6), 2)
    for number in BAD_NUMBERS:
        for dtype in (np.float16, np.float32, np.float64):
            # A second set of usual numbers, and a zero that sorts after all others by its bits.
            features = np.ones((2, 6, 5), dtype)
            features[1, 1, 1], features[1, 2, 3] = -0.0, number
            with pytest.raises(InvalidInput, match="features"):
                search(FeatureCoverage(), features, np.ones((2, 6)), 2)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_in_any_layout_give_the_same_result(kind: int) -> None:
    random = np.random.default_rng(kind)
    features = random.random((9, 7)) * (random.random((9, 7)) < 0.7)
    for name, search in SEARCHES.items():
        wanted = search(function_of(kind, None), features, np.ones(9), 4)
        for layout, change in GOOD_FEATURES.items():
            found = search(function_of(kind, None), change(features), np.ones(9), 4)
            assert found.indices == wanted.indices, (name, layout)
            assert found.certificate.ratio >= wanted.certificate.ratio * (1 - 1e-6), layout


@pytest.mark.parametrize(
    "weights",
    [
        np.array([1, np.nan, 1]),
        np.array([-0.0, np.nan, 1]),
        -np.ones(3),
        np.ones(3, complex),
        np.ones(3, object),
        np.ones(4),
        np.ones((3, 1)),
        np.array(1.0),
        np.full(3, "1"),
    ],
)
def test_weights_that_are_no_weights_are_refused(weights: np.ndarray) -> None:
    for search in SEARCHES.values():
        with pytest.raises(InvalidInput, match="weights"):
            search(FeatureCoverage(weights), np.ones((5, 3)), np.ones(5), 2)


def test_arguments_that_are_no_numbers_are_refused() -> None:
    f, features = FeatureCoverage(), np.ones((4, 3))
    for k in (0, -1, True):
        for search in (greedy, lazy_greedy):
            with pytest.raises(InvalidInput, match="k must be"):
                search(f, features, k)
        with pytest.raises(InvalidInput, match="k must be"):
            top_k(np.ones(3), k)
    for costs in (np.zeros(4), np.full(4, np.nan), np.ones(3), np.ones(4, complex), ["a"] * 4):
        with pytest.raises(InvalidInput, match="cost"):
            greedy(f, features, costs=costs, budget=2.0)
    for budget in (0.0, -1.0, math.nan, math.inf, "a", 1j, [1.0, 2.0]):
        with pytest.raises(InvalidInput, match="budget"):
            greedy(f, features, costs=np.ones(4), budget=budget)
    assert all(len(search(f, features, 2**70)) == 4 for search in (greedy, lazy_greedy))


sparse = pytest.importorskip("scipy.sparse")


def broken(form: str, name: str, place: int, value: int) -> object:
    """A matrix of some format, one of whose indices was changed after it was made."""
    dense = np.random.default_rng(0).random((6, 8)) * (np.arange(48).reshape(6, 8) % 3 > 0)
    matrix = sparse.csr_array(dense).asformat(form)
    getattr(matrix, name)[place] = value
    return matrix


@needs_kernels
@pytest.mark.parametrize(
    ("form", "name", "place", "value"),
    [
        *((form, "indices", 3, value) for form in ("csr", "csc", "bsr") for value in (99, -1)),
        *(("coo", name, 3, value) for name in ("row", "col") for value in (99, -1)),
        ("csr", "indices", -1, 2**31 - 1),
        ("csr", "indptr", 0, 1),
        ("csr", "indptr", 0, -3),
        ("csr", "indptr", 3, 1),
        ("csr", "indptr", -1, 10**6),
        ("csc", "indptr", 3, 10**6),
    ],
)
def test_a_matrix_with_broken_indices_is_refused(
    form: str, name: str, place: int, value: int
) -> None:
    with pytest.raises(InvalidInput, match=r"items\.(indices|indptr|row|col) must be"):
        lazy_greedy(FeatureCoverage(), broken(form, name, place, value), 3)


@needs_kernels
def test_a_matrix_with_broken_arrays_is_refused() -> None:
    def changed(**arrays: object) -> object:
        matrix = sparse.csr_array(np.eye(4))
        for name, array in arrays.items():
            setattr(matrix, name, array)
        return matrix

    for matrix in (
        changed(indptr=np.array([0, 1, 2])),
        changed(indptr=np.array([0.0, 1, 2, 3, 4])),
        changed(indices=np.arange(3)),
        changed(data=np.ones(3)),
        changed(data=np.ones((4, 1))),
        changed(data=np.ones(4, complex)),
        changed(data=np.ones(4, object)),
        changed(data=np.array([1, 1, np.nan, 1])),
    ):
        with pytest.raises(InvalidInput, match=r"items|sparse matrix"):
            lazy_greedy(FeatureCoverage(), matrix, 2)
    f = ProbabilisticCoverage()
    context = f.empty(Items(np.ones((1, 4))))
    context.level[0, 2] = np.nan
    with pytest.raises(InvalidInput, match="context"):
        lazy_greedy(f, sparse.csr_array(np.eye(4)), 2, context=context)


@needs_kernels
def test_indices_in_any_order_and_repeated_ones_are_sums() -> None:
    matrix = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.5, 0.0, 4.0]]))
    assert matrix.has_canonical_format, "the matrix remembers this"
    matrix.indices[:] = [1, 0, 2, 2]
    found = lazy_greedy(FeatureCoverage(concave=Power(1.0)), matrix, 2)
    assert found == lazy_greedy(FeatureCoverage(concave=Power(1.0)), matrix.toarray(), 2)
    assert found.gains == (4.5, 3.0)
    assert matrix.indices.tolist() == [1, 0, 2, 2], "the caller's matrix is not changed"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_negative_zero_next_to_large_numbers(
    kind: int, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ReLU that multiplies leaves −0.0, which hides larger numbers from a look at their bits."""
    random = np.random.default_rng(3)
    f = function_of(kind, random.random(12).astype(dtype))
    features = random.random((5, 12)).astype(dtype)
    if not isinstance(f, ProbabilisticCoverage):
        features = features * 40
    features[2, 3] = features[0, 0] = -0.0
    found = greedy(f, features, 3)
    monkeypatch.setattr("dgn.core.native.is_available", lambda: False)
    features[2, 3] = features[0, 0] = 0.0
    wanted = greedy(f, features, 3)
    assert found.indices == wanted.indices
    assert found.gains == pytest.approx(wanted.gains, rel=1e-5)
