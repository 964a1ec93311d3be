"""The log-determinant where numbers are hard: dependent items, extreme scales, many steps."""

import itertools

import numpy as np
import pytest
import torch

from dgn.core import greedy, lazy_greedy
from dgn.core.functions import Items, LogDeterminant

POINTS = np.random.default_rng(0).normal(size=(30, 4))


def fast_map(kernel: np.ndarray, k: int) -> list[int]:
    """Greedy MAP inference by determinants of all sets, in plain NumPy; the kernel is I + K."""
    chosen: list[int] = []
    for _ in range(k):
        left = [item for item in range(len(kernel)) if item not in chosen]
        grown = [[*chosen, item] for item in left]
        values = [np.linalg.slogdet(kernel[np.ix_(one, one)])[1] for one in grown]
        chosen = grown[int(np.argmax(values))]
    return chosen


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_greedy_is_the_map_inference_of_a_determinantal_process(library: object) -> None:
    for seed in range(20):
        points = np.random.default_rng(seed).normal(size=(12, 8))
        kernel = 0.4 * points @ points.T
        expected = fast_map(np.eye(12) + kernel, 9)
        assert list(greedy(LogDeterminant(), library(kernel), 9).indices) == expected
        assert list(lazy_greedy(LogDeterminant(), library(kernel), 9).indices) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_of_rank_four_adds_little_after_four_items(dtype: type) -> None:
    kernel = (100 * POINTS @ POINTS.T).astype(dtype)
    found = greedy(LogDeterminant(), kernel, 10)
    assert len(found) == 10
    wide = 10 * POINTS[list(found.indices)]
    close = {"rel": 1e-3 if dtype is np.float32 else 1e-9}
    assert found.values[-1] == pytest.approx(
        np.linalg.slogdet(np.eye(10) + wide @ wide.T)[1], **close
    )
    items, f = Items(kernel), LogDeterminant()
    everything = f.add(items, f.empty(items), np.ones((1, 30), dtype))
    wide = 10 * POINTS
    assert f.value(everything)[0] == pytest.approx(
        np.linalg.slogdet(np.eye(30) + wide @ wide.T)[1], **close
    )


def test_repeated_items_add_only_what_the_noise_allows() -> None:
    kernel = np.ones((4, 4))
    found = greedy(LogDeterminant(), kernel, 4)
    assert found.gains == pytest.approx([np.log(2), np.log(3 / 2), np.log(4 / 3), np.log(5 / 4)])


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e3, 1e8])
def test_exact_at_every_scale(scale: float) -> None:
    points = np.random.default_rng(1).normal(size=(6, 6))
    kernel, f = scale * (points @ points.T), LogDeterminant()
    items = Items(kernel)
    f.check(items)
    for chosen in itertools.combinations(range(6), 3):
        state = f.empty(items)
        for item in chosen:
            state = f.add(items, state, np.eye(6)[item][None])
        own = points[list(chosen)]
        # The sum over the eigenvalues keeps what is small next to 1.
        expected = np.log1p(np.linalg.eigvalsh(scale * own @ own.T)).sum()
        assert f.value(state)[0] == pytest.approx(expected, rel=1e-7)


def test_a_kernel_that_is_small_next_to_1_is_not_lost() -> None:
    kernel = 1e-9 * np.array([[2.0, 1.0], [1.0, 3.0]])
    found = greedy(LogDeterminant(), kernel, 2)
    assert found.indices == (1, 0)
    assert found.gains == pytest.approx([3e-9, 2e-9], rel=1e-6)


def test_soft_values_after_many_steps() -> None:
    kernel = POINTS[:6] @ POINTS[:6].T + 0.1 * np.eye(6)
    tensor = torch.from_numpy(kernel).requires_grad_()
    f, inside = LogDeterminant(), np.zeros(6)
    states = [f.empty(Items(kernel)), f.empty(Items(tensor))]
    for step in range(9):
        member = np.random.default_rng(step).random((1, 6)) ** 3
        states = [
            f.add(Items(kernel), states[0], member),
            f.add(Items(tensor), states[1], torch.from_numpy(member)),
        ]
        inside = 1 - (1 - inside) * (1 - member[0])
        expected = np.linalg.slogdet(np.eye(6) + np.diag(inside) @ kernel)[1]
        for state in states:
            assert f.value(state).item() == pytest.approx(expected, abs=1e-9)
            assert state.level.shape[1] <= 6
