"""What every request passes: its id, the host, the token, the limits, the log and the metrics."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dgn.apps.service.refusals import Refused, ServiceLimits, busy

LOG = logging.getLogger("dgn.apps.service")
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What needs no token; neither do the files of the page, which contain no data."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}")
_SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data: blob:; "
     b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]  # fmt: skip


class Metrics:
    """What /metrics shows, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "dgn_requests", "Answered requests.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "dgn_request_seconds",
            "From the first byte of a request to its answer.",
            ["path"],
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
            registry=self.registry,
        )
        self.refused = Counter(
            "dgn_refused", "Requests over a limit.", ["reason"], registry=self.registry
        )
        self.in_progress = Gauge(
            "dgn_requests_in_progress", "Requests that wait for an answer.", registry=self.registry
        )
        self.batches = Histogram(
            "dgn_batch_queries",
            "Queries that were selected together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self.registry,
        )
        self.passages = Counter("dgn_passages", "Passages read.", registry=self.registry)

    def count(self, refusal: Refused) -> None:
        """Count a refusal, if it is due to a limit."""
        if refusal.reason:
            self.refused.labels(refusal.reason).inc()


class Gate:
    """ASGI middleware around the whole service.

    Args:
        app: What is served.
        limits: How much a request may be, and how many may wait.
        metrics: Where requests are counted.
        token: What `Authorization: Bearer` must contain; None if everybody may ask.
        hosts: The host names that a request may use; empty for any. A page of the web that points
            its own name to this machine is kept out by them.
        page_paths: The files of the page.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: ServiceLimits,
        metrics: Metrics,
        token: str | None,
        hosts: Collection[str],
        page_paths: Collection[str],
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(hosts)
        self._open_paths = OPEN_PATHS | frozenset(page_paths)
        self._requests = 0
        self._bytes = 0
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request = Request(scope)
        given = request.headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", request_id.encode())]
                headers += _SECURITY_HEADERS
                if self.is_draining:
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await send(message)

        size = 0
        self._requests += 1
        self._metrics.in_progress.inc()
        try:
            try:
                self._admit(request)
                body = await self._body(request, receive)
                size = len(body)
                await self._app(scope, _replayed(body, receive), send_with_headers)
            except Refused as refusal:
                self._metrics.count(refusal)
                response = refusal.response(request_id)
                if refusal.status in {408, 413}:
                    response.headers["connection"] = "close"  # the rest of the body is not read
                await response(scope, receive, send_with_headers)
        except Exception:  # a 500 has been sent
            trace = traceback.format_exc()
            log_event("failure", level=logging.ERROR, request_id=request_id, trace=trace)
        except asyncio.CancelledError:
            status = 499  # the client has gone
            raise
        finally:
            self._requests -= 1
            self._metrics.in_progress.dec()
            path = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - started
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(seconds)
            log_event(
                "request",
                request_id=request_id,
                method=request.method,
                path=path,
                status=status,
                ms=round(1000 * seconds, 3),
                bytes=size,
            )

    def _admit(self, request: Request) -> None:
        """Refuse what may not be asked here or now."""
        if self._hosts and _host_of(request) not in self._hosts:
            raise Refused(
                421,
                "This service answers only to the name of its own machine; start it with "
                "--allow-host NAME to allow another one.",
                reason="host",
            )
        path = request.url.path
        if self._token is not None and path not in self._open_paths:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.strip().encode(), self._token)
            if scheme.lower() != "bearer" or not is_right:
                raise Refused(
                    401,
                    "Send the token of this service as 'Authorization: Bearer TOKEN'.",
                    reason="token",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        if path in OPEN_PATHS:
            return
        if self._requests > self._limits.waiting_requests:
            most = self._limits.waiting_requests
            raise busy(f"More than {most} requests are in progress; try again later.", "requests")

    async def _body(self, request: Request, receive: Receive) -> bytes:
        """Read the body, within the limits of size and time."""
        if request.method not in {"POST", "PUT", "PATCH"}:
            return b""
        limit = self._limits.body_bytes
        too_large = Refused(
            413, f"The body is larger than the limit of {limit:,} bytes.", reason="bytes"
        )
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large
        expected = int(length) if length.isdecimal() else limit
        if self._bytes + expected > self._limits.waiting_bytes:
            raise busy("The requests in progress are too large together; try again later.", "bytes")
        self._bytes += expected
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "The body is not complete.", reason="disconnect")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Refused(
                408,
                f"The body did not arrive within the limit of {self._limits.seconds:g} seconds.",
                reason="slow",
            ) from None
        finally:
            self._bytes -= expected


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What gives the app the body that was read, and then what the client does."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _host_of(request: Request) -> str:
    host = request.headers.get("host", "").strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def log_event(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one line of JSON to the log; it contains no text of a request."""
    if LOG.isEnabledFor(level):
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
        line = {"time": stamp, "level": logging.getLevelName(level).lower(), "event": event}
        LOG.log(level, "%s", json.dumps(line | fields, ensure_ascii=False))
