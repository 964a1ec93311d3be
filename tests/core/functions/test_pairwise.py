"""Functions of a matrix of all items: definitions, flags, parts, gradients."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.core.functions import DisparityMin, GraphCut, Items, LogDeterminant, Mixture, SetFunction
from dgn.core import exact, greedy, lazy_greedy
from dgn.errors import InvalidInput
from instances import PAIRS, members, random_matrix

kinds = st.sampled_from(sorted(PAIRS))
seeds = st.integers(0, 2**32 - 1)
MONOTONE = {"cut_monotone", "determinant", "disparity_sum"}
SUBMODULAR = {"cut_monotone", "cut", "determinant", "determinant_ridge", "process"}


def subsets(size: int) -> list[tuple[int, ...]]:
    every = range(size)
    return [one for count in range(size + 1) for one in itertools.combinations(every, count)]


def gains_of(f: SetFunction, matrix: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    items = Items(matrix)
    return f.gains(items, f.add(items, f.empty(items), members(chosen, len(matrix))))[0]


@given(kinds, seeds, st.integers(1, 6), st.randoms(use_true_random=False))
def test_values_and_gains_equal_the_definition(
    kind: str, seed: int, size: int, random: object
) -> None:
    f, define, matrix = PAIRS[kind].function, PAIRS[kind].define, random_matrix(kind, seed, size)
    items = Items(matrix)
    order = random.sample(range(size), random.randint(0, size))
    state, chosen = f.empty(items), tuple(order)
    for item in order:
        state = f.add(items, state, members((item,), size))
    at_once = f.add(items, f.empty(items), members(chosen, size))
    assert f.value(state)[0] == pytest.approx(define(matrix, chosen), rel=1e-9, abs=1e-9)
    assert f.value(at_once)[0] == pytest.approx(define(matrix, chosen), rel=1e-9, abs=1e-9)
    for item in range(size):
        wanted = define(matrix, tuple({*chosen, item})) - define(matrix, chosen)
        for one in (state, at_once):
            assert f.gains(items, one)[0, item] == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", PAIRS)
def test_the_flags_are_true(kind: str) -> None:
    f, size = PAIRS[kind].function, 5
    assert f.monotone is (kind in MONOTONE)
    assert f.submodular is (kind in SUBMODULAR)
    falls = grows = False
    for seed in range(20):
        matrix = random_matrix(kind, seed, size)
        gains = {one: gains_of(f, matrix, one) for one in subsets(size)}
        for larger in gains:
            outside = [item for item in range(size) if item not in larger]
            falls |= bool((gains[larger][outside] < -1e-9).any())
            for smaller in subsets(len(larger)):
                inner = tuple(larger[place] for place in smaller)
                grows |= bool((gains[inner][outside] < gains[larger][outside] - 1e-9).any())
    assert falls is (kind not in MONOTONE)
    assert grows is (kind not in SUBMODULAR)


@given(kinds, seeds, st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_padding_and_batching_change_nothing(kind: str, seed: int, sizes: list[int]) -> None:
    f, most = PAIRS[kind].function, max(sizes) + 1
    matrices = [random_matrix(kind, seed + row, size) for row, size in enumerate(sizes)]
    features, mask = np.zeros((len(sizes), most, most)), np.zeros((len(sizes), most), dtype=bool)
    for row, size in enumerate(sizes):
        features[row, :size, :size], mask[row, :size] = matrices[row], True
        features[row, size:] = np.nan
    items = Items(features, mask)
    f.check(items)
    member = np.where(mask, np.random.default_rng(seed).random(mask.shape), 0.0)
    state = f.add(items, f.add(items, f.empty(items), member), member)
    gains = f.gains(items, state)
    assert (gains[~mask] == 0).all()
    for row, size in enumerate(sizes):
        own, soft = Items(matrices[row]), member[row : row + 1, :size]
        alone = f.add(own, f.add(own, f.empty(own), soft), soft)
        np.testing.assert_allclose(f.value(state)[row], f.value(alone)[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(gains[row, :size], f.gains(own, alone)[0], rtol=1e-9, atol=1e-9)


@given(kinds, seeds, st.integers(2, 6))
def test_parts_have_the_gains_of_the_whole(kind: str, seed: int, size: int) -> None:
    f, items = PAIRS[kind].function, Items(random_matrix(kind, seed, size))
    order = np.random.default_rng(seed).permutation(size)
    chosen, part = order[:1], order[1:]
    state = f.add(items, f.empty(items), members(tuple(chosen), size))
    expected = f.gains(items, state)[0, part]
    few = items.gather(part[None, :])
    np.testing.assert_allclose(f.gains(few, f.empty(few, state))[0], expected, atol=1e-12)
    one = items.gather(chosen[None, :])
    apart = f.add(one, f.empty(one), np.ones((1, 1)))
    np.testing.assert_allclose(f.gains(few, f.empty(few, apart))[0], expected, atol=1e-12)
    moved = items.ordered(order[None, :])
    state = f.add(moved, f.empty(moved), members((0,), size))
    np.testing.assert_allclose(f.gains(moved, state)[0, 1:], expected, atol=1e-12)


@pytest.mark.parametrize("kind", PAIRS)
def test_gradients_of_the_matrix_and_of_memberships(kind: str) -> None:
    matrix = torch.from_numpy(random_matrix(kind, 3, 5))[None].requires_grad_()
    member = torch.linspace(0.1, 0.6, 5, dtype=torch.float64)[None].requires_grad_()
    f = PAIRS[kind].function

    def everything(matrix: torch.Tensor, member: torch.Tensor) -> tuple:
        items = Items(matrix)
        state = f.add(items, f.add(items, f.empty(items), member), member.flip(1))
        return f.gains(items, state), f.value(state)

    assert torch.autograd.gradcheck(everything, (matrix, member))
    detached = f.add(Items(matrix.detach()), f.empty(Items(matrix.detach())), member.detach())
    attached = f.add(Items(matrix), f.empty(Items(matrix)), member)
    torch.testing.assert_close(f.value(attached).detach(), f.value(detached))


def test_the_redundancy_can_be_trained_and_differs_by_set() -> None:
    matrix = torch.from_numpy(np.stack([random_matrix("cut", seed, 4) for seed in (0, 1)]))
    redundancy = torch.tensor([0.2, 0.9], dtype=torch.float64, requires_grad=True)

    def value(redundancy: torch.Tensor) -> torch.Tensor:
        f, items = GraphCut(redundancy), Items(matrix)
        return f.value(f.add(items, f.empty(items), torch.full((2, 4), 0.5).double()))

    assert torch.autograd.gradcheck(value, (redundancy,))
    together = greedy(GraphCut(redundancy.detach()), matrix, 3)
    for row in range(2):
        alone = greedy(GraphCut(redundancy[row].item()), matrix[row], 3)
        assert together[row].indices == alone.indices
        assert lazy_greedy(GraphCut(redundancy.detach()), matrix, 3)[row].indices == alone.indices


@pytest.mark.parametrize("kind", ["cut_monotone", "determinant"])
def test_all_searches_find_what_they_promise(kind: str) -> None:
    f, define = PAIRS[kind].function, PAIRS[kind].define
    for seed in range(40):
        matrix, k = random_matrix(kind, seed, 7), 1 + seed % 4
        best = max(define(matrix, one) for one in itertools.combinations(range(7), k))
        found = greedy(f, matrix, k)
        assert found.values[-1] == pytest.approx(define(matrix, found.indices))
        assert found.values[-1] >= (1 - 1 / np.e) * best
        assert found.certificate.ratio * best <= found.values[-1] * (1 + 1e-12)
        assert lazy_greedy(f, matrix, k).indices == found.indices
        assert exact(f, matrix, k).values[-1] == pytest.approx(best)


@pytest.mark.parametrize("kind", ["disparity_sum", "disparity_min"])
def test_greedy_reaches_half_of_the_best_dispersion(kind: str) -> None:
    f, define, worst = PAIRS[kind].function, PAIRS[kind].define, 1.0
    for seed in range(150):
        matrix, k = random_matrix(kind, seed, 7), 2 + seed % 4
        best = max(define(matrix, one) for one in itertools.combinations(range(7), k))
        found = greedy(f, matrix, k)
        assert len(found) == k
        assert found.values[-1] == pytest.approx(define(matrix, found.indices))
        assert found.values[-1] >= best / 2
        worst = min(worst, found.values[-1] / best)
    assert worst < 0.9, "no instance was hard, so that the test shows nothing"


def test_disparity_min_is_farthest_first() -> None:
    matrix = random_matrix("disparity_min", 5, 30)
    chosen = [0]
    for _ in range(6):
        chosen.append(int(matrix[chosen].min(axis=0).argmax()))
    assert list(greedy(DisparityMin(), matrix, 7).indices) == chosen


@pytest.mark.parametrize(
    ("f", "matrix", "message"),
    [
        (
            GraphCut(),
            np.ones((3, 2)),
            "features has 2 columns for 3 items; GraphCut needs a matrix",
        ),
        (GraphCut(), np.triu(np.ones((3, 3))), "GraphCut needs a symmetric matrix of all items"),
        (GraphCut(), -np.eye(3), "features must be finite and at least 0"),
        (GraphCut(-1.0), np.eye(3), "redundancy must be finite and at least 0"),
        (DisparityMin(), np.ones((3, 3)), "got 1 on the diagonal"),
        (GraphCut(), np.full((3, 3), 1e308), "too large for sums over all pairs"),
        (GraphCut(), np.full((3, 3), 1e-307), "too small for sums over all pairs"),
        (LogDeterminant(), np.array([[1.0, 2.0], [2.0, 1.0]]), "a negative eigenvalue"),
        (LogDeterminant(), np.array([[np.nan]]), "features must be finite numbers"),
        (LogDeterminant(), np.array([[1e-305]]), "out of the range"),
    ],
)
def test_matrices_that_do_not_fit(f: SetFunction, matrix: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        greedy(f, matrix, 2)


def test_a_mixture_of_a_matrix_and_features() -> None:
    matrix = random_matrix("determinant", 0, 6)
    kernels = Mixture((LogDeterminant(), GraphCut(0.5)), np.array([1.0, 0.1]))
    found = greedy(kernels, matrix, 3)
    both = [
        PAIRS["determinant"].define(matrix, one) + 0.1 * PAIRS["cut_monotone"].define(matrix, one)
        for one in (found.indices[:1], found.indices)
    ]
    assert [found.values[0], found.values[-1]] == pytest.approx(both)
    assert lazy_greedy(kernels, matrix, 3).indices == found.indices
    mixed = Mixture((DisparityMin(), LogDeterminant()), np.ones(2))
    assert (mixed.monotone, mixed.submodular) == (False, False)
