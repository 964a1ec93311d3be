"""Threads and processes: how many are useful, and how workers end.

Numerical libraries start one thread per core by default, and their threads spin while they wait
for each other. On a busy machine one of them is always waiting for a core, and small operations
become several times slower than with one thread. Selecting therefore uses one BLAS thread, because
its matrices are small, and so does training on rows.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any


def available_cores() -> int:
    """The number of cores that this process may use: its CPU affinity and its cgroup quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        cores = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, max(1, round(int(quota) / int(period))))
    return cores


def run_in_parts(work: Callable[[int, int], None], count: int, threads: int) -> None:
    """Call `work(first, last)` for parts of `count` things, in several threads.

    The work should release the GIL, as compiled code that is called with ctypes does.
    """
    threads = min(count, threads)
    if threads < 2:
        work(0, count)
        return
    # More parts than threads: one that is interrupted does not delay the others much.
    parts = min(count, 4 * threads)
    edges = [count * part // parts for part in range(parts + 1)]
    list(_pool(threads).map(work, edges[:-1], edges[1:]))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="dgn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of these threads


@contextlib.contextmanager
def single_threaded_blas() -> Generator[None]:
    """Within the block, NumPy's matrix products use the calling thread alone.

    Blocks of several threads may overlap: the last one that ends restores the old limit.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


class _SharedLimit:
    """The limit of the whole process, as long as some thread asks for it."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if not self._users:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limiter.restore_original_limits()


_limit = _SharedLimit()


@cache
def _controller() -> Any:
    # Finding the loaded libraries takes milliseconds, so it happens once.
    import numpy as np
    from threadpoolctl import ThreadpoolController

    np.zeros(1)  # NumPy loads its BLAS with the module
    return ThreadpoolController()


@contextlib.contextmanager
def interrupts_ignored() -> Generator[None]:
    """Processes started in this block ignore Ctrl-C; the one that started them then ends them.

    Otherwise a worker would be interrupted anywhere, even in its imports, and print a traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, however it ended.

    Otherwise the workers of a process that is killed would wait for work forever. It is the
    initializer of a pool of processes.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="dgn-parent", daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)
