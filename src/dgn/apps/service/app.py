"""The service as an ASGI application: paths, and what they answer.

The event loop does what every request costs alike; what grows with a request is done by the pool.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dgn
from dgn.apps.service import metrics as measured
from dgn.apps.service.answering import PATHS, Asked
from dgn.apps.service.gate import ANY_HOST, Gate, discard_rest
from dgn.apps.service.metrics import Metrics, log_event
from dgn.apps.service.openapi import describe
from dgn.apps.service.pool import Lane, Pool, ThreadLane
from dgn.apps.service.refusals import MEDIA_TYPE, Refused, ServiceLimits, busy, refusal_body
from dgn.selector import Selector

_PAGE = Path(__file__).parent / "page"
_SCRIPT = "text/javascript; charset=utf-8"
_PAGE_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/page.js": ("page.js", _SCRIPT),
    "/page/link.js": ("link.js", _SCRIPT),
    "/page/reasons.js": ("reasons.js", _SCRIPT),
    "/page/picture.js": ("picture.js", _SCRIPT),
    "/page/rounds.js": ("rounds.js", _SCRIPT),
    "/page/service.js": ("service.js", _SCRIPT),
    "/page/text.js": ("text.js", _SCRIPT),
    "/page/samples.json": ("samples.json", "application/json"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Every file that can be fetched: no path comes from a request."""

_OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What needs no token; neither do the files of the page, which contain no data."""

_JSON = "application/json"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}")
_SECURITY_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data: blob:; "
     b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]  # fmt: skip

Scope = Any
Send = Any
Receive = Any


@dataclass(frozen=True)
class _Response:
    """What a path answers."""

    status: int
    body: bytes
    media_type: str = _JSON
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Service:
    """The application, and the switch that makes it refuse new work before it stops.

    Args:
        lanes: Who answers requests.
        limits: How much a request may be, and how many may wait.
        token: A bearer token that requests must have.
        hosts: The names that a request may use for this machine; "*" for any.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        limits: ServiceLimits,
        *,
        token: str | None = None,
        hosts: Collection[str] = (ANY_HOST,),
    ) -> None:
        self.limits = limits
        self.in_progress = 0
        self.is_draining = False
        self.problem: Exception | None = None
        self._waiting = 0
        self._metrics = Metrics()
        self._pool = Pool(lanes, limits, self._metrics.batches.observe)
        self._files = {
            path: _Response(200, (_PAGE / name).read_bytes(), kind, {"Cache-Control": "no-cache"})
            for path, (name, kind) in _PAGE_FILES.items()
        }
        schema = json.dumps(describe(limits, has_token=token is not None)).encode()
        self._files["/openapi.json"] = _Response(200, schema)
        self._gate = Gate(limits, token, hosts, _OPEN_PATHS | set(_PAGE_FILES))
        self._getters = {
            "/healthz": lambda: _status("ok"),
            "/readyz": self._readiness,
            "/metrics": lambda: _Response(200, self._metrics.to_text(), measured.MEDIA_TYPE),
        }

    def drain(self) -> None:
        """Say "not ready", and ask clients to close their connections; requests are answered."""
        self.is_draining = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._pool.start()
        except Exception as error:
            self.problem = error
            await self._pool.stop()
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._pool.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # the first one counts
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        path = scope["path"] if self._is_known(scope["path"]) else "other"
        self.in_progress += 1
        self._metrics.in_progress.inc()
        size, is_read, failure = 0, scope["method"] not in ("POST", "PUT", "PATCH"), ""
        try:
            try:
                self._gate.check(scope["path"], headers)
                self._check_method(scope["path"], scope["method"])
                if scope["method"] != "POST":
                    response = self._get(scope["path"])
                else:
                    _check_media_type(headers)
                    body = await self._gate.read(headers, receive)
                    size, is_read = len(body), True
                    response, failure = await self._post(scope["path"], request_id, body)
            except Refused as refusal:
                is_read |= refusal.is_read
                if refusal.reason:
                    self._metrics.refused.labels(refusal.reason).inc()
                document = refusal_body(refusal.status, refusal.detail, request_id)
                response = _Response(refusal.status, document, MEDIA_TYPE, refusal.headers)
            await self._send(send, response, request_id, keeps_open=is_read)
            if not is_read:
                await discard_rest(receive)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._gate.release(size)
            self.in_progress -= 1
            self._metrics.in_progress.dec()
        if failure:
            log_event("failure", level=logging.ERROR, request_id=request_id, trace=failure)
        seconds = time.perf_counter() - started
        self._metrics.count(path, response.status, seconds)
        log_event(
            "request",
            request_id=request_id,
            method=scope["method"],
            path=path,
            status=response.status,
            ms=round(1000 * seconds, 3),
            bytes=size,
        )

    async def _send(
        self, send: Send, response: _Response, request_id: str, *, keeps_open: bool
    ) -> None:
        """Send a response; if the connection is to be closed, all but the end of it."""
        headers = [
            (b"content-type", response.media_type.encode()),
            (b"content-length", str(len(response.body)).encode()),
            (b"x-request-id", request_id.encode()),
            *((name.lower().encode(), value.encode()) for name, value in response.headers.items()),
            *_SECURITY_HEADERS,
        ]
        if self.is_draining or not keeps_open:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send(
            {"type": "http.response.body", "body": response.body, "more_body": not keeps_open}
        )

    def _is_known(self, path: str) -> bool:
        return path in PATHS or path in self._files or path in self._getters

    def _check_method(self, path: str, method: str) -> None:
        if not self._is_known(path):
            raise Refused(404, "There is nothing at this path; see /openapi.json.")
        allowed = ("POST",) if path in PATHS else ("GET", "HEAD")
        if method not in allowed:
            raise Refused(
                405,
                "This path does not take this method; see /openapi.json.",
                headers={"Allow": ", ".join(allowed)},
            )

    def _get(self, path: str) -> _Response:
        return self._getters[path]() if path in self._getters else self._files[path]

    async def _post(self, path: str, request_id: str, body: bytes) -> tuple[_Response, str]:
        """The response, and why answering failed, if it did."""
        if self._waiting >= self.limits.waiting_requests:
            most = self.limits.waiting_requests
            raise busy(f"More than {most} requests are in progress; try again later.", "requests")
        self._waiting += 1
        try:
            answered = await self._pool.ask(Asked(path, request_id, body))
        finally:
            self._waiting -= 1
        if answered.reason:
            self._metrics.refused.labels(answered.reason).inc()
        self._metrics.passages.inc(answered.passages)
        kind = _JSON if answered.status == 200 else MEDIA_TYPE
        return _Response(answered.status, answered.body, kind), answered.failure

    def _readiness(self) -> _Response:
        if self.is_draining:
            raise busy("The service is stopping.", "stopping")
        if not self._pool.is_ready:
            raise busy("No worker is ready; one is being started.", "starting")
        return _status("ready")


def create_app(
    selector: Selector,
    limits: ServiceLimits | None = None,
    *,
    token: str | None = None,
    hosts: Collection[str] = (ANY_HOST,),
) -> Service:
    """Make the service, for uvicorn or any other ASGI server.

    One thread of this process answers the requests. `dgn serve` answers them in processes, which
    it can end when a request takes too long; a thread goes on.

    Args:
        selector: Selects for every request.
        limits: How much a request may be, and how many may wait.
        token: A bearer token that requests must have.
        hosts: The names that a request may use for this machine; "*" for any.
    """
    limits = limits or ServiceLimits()
    return Service([ThreadLane(selector, limits)], limits, token=token, hosts=hosts)


def _status(status: str) -> _Response:
    return _Response(200, json.dumps({"status": status, "version": dgn.__version__}).encode())


def _check_media_type(headers: Mapping[bytes, bytes]) -> None:
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != _JSON.encode():
        raise Refused(415, "Send the body as application/json.", reason="type")
