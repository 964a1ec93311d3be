"""`dgn serve`: uvicorn's server in worker processes, until a signal stops them.

Each worker listens on a socket of its own at the same port (SO_REUSEPORT), so that the system
spreads the connections. The parent starts the workers, replaces one that has ended, and passes
signals on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from multiprocessing import connection, get_context
from types import FrameType
from typing import Any

import uvicorn
from prometheus_client import multiprocess

from dgn.apps.service.limits import ANY_HOST, ServiceLimits
from dgn.apps.service.metrics import FOLDER, LOG, log_event
from dgn.errors import InvalidInput
from dgn.parallel import available_cores, end_with_parent
from dgn.selector import Selector

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GRACE_SECONDS = 30
_QUIET_SECONDS = 0.5
"""How long a connection may stay without a request before it is closed at the end."""

_SWITCH_SECONDS = 0.001
"""How long a thread that answers may keep the event loop waiting; Python's default is 5 ms."""


@dataclass(frozen=True)
class _Worker:
    """What a worker process is started with; it is pickled."""

    model: str | None
    listening: socket.socket
    limits: ServiceLimits
    token: str | None
    hosts: Collection[str]
    threads: int
    drain_seconds: float

    def run(self, ready: Any) -> None:
        """Serve until a signal; release `ready` when requests are answered."""
        from dgn.apps.service.app import create_app

        end_with_parent()
        _log_to_stderr()
        sys.setswitchinterval(_SWITCH_SECONDS)
        selector = Selector.from_pretrained(self.model)
        app = create_app(
            selector, self.limits, token=self.token, hosts=self.hosts, threads=self.threads
        )
        config = uvicorn.Config(
            app,
            http="h11",  # bounds the size of headers and trailers, which httptools does not
            h11_max_incomplete_event_size=self.limits.header_bytes,
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            backlog=2048,
            limit_concurrency=self.limits.connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        _Server(config, app, self.drain_seconds, ready).run(sockets=[self.listening])


class _Server(uvicorn.Server):
    """Finishes what it accepted before it stops.

    The first signal makes the service say "not ready" and ask clients to close their connections;
    after `drain_seconds`, no connection is accepted any more, and the requests in progress are
    finished. A second Ctrl-C stops at once.
    """

    def __init__(self, config: uvicorn.Config, app: Any, drain_seconds: float, ready: Any) -> None:
        super().__init__(config)
        self._app, self._drain_seconds, self._ready = app, drain_seconds, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.release()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._app.state.is_draining:
            self.force_exit |= sig == signal.SIGINT
            return
        self._app.state.is_draining = True
        threading.Timer(self._drain_seconds, self._stop).start()

    def _stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._accept_rest(sockets or [])
        for server in self.servers:
            server.close()
        # uvicorn closes every connection that has no request in progress, also one whose request is
        # on its way. Those that are left close by themselves, because each answer asks for that.
        quiet_since = time.monotonic()
        while self.server_state.connections and not self.force_exit:
            if self.server_state.tasks:
                quiet_since = time.monotonic()
            if time.monotonic() - quiet_since > _QUIET_SECONDS:
                break
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)

    async def _accept_rest(self, sockets: list[socket.socket]) -> None:
        """Accept the connections that wait for it: closing the socket would reset them."""
        for listening in sockets:
            listening.listen(0)  # no further ones may queue
        deadline = time.monotonic() + _GRACE_SECONDS
        while sockets and time.monotonic() < deadline and not self.force_exit:
            if not select.select(sockets, [], [], 0)[0]:
                return
            await asyncio.sleep(0.001)


def serve(
    model: str | None,
    host: str,
    port: int,
    *,
    limits: ServiceLimits | None = None,
    token: str | None = None,
    hosts: Collection[str] = (ANY_HOST,),
    workers: int = 1,
    drain_seconds: float = 0.5,
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        model: As in `Selector.from_pretrained`.
        host: The address to listen on.
        port: The port; 0 for any free one.
        limits: How much a request may be.
        token: A bearer token that requests must have.
        hosts: The names that a request may use for this machine; "*" for any.
        workers: The number of processes that answer.
        drain_seconds: How long to go on accepting connections after the first signal, so that a
            load balancer can notice.

    Raises:
        InvalidInput: The address cannot be used, or the model cannot be loaded.
    """
    _log_to_stderr()
    Selector.from_pretrained(model)  # what is wrong with it is said here, once
    threads = max(2, available_cores() // workers)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // workers)))
    with contextlib.ExitStack() as stack:
        # In a container that is read-only, this is the only place for files.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
        folder = tempfile.TemporaryDirectory(prefix="dgn-serve-", dir=place)
        os.environ[FOLDER] = stack.enter_context(folder)
        stack.callback(os.environ.pop, FOLDER)
        # The first one is bound alone: another command that uses the port is noticed.
        with _bound(host, port) as alone:
            port = alone.getsockname()[1]
        sockets = [stack.enter_context(_bound(host, port, is_shared=True)) for _ in range(workers)]
        settings = [
            _Worker(model, one, limits or ServiceLimits(), token, hosts, threads, drain_seconds)
            for one in sockets
        ]
        shown = f"[{host}]" if ":" in host else host

        def announce() -> None:
            print(f"dgn: serving on http://{shown}:{port} (Ctrl-C to stop)", flush=True)
            log_event("started", host=host, port=port, workers=workers)

        _supervise(settings, announce)
    log_event("stopped")


def _supervise(workers: list[_Worker], announce: Callable[[], None]) -> None:
    """Run the workers until a signal; one that ends is started again.

    Raises:
        InvalidInput: A worker ended before it was ready.
    """
    context = get_context("spawn")
    ready, stopping = context.Semaphore(0), threading.Event()

    def start(worker: _Worker) -> Any:
        process = context.Process(target=worker.run, args=(ready,))
        process.start()
        return process

    def stop(sig: int, _: FrameType | None) -> None:
        if not stopping.is_set():
            stopping.set()
            log_event("stopping", signal=signal.Signals(sig).name)
            for worker in workers:
                worker.listening.close()  # now a worker is the only one that listens
        for process in processes:
            # In a terminal, Ctrl-C has reached the workers, too.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)

    processes = [start(worker) for worker in workers]
    before = {sig: signal.signal(sig, stop) for sig in (signal.SIGTERM, signal.SIGINT)}
    try:
        for _ in workers:
            while not stopping.is_set() and not ready.acquire(timeout=0.1):
                if any(process.exitcode is not None for process in processes):
                    raise InvalidInput("workers", message="A worker ended while it was started.")
        if not stopping.is_set():
            announce()
        while left := [one for one in processes if one.exitcode is None]:
            connection.wait([one.sentinel for one in left], 1.0)
            for place, process in enumerate(processes):
                if process.exitcode is not None and not stopping.is_set():
                    log_event("worker ended", exit_code=process.exitcode)
                    multiprocess.mark_process_dead(process.pid)
                    time.sleep(0.1)
                    processes[place] = start(workers[place])
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)
        for process in processes:
            process.kill()
            process.join()


def _bound(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """A socket at this address, which other workers may share."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if is_shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(
            "port", message=f"Cannot listen on {host}, port {port}: {reason}."
        ) from None
    return listening


def _log_to_stderr() -> None:
    """One JSON object per line; uvicorn's warnings and errors too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOG.handlers = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    errors = logging.getLogger("uvicorn.error")
    errors.handlers = [_AsEvents()]
    errors.setLevel(logging.WARNING)
    errors.propagate = False


class _AsEvents(logging.Handler):
    """Writes the records of another library as events of the service."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
        log_event(record.name, level=record.levelno, **fields)
