"""What every request must pass: its host, its token, its size and its time to arrive.

What a request may cost is bounded by its size, so that no worker has to be ended. Refusals are
problem documents: application/problem+json, RFC 9457.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from dgn.apps.service.metrics import Metrics, log_event
from dgn.errors import DGNError

ANY_HOST = "*"
MEDIA_TYPE = "application/problem+json"

EXPLAINED = {
    400: "The body is not JSON, or the Host header is missing or not a host.",
    401: "The bearer token is missing or wrong.",
    408: "The body did not arrive in time.",
    413: "The body is larger than the limit.",
    415: "The body is not application/json.",
    421: "The Host header names another machine.",
    422: "A field is not what the schema describes, or is over a limit.",
    503: "The service is busy or stopping; try again later.",
}
"""What each status means here."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._\-]+))(?::\d{1,5})?")
_LINGER_SECONDS, _LINGER_BYTES = 5.0, 64 * 2**20
_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data: blob:; "
     b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]  # fmt: skip

Scope = Any
Receive = Any
Send = Any


@dataclass(frozen=True)
class ServiceLimits:
    """The limits of the service. A request over one of them is refused, and the answer names it.

    Args:
        body_bytes: The size of a request (413).
        queries: Queries in one request (422).
        passages: Passages of one query, after documents were split into sentences (422).
        tokens: Tokens of all texts of one request, as the encoder counts them (422); by default,
            what the encoder reads in a few seconds.
        query_words: Words of a query (422).
        k: The largest k (422).
        seconds: For the body to arrive (408).
        header_bytes: The size of the headers of a request (400).
        connections: Open connections of a worker; further ones are refused (503).
        waiting_requests: Requests of a worker that wait for their answer; further ones are refused
            (503).
        waiting_bytes: The size of all requests of a worker in progress; further ones are refused
            (503).
    """

    body_bytes: int = 4 * 2**20
    queries: int = 64
    passages: int = 2_000
    tokens: int | None = None
    query_words: int = 1_000
    k: int = 100
    seconds: float = 10.0
    header_bytes: int = 32 * 1024
    connections: int = 2_048
    waiting_requests: int = 512
    waiting_bytes: int = 256 * 2**20


class Refused(DGNError):
    """A request that is answered with a problem document.

    Args:
        status: The HTTP status.
        detail: What was wrong and what to do, as a sentence.
        reason: A word for the metrics.
        headers: Further headers of the answer.
        errors: For a body with several mistakes: where each one is, and what is wrong.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        reason: str = "",
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.reason = status, detail, reason
        self.headers, self.errors = dict(headers or {}), errors

    def document(self, request_id: str) -> bytes:
        """The problem document."""
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }
        if self.errors:
            body["errors"] = list(self.errors)
        return json.dumps(body, ensure_ascii=False).encode()


def busy(detail: str, reason: str) -> Refused:
    """The refusal of a request that may be sent again in a second."""
    return Refused(503, detail, reason=reason, headers={"Retry-After": "1"})


class Guard:
    """Middleware: refuses what may not be asked, reads the body within its limits, and logs.

    Args:
        app: The application.
        limits: How much a request may be.
        metrics: What is counted.
        token: What `Authorization: Bearer` must contain; None if everybody may ask.
        hosts: The names that a request may use for this machine; "*" for any. An address is always
            allowed: a page of the web can point its own name to this machine, and not an address.
        posts: The paths that take JSON.
        gets: The paths that take nothing; they and what is below `/page/` need no token.
        closed: Those of `gets` that need the token.
    """

    def __init__(
        self,
        app: Any,
        *,
        limits: ServiceLimits,
        metrics: Metrics,
        token: str | None,
        hosts: Collection[str],
        posts: Collection[str],
        gets: Collection[str],
        closed: Collection[str],
    ) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._posts, self._paths = frozenset(posts), frozenset({*posts, *gets})
        self._closed = frozenset({*posts, *closed})
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers: dict[bytes, bytes] = dict(reversed(scope["headers"]))  # the first one counts
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        status, size, is_read = 500, 0, scope["method"] in ("GET", "HEAD")
        is_head = scope["method"] == "HEAD"

        async def send_guarded(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = [(b"x-request-id", request_id.encode()), *_HEADERS]
                if scope["app"].state.is_draining:
                    more.append((b"connection", b"close"))
                message = {**message, "headers": [*message["headers"], *more]}
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        self._metrics.in_progress.inc()
        try:
            try:
                self._check(scope, headers)
                if not is_read:
                    body = await self._read(headers, receive)
                    size, is_read = len(body), True
                    receive = _replayed(body, receive)
                inner = {**scope, "method": "GET"} if is_head else scope
                await self._app(inner, receive, send_guarded)
            except Refused as refusal:
                await self._refuse(refusal, request_id, receive, send_guarded, is_read=is_read)
            except Exception:
                detail = "The service failed; its log has the reason under the id of this request."
                failure = Refused(500, detail)
                trace = traceback.format_exc()
                log_event("failure", level=logging.ERROR, request_id=request_id, trace=trace)
                await self._refuse(failure, request_id, receive, send_guarded, is_read=is_read)
        finally:
            self._bytes -= size
            self._metrics.in_progress.dec()
            seconds = time.perf_counter() - started
            path = scope["path"]
            path = path if path in self._paths else "page" if path[:6] == "/page/" else "other"
            self._metrics.count(path, status, seconds)
            log_event(
                "request",
                request_id=request_id,
                method=scope["method"],
                path=path,
                status=status,
                ms=round(1000 * seconds, 3),
                bytes=size,
            )

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Refuse what may not be asked here, before its body is read."""
        names = [value for name, value in scope["headers"] if name == b"host"]
        found = _HOST.fullmatch(names[0].decode("latin-1").strip().lower()) if names else None
        if len(names) != 1 or found is None:
            reason = "not a host" if names else "missing"
            raise Refused(400, f"The Host header is {reason}.", reason="host")
        host = found[1] or found[2]
        if ANY_HOST not in self._hosts and host not in self._hosts and not _is_address(host):
            raise Refused(
                421,
                "This service answers only to the name of its own machine; start it with "
                "--allow-host NAME to allow another one.",
                reason="host",
            )
        path = scope["path"]
        if self._token is not None and path in self._closed:
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            is_right = hmac.compare_digest(given.strip(), self._token)
            if scheme.lower() != b"bearer" or not is_right:
                raise Refused(
                    401,
                    "Send the token of this service as 'Authorization: Bearer TOKEN'.",
                    reason="token",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        if path in self._posts and scope["method"] == "POST":
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                raise Refused(415, "Send the body as application/json.", reason="type")

    async def _read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The body of a request; its size counts until the request is answered."""
        limit = self._limits.body_bytes
        too_large = Refused(
            413, f"The body is larger than the limit of {limit:,} bytes.", reason="bytes"
        )
        announced = headers.get(b"content-length", b"")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > limit):
            raise too_large
        parts: list[bytes] = []
        size, has_more = 0, True
        try:
            async with asyncio.timeout(self._limits.seconds):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "The body is not complete.", reason="disconnect")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self._bytes += len(parts[-1])
                    has_more = message.get("more_body", False)
                    if size > limit:
                        raise too_large
                    if self._bytes > self._limits.waiting_bytes:
                        detail = "The requests in progress are too large together; try again later."
                        raise busy(detail, "bytes")
            return b"".join(parts)
        except BaseException as error:
            self._bytes -= size
            if isinstance(error, TimeoutError):
                detail = f"The body did not arrive within {self._limits.seconds:g} seconds."
                raise Refused(408, detail, reason="slow") from None
            raise

    async def _refuse(
        self, refusal: Refused, request_id: str, receive: Receive, send: Send, *, is_read: bool
    ) -> None:
        if refusal.reason:
            self._metrics.refused.labels(refusal.reason).inc()
        body = refusal.document(request_id)
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in refusal.headers.items()),
        ]
        if not is_read:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": not is_read})
        if not is_read:
            if refusal.status != 408:
                await _discard_rest(receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A function that returns the body, and then what the client does further."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return waiting.pop() if waiting else await receive()

    return again


async def _discard_rest(receive: Receive) -> None:
    """Read what is left of a body that is not wanted, for a while.

    A connection that is closed before its body was read is reset, and the client may then lose the
    answer that says why.
    """
    left = _LINGER_BYTES
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
