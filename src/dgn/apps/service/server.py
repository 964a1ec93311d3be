"""`dgn serve`: the service on a socket, until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from types import FrameType

import uvicorn

from dgn.apps.service.app import Service
from dgn.apps.service.gate import LOG, log_event
from dgn.errors import InvalidInput

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GRACE_SECONDS = 30
_QUEUE_SECONDS = 0.3
"""How long connections that wait to be accepted get for that at the end."""
_QUIET_SECONDS = 0.5
"""How long a connection may stay without a request before it is closed at the end."""


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
        # To close a listening socket resets the connections that wait to be accepted: no further
        # ones may queue, and those that do are accepted first.
        for listening in sockets or []:
            listening.listen(0)
        await asyncio.sleep(_QUEUE_SECONDS)
        for server in self.servers:
            server.close()
        # uvicorn closes every connection that has no request in progress, also one whose request is
        # on its way. Those that are left close by themselves: each answer asks for that.
        deadline = time.monotonic() + _QUIET_SECONDS
        while self.server_state.connections and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)


def serve(service: Service, host: str, port: int, *, drain_seconds: float = 0.5) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        service: What `create_app` made.
        host: The address to listen on.
        port: The port; 0 for any free one.
        drain_seconds: How long to go on accepting connections after the first signal, so that a
            load balancer can notice.

    Raises:
        InvalidInput: The address cannot be used.
    """
    _log_to_stderr()
    with _bound(host, port) as listening:
        config = uvicorn.Config(
            service,
            access_log=False,
            log_config=None,
            server_header=False,
            backlog=2048,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        _Server(config, service, drain_seconds).run(sockets=[listening])
    log_event("stopped")


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
        fields = {"message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = repr(record.exc_info[1])
        log_event(record.name, level=record.levelno, **fields)
