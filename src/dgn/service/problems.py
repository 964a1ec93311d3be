"""Errors as problem documents: application/problem+json, RFC 9457."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

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
    503: "The service is busy or stopping, or the answer took too long; try again later.",
}
"""What each status means here."""


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

    def response(self, request_id: str) -> Response:
        """The answer to the request with this id."""
        return problem_response(self.status, self.detail, request_id, headers=self.headers)


def busy(detail: str, reason: str) -> Refused:
    """The refusal of a request that may be sent again in a second."""
    return Refused(503, detail, reason=reason, headers={"Retry-After": "1"})


def problem_response(
    status: int,
    detail: str,
    request_id: str,
    *,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, Any]] = (),
) -> Response:
    """A problem document.

    Args:
        status: The HTTP status.
        detail: What was wrong and what to do, as a sentence.
        request_id: The id of the request, which the log has too.
        headers: Further headers.
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
    content = json.dumps(body, ensure_ascii=False)
    return Response(content, status, dict(headers or {}), media_type=MEDIA_TYPE)
