"""How many threads are used, and by whom."""

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dgn import parallel
from dgn.parallel import available_cores, single_threaded_blas


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_the_affinity_limits_the_cores(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(parallel, "Path", lambda _: Path("/no/such/file"))
    assert available_cores() == cores


@pytest.mark.parametrize(
    ("quota", "cores"), [("200000 100000", 2), ("max 100000", 8), ("50000 100000", 1), ("?", 8)]
)
def test_quota_of_the_container_limits_the_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quota: str, cores: int
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(parallel, "Path", lambda _: tmp_path / "cpu.max")
    assert available_cores() == cores


def test_blas_is_limited_within_the_block_and_restored_after_it() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert before == {2}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == before
        with pytest.raises(RuntimeError), single_threaded_blas():
            raise RuntimeError
        assert blas_threads() == before


def test_overlapping_blocks_restore_the_limit_at_the_end_of_the_last_one() -> None:
    with threadpool_limits(2, user_api="blas"):
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == {2}
