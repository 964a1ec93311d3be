"""A connection of a client, with the limits that uvicorn does not have.

Headers must arrive in time and may have a certain size; and when there are too many connections,
the one that has been silent for the longest time makes room for a new one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from dgn.apps.service.refusals import MEDIA_TYPE, ServiceLimits, refusal_body


class _TooLarge(Exception):
    """Raised inside the parser of headers, to stop it."""


def connections_within(limits: ServiceLimits) -> type[HttpToolsProtocol]:
    """The class of connections within these limits; uvicorn makes an instance for each client."""
    silent: dict[_Connection, None] = {}

    class _Limited(_Connection):
        _limits, _silent = limits, silent

    return _Limited


class _Connection(HttpToolsProtocol):
    _limits: ServiceLimits
    _silent: dict[_Connection, None]
    """Connections without a request in progress, the one that has waited longest first."""

    _timer: asyncio.TimerHandle | None = None
    _has_headers = False
    _header_size = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._silent[self] = None
        self._expect_headers()
        if len(self.connections) > self._limits.connections:
            next(iter(self._silent)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silent.pop(self, None)
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._has_headers:
            self._header_size += len(data)
        super().data_received(data)
        # One endless header is not seen by the parser's callbacks.
        if not self._has_headers and self._header_size > self._limits.header_bytes:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._silent.pop(self, None)
        if self._has_headers:  # a further request of this connection
            self._has_headers, self._header_size = False, 0
            self._expect_headers()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.header_bytes:
            raise _TooLarge

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._limits.header_bytes:
            self._header_size = size
            raise _TooLarge
        self._has_headers = True
        self._stop_timer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._silent[self] = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or whose headers are too large, and close the connection."""
        del msg
        if self.transport.is_closing():
            return
        is_large = self._header_size > self._limits.header_bytes
        status = 431 if is_large else 400
        detail = (
            f"The headers are larger than the limit of {self._limits.header_bytes:,} bytes."
            if is_large
            else "The request is not HTTP."
        )
        body = refusal_body(status, detail, "")
        head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + b"\r\n" + body)
        self.transport.close()

    def _expect_headers(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self._limits.seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
