"""How much one request may ask for, and how much may wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceLimits:
    """The limits of the service. A request over one of them is refused, and the answer names it.

    Args:
        body_bytes: The size of a request (413).
        queries: Queries in one request (422).
        passages: Passages of one query, after documents were split into sentences (422).
        tokens: Tokens of all texts of one request, as the encoder counts them (422).
        k: The largest k (422).
        seconds: From the first byte of a request to its answer (408 while it is read, then 503).
        waiting_requests: Requests that may be in progress; further ones are refused (503).
        waiting_bytes: The size of all requests in progress; further ones are refused (503).
        batch_queries: Queries that are selected together.
    """

    body_bytes: int = 4 * 2**20
    queries: int = 64
    passages: int = 2_000
    tokens: int = 200_000
    k: int = 100
    seconds: float = 10.0
    waiting_requests: int = 512
    waiting_bytes: int = 256 * 2**20
    batch_queries: int = 64
