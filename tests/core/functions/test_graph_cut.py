"""Functions of a matrix of all items: definitions, batches, gradients, and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgn.core import greedy, lazy_greedy
from dgn.core.functions import GraphCut, Items, LogDeterminant, Mixture, SetFunction
from dgn.errors import InvalidInput
from instances import PAIRS, as_sets, members, random_matrix, subsets

kinds = st.sampled_from(sorted(PAIRS))
seeds = st.integers(0, 2**32 - 1)


def gains_of(f: SetFunction, matrix: np.ndarray, chosen: tuple[int, ...]) -> np.ndarray:
    items = Items(matrix)
    return f.gains(items, f.add(items, f.empty(items), members(chosen, len(matrix))))[0]


@given(kinds, seeds, st.integers(1, 6), st.randoms(use_true_random=False))
def test_values_and_gains_equal_the_definition(
    kind: str, seed: int, size: int, random: object
) -> None:
    f, matrix = PAIRS[kind].function, random_matrix(seed, size)
    items = Items(matrix)

    def value(chosen: tuple[int, ...]) -> float:
        return PAIRS[kind].define(matrix, as_sets(chosen, size)).item()

    order = random.sample(range(size), random.randint(0, size))
    state, chosen = f.empty(items), tuple(order)
    for item in order:
        state = f.add(items, state, members((item,), size))
    at_once = f.add(items, f.empty(items), members(chosen, size))
    for one in (state, at_once):
        assert f.value(one)[0] == pytest.approx(value(chosen), rel=1e-9, abs=1e-9)
        for item in range(size):
            wanted = value((*chosen, item)) - value(chosen)
            assert f.gains(items, one)[0, item] == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", PAIRS)
def test_they_are_monotone_and_submodular(kind: str) -> None:
    f, size = PAIRS[kind].function, 5
    assert f.monotone is True
    for seed in range(10):
        matrix, sets = random_matrix(seed, size), subsets(size)
        gains = np.stack([gains_of(f, matrix, tuple(np.flatnonzero(one))) for one in sets])
        assert (gains >= -1e-9).all()
        for larger, own in zip(sets, gains, strict=True):
            inner = gains[(sets <= larger).all(axis=1)]
            assert (inner[:, ~larger] >= own[~larger] - 1e-9).all()


@given(kinds, seeds, st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_padding_and_batching_change_nothing(kind: str, seed: int, sizes: list[int]) -> None:
    f, most = PAIRS[kind].function, max(sizes) + 1
    matrices = [random_matrix(seed + row, size) for row, size in enumerate(sizes)]
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


@pytest.mark.parametrize("kind", PAIRS)
def test_gradients_of_the_matrix_and_of_memberships(kind: str) -> None:
    matrix = torch.from_numpy(random_matrix(3, 5))[None].requires_grad_()
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


@pytest.mark.parametrize("redundancy", [-1.0, 0.6, float("nan")])
def test_a_graph_cut_that_is_not_monotone_is_refused(redundancy: float) -> None:
    with pytest.raises(InvalidInput, match=r"redundancy must be from 0 to 0\.5, where graph"):
        GraphCut(redundancy)


def test_a_mixture_of_two_functions_of_a_matrix() -> None:
    matrix = random_matrix(0, 6)
    kernels = Mixture((LogDeterminant(), GraphCut(0.5)), np.array([1.0, 0.1]))
    found = greedy(kernels, matrix, 3)
    sets = np.concatenate([as_sets(one, 6) for one in (found.indices[:1], found.indices)])
    both = PAIRS["determinant"].define(matrix, sets) + 0.1 * PAIRS["cut"].define(matrix, sets)
    assert [found.values[0], found.values[-1]] == pytest.approx(both)
    assert lazy_greedy(kernels, matrix, 3).indices == found.indices
