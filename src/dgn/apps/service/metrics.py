"""What operators see: the numbers of /metrics, and the log."""

from __future__ import annotations

import json
import logging
import time
from functools import lru_cache
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

LOG = logging.getLogger("dgn.apps.service")
MEDIA_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """What /metrics shows, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._by_labels: dict[tuple[str, int], tuple[Any, Any]] = {}
        ProcessCollector(registry=self._registry)
        self.requests = Counter(
            "dgn_requests", "Answered requests.", ["path", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "dgn_request_seconds",
            "From the first byte of a request to its answer.",
            ["path"],
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
            registry=self._registry,
        )
        self.refused = Counter(
            "dgn_refused", "Requests over a limit.", ["reason"], registry=self._registry
        )
        self.in_progress = Gauge(
            "dgn_requests_in_progress", "Requests that wait for an answer.", registry=self._registry
        )
        self.batches = Histogram(
            "dgn_batch_requests",
            "Requests that were answered together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self._registry,
        )
        self.passages = Counter("dgn_passages", "Passages read.", registry=self._registry)

    def to_text(self) -> bytes:
        """The numbers in Prometheus's text format."""
        return generate_latest(self._registry)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        known = self._by_labels.get((path, status))
        if known is None:  # to find numbers by their labels takes longer than to change them
            known = self.requests.labels(path, str(status)), self.seconds.labels(path)
            self._by_labels[path, status] = known
        known[0].inc()
        known[1].observe(seconds)


def log_event(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one line of JSON to the log; it contains no text of a request."""
    if LOG.isEnabledFor(level):
        now = time.time()
        stamp = f"{_second(int(now))}.{int(now % 1 * 1000):03}Z"
        line = {"time": stamp, "level": logging.getLevelName(level).lower(), "event": event}
        LOG.log(level, "%s", json.dumps(line | fields, ensure_ascii=False))


@lru_cache(maxsize=1)
def _second(now: int) -> str:
    """A second as text; thousands of lines may have the same."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
