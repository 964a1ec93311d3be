"""Who runs the partitions of a job: the processes of this machine, or Ray."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from dgn.apps.jobs.inputs import Partition
from dgn.apps.jobs.job import Done, Job, run_partition
from dgn.errors import InvalidInput, WorkerDied, require_extra
from dgn.parallel import available_cores, end_with_parent
from dgn.selector.limits import integer

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

    Raises:
        BrokenInput: An input is broken or damaged; the partitions that are done are kept.
        WorkerDied: A worker was killed; the same call resumes the job.
    """
    check_engine(engine)
    if workers is not None:
        workers = integer("workers", workers)
    with job.as_only_writer():
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
    pool = ProcessPoolExecutor(
        min(workers, len(missing)), get_context("spawn"), initializer=end_with_parent
    )
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
    except BrokenProcessPool:
        raise _died(job) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _died(job: Job) -> WorkerDied:
    done, everything = len(job.partitions) - len(job.missing()), len(job.partitions)
    return WorkerDied(
        f"A worker process ended unexpectedly, often because memory was short; {done} of "
        f"{everything} partitions are in {job.out}. The same command or call does the rest; use "
        "fewer workers if memory is short."
    )


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
    try:
        while True:
            while len(waiting) < most and (partition := next(left, None)) is not None:
                waiting.append(task.remote(shared, partition))
            if not waiting:
                return
            finished, waiting = ray.wait(waiting, num_returns=1)
            yield ray.get(finished[0])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise _died(job) from error
    finally:
        for one in waiting:
            ray.cancel(one)


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


@contextmanager
def _on_loopback(ray: Any) -> Generator[None]:
    """A cluster that is started in this block is as Ray's on macOS and Windows: for this machine.

    On Linux, Ray would listen on all interfaces, even for `_node_ip_address="127.0.0.1"`.
    """
    constants, name = ray._private.ray_constants, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    before = constants.ENABLE_RAY_CLUSTER, os.environ.get(name)
    constants.ENABLE_RAY_CLUSTER, os.environ[name] = False, "0"
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before[0]
        os.environ.pop(name)
        if before[1] is not None:
            os.environ[name] = before[1]


def _init(ray: Any, address: str, **options: Any) -> None:
    """Connect to a cluster that was named by its address, with the user's token if it asks for it.

    Ray itself shows the token only with RAY_AUTH_MODE=token, which saves the first attempt. It
    cannot be shown always: a cluster without tokens does not work with clients that have one.
    """
    try:
        ray.init(address, **options)
    except (OSError, RuntimeError, ray.exceptions.RayError):
        if not _has_enabled_token():
            raise
        ray.init(address, **options)


def _has_enabled_token() -> bool:
    """Use the user's token from now on, if there is one and it was not used before."""
    try:
        from ray._private.authentication import authentication_token_setup
    except ImportError:  # versions of Ray without tokens
        return False
    setup: Any = authentication_token_setup
    is_new = "RAY_AUTH_MODE" not in os.environ
    return is_new and setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def connected(address: str | None) -> Any:
    """The package ray, connected to a cluster.

    Args:
        address: As `ray.init` takes it; None for the cluster that is connected, the one that the
            variable RAY_ADDRESS names, or a new one on this machine, which listens on the loopback
            interface alone.

    Raises:
        InvalidInput: The cluster cannot be reached.
    """
    require_extra("The engine ray", package="ray", extra="ray")
    import ray

    package: Any = ray
    if package.is_initialized():
        return package
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address == "local":
        with _on_loopback(package):
            package.init(address, include_dashboard=False, **quiet)
        return package
    _check_reachable(address)
    try:
        _init(package, address, **quiet)
    except (OSError, ValueError, RuntimeError, package.exceptions.RayError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            "address",
            message=f"The Ray cluster at {address} refused the connection ({reason}). If it uses "
            "Ray's token authentication, put its token into ~/.ray/auth_token or RAY_AUTH_TOKEN, "
            "and set RAY_AUTH_MODE=token.",
        ) from None
    return package
