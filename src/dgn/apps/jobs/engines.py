"""Who runs the partitions of a job: the processes of this machine, or Ray."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from dgn.apps.jobs.inputs import Partition
from dgn.apps.jobs.job import Done, Job, run_partition
from dgn.errors import InvalidInput, require_extra
from dgn.parallel import available_cores

Report = Callable[[int, int, int, float], None]
"""Takes the partitions that are done, all of them, the rows so far, and the seconds so far."""

ENGINES = ("local", "ray")
_IN_FLIGHT_PER_WORKER = 2
_CONNECT_SECONDS = 10


def run_job(
    job: Job,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    report: Report | None = None,
) -> Done:
    """Run the partitions that are missing.

    Args:
        job: What `plan_job` returned.
        engine: "local" for processes of this machine, "ray" for a Ray cluster.
        workers: How many partitions run at the same time; by default one per core.
        address: Of a Ray cluster; None for one on this machine.
        report: Told after every partition.

    Returns:
        How many rows were written, and how many were broken, by this run.
    """
    check_engine(engine)
    missing = job.missing()
    everything = len(job.partitions)
    started = time.monotonic()
    rows = bad = 0
    runs = _run_on_ray(job, missing, workers, address) if engine == "ray" else _run_here(
        job, missing, workers or available_cores()
    )  # fmt: skip
    for done, found in enumerate(runs, everything - len(missing) + 1):
        rows, bad = rows + found.rows, bad + found.bad
        if report is not None:
            report(done, everything, rows, time.monotonic() - started)
    return Done(rows, bad)


def check_engine(engine: str) -> None:
    """Raise InvalidInput unless there is such an engine."""
    if engine not in ENGINES:
        raise InvalidInput("engine", found=repr(engine), allowed=f"one of {', '.join(ENGINES)}")


def _run_here(job: Job, missing: list[Partition], workers: int) -> Iterator[Done]:
    if workers == 1 or len(missing) <= 1:
        for partition in missing:
            yield run_partition(job, partition)
        return
    # New processes and no forks: the threads of the parent would not survive a fork.
    pool = ProcessPoolExecutor(min(workers, len(missing)), get_context("spawn"))
    try:
        waiting: set[Future[Done]] = set()
        left = iter(missing)
        for partition in left:
            waiting.add(pool.submit(run_partition, job, partition))
            if len(waiting) < _IN_FLIGHT_PER_WORKER * workers:
                continue
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for one in finished:
                yield one.result()
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for one in finished:
                yield one.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_on_ray(
    job: Job, missing: list[Partition], workers: int | None, address: str | None
) -> Iterator[Done]:
    """One task per partition; Ray places them, and repeats those whose worker or node has died."""
    ray = connected(address)
    task: Any = ray.remote(num_cpus=1, max_retries=-1, retry_exceptions=False)(run_partition)
    shared = ray.put(job)
    most = workers or max(1, int(ray.cluster_resources().get("CPU", 1))) * _IN_FLIGHT_PER_WORKER
    waiting: list[Any] = []
    left = iter(missing)
    while True:
        while len(waiting) < most and (partition := next(left, None)) is not None:
            waiting.append(task.remote(shared, partition))
        if not waiting:
            return
        finished, waiting = ray.wait(waiting, num_returns=1)
        try:
            yield ray.get(finished[0])
        except ray.exceptions.RayTaskError as error:
            for one in waiting:
                ray.cancel(one)
            raise error.cause from None


def _check_reachable(address: str | None) -> None:
    """Raise InvalidInput if nobody listens there; Ray itself would try for a minute and abort."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            "address", message=f"No Ray cluster can be reached at {address}: {error}."
        ) from None


def connected(address: str | None) -> Any:
    """The package ray, connected to a cluster.

    Args:
        address: As `ray.init` takes it; None for the cluster that is connected, or a new one on
            this machine.

    Raises:
        InvalidInput: The cluster cannot be reached.
    """
    require_extra("The engine ray", package="ray", extra="ray")
    import ray

    package: Any = ray
    if not package.is_initialized():
        _check_reachable(address)
        try:
            package.init(address=address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InvalidInput(
                "address", message=f"No Ray cluster can be reached at {address}: {reason}"
            ) from None
    return package
