"""How many threads are used, and by whom."""

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dgn import parallel
from dgn.parallel import available_cores, idle_cores, single_threaded_blas, threads_for

WORK = [0.0, 1.0, 1e6, 2e7, 4.1e7, 1e9, 1e15]


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("cores", [1, 2, 8])
@pytest.mark.parametrize("work", WORK)
def test_threads_never_exceed_the_available_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, work: float
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(parallel, "Path", lambda _: Path("/no/such/file"))
    assert available_cores() == cores
    assert 1 <= threads_for(work) <= cores


def test_more_work_uses_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "idle_cores", lambda: 8)
    counts = [threads_for(work) for work in WORK]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, 8)


def test_threads_of_this_machine_fit_its_cores() -> None:
    assert 1 <= threads_for(1e15) <= available_cores() <= (os.cpu_count() or 1)


class Machine:
    """A machine of four cores, some of them busy, whose time passes by sleeping."""

    def __init__(self, busy: float) -> None:
        self.now, self.busy = 100.0, busy

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def idle_seconds(self) -> float:
        return 1000 + self.now * (4 - self.busy)


@pytest.mark.parametrize(("busy", "idle"), [(0.0, 4), (1.2, 3), (3.0, 1), (4.0, 1)])
def test_busy_cores_are_not_used(monkeypatch: pytest.MonkeyPatch, busy: float, idle: int) -> None:
    machine = Machine(busy)
    monkeypatch.setattr(parallel, "available_cores", lambda: 4)
    monkeypatch.setattr(parallel, "time", machine)
    monkeypatch.setattr(parallel, "_idle_seconds", machine.idle_seconds)
    assert idle_cores() == idle
    assert threads_for(1e15) == idle


def test_all_cores_count_where_idle_time_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_idle_seconds", lambda: None)
    assert idle_cores() == available_cores()


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux counts idle time")
def test_idle_time_is_read_from_the_system() -> None:
    first, second = parallel._idle_seconds(), parallel._idle_seconds()
    assert 0 < first <= second


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
