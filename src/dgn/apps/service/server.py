"""`dgn serve`: the service on a socket, until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import signal
import socket
import sys
import time
from dataclasses import replace
from types import FrameType
from typing import Any

import uvicorn

from dgn.apps.service.app import Service
from dgn.apps.service.connections import connections_within
from dgn.apps.service.metrics import LOG, log_event
from dgn.errors import InvalidInput

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GRACE_SECONDS = 30
_QUIET_SECONDS = 0.5
"""How long a connection may stay without a request before it is closed at the end."""

_OTHER_FILES = 128
"""Descriptors that are not connections: modules, sockets of workers."""


class _Server(uvicorn.Server):
    """Finishes what it accepted before it stops.

    The first signal makes the service say "not ready" and ask clients to close their connections;
    after `drain_seconds`, no connection is accepted any more, and the requests in progress are
    finished. A second Ctrl-C stops at once.
    """

    def __init__(self, config: uvicorn.Config, service: Service, drain_seconds: float) -> None:
        super().__init__(config)
        self._service, self._drain_seconds = service, drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port, *_ = (sockets or [])[0].getsockname()
        shown = f"[{host}]" if ":" in host else host
        print(f"dgn: serving on http://{shown}:{port} (Ctrl-C to stop)", flush=True)
        log_event("started", host=host, port=port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._service.is_draining:
            self.force_exit = sig == signal.SIGINT
            self.should_exit = True
            return
        self._service.drain()
        log_event("stopping", signal=signal.Signals(sig).name)
        asyncio.get_event_loop().call_later(self._drain_seconds, self._stop)

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
            if self._service.in_progress:
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


def serve(service: Service, host: str, port: int, *, drain_seconds: float = 0.5) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        service: What answers.
        host: The address to listen on.
        port: The port; 0 for any free one.
        drain_seconds: How long to go on accepting connections after the first signal, so that a
            load balancer can notice.

    Raises:
        InvalidInput: The address cannot be used, or the model cannot be loaded.
    """
    _log_to_stderr()
    limits = replace(
        service.limits, connections=min(service.limits.connections, _possible_connections())
    )
    with _bound(host, port) as listening:
        config = uvicorn.Config(
            service,
            http=connections_within(limits),
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            backlog=2048,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        server = _Server(config, service, drain_seconds)
        with contextlib.suppress(SystemExit):  # uvicorn's, when the start has failed
            server.run(sockets=[listening])
    if service.problem is not None:
        raise service.problem
    log_event("stopped")


def _possible_connections() -> int:
    """How many connections this process may have open; its limit is raised as far as it goes."""
    try:
        import resource
    except ImportError:  # Windows
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, 65_536)), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(64, soft - _OTHER_FILES)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
