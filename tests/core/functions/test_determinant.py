"""The log-determinant where numbers are hard: dependent items, extreme scales, many steps."""

import itertools

import numpy as np
import pytest
import torch

from dgn.core.functions import Items, LogDeterminant
from dgn.core import greedy, lazy_greedy
from dgn.errors import InvalidInput

POINTS = np.random.default_rng(0).normal(size=(30, 4))


def fast_map(kernel: np.ndarray, k: int) -> list[int]:
    """Greedy MAP inference by determinants of all sets, in plain NumPy."""
    chosen: list[int] = []
    for _ in range(k):
        left = [item for item in range(len(kernel)) if item not in chosen]
        grown = [[*chosen, item] for item in left]
        values = [np.linalg.slogdet(kernel[np.ix_(one, one)])[1] for one in grown]
        before = np.linalg.slogdet(kernel[np.ix_(chosen, chosen)])[1] if chosen else 0.0
        if max(values) <= before:
            break
        chosen = grown[int(np.argmax(values))]
    return chosen


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_greedy_is_the_map_inference_of_a_determinantal_process(library: object) -> None:
    for seed in range(20):
        points = np.random.default_rng(seed).normal(size=(12, 8))
        kernel = 0.4 * points @ points.T + 0.3 * np.eye(12)
        expected = fast_map(kernel, 9)
        assert list(greedy(LogDeterminant(0.0), library(kernel), 9).indices) == expected
        assert list(lazy_greedy(LogDeterminant(0.0), library(kernel), 9).indices) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_of_rank_four_is_used_up_after_four_items(dtype: type) -> None:
    kernel = (100 * POINTS @ POINTS.T).astype(dtype)
    found = greedy(LogDeterminant(0.0), kernel, 10)
    assert len(found) == 4
    wide = 100 * POINTS[list(found.indices)]
    assert found.values[-1] == pytest.approx(
        np.linalg.slogdet(wide @ wide.T / 100)[1], rel=1e-2 if dtype is np.float32 else 1e-9
    )
    items = Items(kernel)
    f = LogDeterminant(0.0)
    everything = f.add(items, f.empty(items), np.ones((1, 30), dtype))
    assert np.isfinite(f.value(everything)).all()
    assert f.value(everything)[0] < -20 * (1 if dtype is np.float32 else 2)


def test_repeated_items_add_only_what_the_noise_allows() -> None:
    kernel = np.ones((4, 4))
    found = greedy(LogDeterminant(1.0), kernel, 4)
    assert found.gains == pytest.approx([np.log(2), np.log(3 / 2), np.log(4 / 3), np.log(5 / 4)])
    assert len(greedy(LogDeterminant(0.0), 2 * kernel, 4)) == 1


@pytest.mark.parametrize("scale", [1e-250, 1e-100, 1e-8, 1.0, 1e8, 1e100, 1e250])
def test_exact_at_every_scale(scale: float) -> None:
    points = np.random.default_rng(1).normal(size=(6, 6))
    kernel, f = scale * (points @ points.T), LogDeterminant(0.0)
    items = Items(kernel)
    f.check(items)
    for chosen in itertools.combinations(range(6), 3):
        state = f.empty(items)
        for item in chosen:
            state = f.add(items, state, np.eye(6)[item][None])
        own = points[list(chosen)]
        expected = np.linalg.slogdet(own @ own.T)[1] + 3 * np.log(scale)
        assert f.value(state)[0] == pytest.approx(expected, rel=1e-9)


def test_a_small_kernel_under_a_large_ridge_is_not_lost() -> None:
    kernel = 1e-9 * np.array([[2.0, 1.0], [1.0, 3.0]])
    found = greedy(LogDeterminant(1.0), kernel, 2)
    assert found.indices == (1, 0)
    assert found.gains == pytest.approx([3e-9, 2e-9], rel=1e-6)


def test_soft_values_after_many_steps() -> None:
    kernel = POINTS[:6] @ POINTS[:6].T + 0.1 * np.eye(6)
    tensor = torch.from_numpy(kernel).requires_grad_()
    for ridge in (0.0, 0.5, 1.0):
        f, inside = LogDeterminant(ridge), np.zeros(6)
        states = [f.empty(Items(kernel)), f.empty(Items(tensor))]
        for step in range(9):
            member = np.random.default_rng(step).random((1, 6)) ** 3
            states = [
                f.add(Items(kernel), states[0], member),
                f.add(Items(tensor), states[1], torch.from_numpy(member)),
            ]
            inside = 1 - (1 - inside) * (1 - member[0])
            full = np.eye(6) + np.diag(inside) @ (kernel + (ridge - 1) * np.eye(6))
            for state in states:
                assert f.value(state).item() == pytest.approx(np.linalg.slogdet(full)[1], abs=1e-9)
                assert state.level.shape[1] <= 6


def test_a_ridge_below_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ridge must be finite and at least 0; got -1"):
        LogDeterminant(-1)
