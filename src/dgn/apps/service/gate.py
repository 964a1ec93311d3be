"""What a request must pass before it is answered: its host, its token, its size.

Nothing here grows with the body of a request, except that its bytes are counted.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Collection, Mapping
from typing import Any

from dgn.apps.service.refusals import Refused, ServiceLimits, busy

Receive = Any
"""ASGI's function that returns the next message of a client."""

ANY_HOST = "*"
_LINGER_SECONDS = 5.0
_LINGER_BYTES = 64 * 2**20


class Gate:
    """Admits requests.

    Args:
        limits: How much a request may be, and how many may be in progress.
        token: What `Authorization: Bearer` must contain; None if everybody may ask.
        hosts: The names that a request may use for this machine; "*" for any. An address is always
            allowed: a page of the web can point its own name to this machine, and not an address.
        open_paths: What needs no token.
    """

    def __init__(
        self,
        limits: ServiceLimits,
        token: str | None,
        hosts: Collection[str],
        open_paths: Collection[str],
    ) -> None:
        self._limits = limits
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._open_paths = frozenset(open_paths)
        self._bytes = 0

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Refuse what may not be asked here.

        Raises:
            Refused: The host or the token is wrong.
        """
        host = _host_of(headers.get(b"host", b""))
        if not host:
            raise Refused(400, "The Host header is missing.", reason="host")
        if ANY_HOST not in self._hosts and host not in self._hosts and not _is_address(host):
            raise Refused(
                421,
                "This service answers only to the name of its own machine; start it with "
                "--allow-host NAME to allow another one.",
                reason="host",
            )
        if self._token is not None and path not in self._open_paths:
            scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
            is_right = hmac.compare_digest(given.strip(), self._token)
            if scheme.lower() != b"bearer" or not is_right:
                raise Refused(
                    401,
                    "Send the token of this service as 'Authorization: Bearer TOKEN'.",
                    reason="token",
                    headers={"WWW-Authenticate": "Bearer"},
                )

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the body of a request; `release` forgets its bytes when the request is done.

        Raises:
            Refused: The body is too large or too slow, or too many bytes are in progress.
        """
        limit = self._limits.body_bytes
        too_large = Refused(
            413, f"The body is larger than the limit of {limit:,} bytes.", reason="bytes"
        )
        announced = headers.get(b"content-length", b"")
        if announced.isdigit() and (len(announced) > 18 or int(announced) > limit):
            raise too_large
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "The body is not complete.", reason="disconnect")
                    part = message.get("body", b"")
                    parts.append(part)
                    size += len(part)
                    self._bytes += len(part)
                    is_last = not message.get("more_body", False)
                    if size > limit:
                        too_large.is_read = is_last
                        raise too_large
                    if self._bytes > self._limits.waiting_bytes:
                        detail = "The requests in progress are too large together; try again later."
                        refusal = busy(detail, "bytes")
                        refusal.is_read = is_last
                        raise refusal
                    if is_last:
                        return b"".join(parts)
        except TimeoutError:
            self.release(size)
            raise Refused(
                408,
                f"The body did not arrive within the limit of {self._limits.seconds:g} seconds.",
                reason="slow",
            ) from None
        except BaseException:
            self.release(size)
            raise

    def release(self, size: int) -> None:
        """Forget the bytes of a body: its request is done."""
        self._bytes -= size


async def discard_rest(receive: Receive) -> None:
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


def _host_of(header: bytes) -> str:
    host = header.decode("latin-1").strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
