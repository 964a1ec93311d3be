"""How much a request may ask for, and how one that asks for more is refused.

Refusals are problem documents: application/problem+json, RFC 9457.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from dgn.errors import DGNError

MEDIA_TYPE = "application/problem+json"

EXPLAINED = {
    400: "The body is not JSON, or the Host header is missing.",
    401: "The bearer token is missing or wrong.",
    408: "The body did not arrive in time.",
    413: "The body is larger than the limit.",
    415: "The body is not application/json.",
    421: "The Host header names another machine.",
    422: "A field is not what the schema describes, or is over a limit.",
    431: "The headers are larger than the limit.",
    503: "The service is busy or stopping, or the answer took too long; try again later.",
}
"""What each status means here."""


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
        seconds: For the headers to arrive (then the connection is closed), for the body (408),
            and for the answer (503).
        header_bytes: The size of the headers of a request (431).
        connections: Open connections; for a further one, the one that was silent for the longest
            time is closed.
        waiting_requests: Requests that wait for their answer; further ones are refused (503).
        waiting_bytes: The size of all requests in progress; further ones are refused (503).
        batch_requests: Requests that are answered together.
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
    batch_requests: int = 64


class Refused(DGNError):
    """A request that is answered with a problem document.

    Args:
        status: The HTTP status.
        detail: What was wrong and what to do, as a sentence.
        reason: A word for the metrics.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        reason: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.reason = reason
        self.headers = dict(headers or {})
        self.is_read = False  # whether the body of the request has arrived completely


def busy(detail: str, reason: str) -> Refused:
    """The refusal of a request that may be sent again in a second."""
    return Refused(503, detail, reason=reason, headers={"Retry-After": "1"})


def refusal_body(
    status: int, detail: str, request_id: str, *, errors: Sequence[Mapping[str, Any]] = ()
) -> bytes:
    """A problem document.

    Args:
        status: The HTTP status.
        detail: What was wrong and what to do, as a sentence.
        request_id: The id of the request, which the log has too.
        errors: For a body with several mistakes: where each one is, and what is wrong.
    """
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": request_id,
    }
    if errors:
        body["errors"] = list(errors)
    return json.dumps(body, ensure_ascii=False).encode()
