"""What operators see: the numbers of /metrics, and the log.

With several workers, the numbers are in files that all of them share (PROMETHEUS_MULTIPROC_DIR,
which `serve` sets), and any worker can show the sums.
"""

from __future__ import annotations

import json
import logging
import os
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
from prometheus_client.multiprocess import MultiProcessCollector

LOG = logging.getLogger("dgn.apps.service")
MEDIA_TYPE = CONTENT_TYPE_LATEST
FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """What /metrics shows, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._by_labels: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._shown = CollectorRegistry() if FOLDER in os.environ else self._registry
        if FOLDER in os.environ:
            loose: Any = MultiProcessCollector
            loose(self._shown)
        ProcessCollector(registry=self._shown)  # of the worker that answers
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
            "dgn_requests_in_progress",
            "Requests that wait for an answer.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self.passages = Counter("dgn_passages", "Passages read.", registry=self._registry)

    def to_text(self) -> bytes:
        """The numbers in Prometheus's text format."""
        return generate_latest(self._shown)

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        pair = self._by_labels.get((path, status))
        if pair is None:  # to find numbers by their labels takes longer than to change them
            pair = self.requests.labels(path, str(status)), self.seconds.labels(path)
            self._by_labels[path, status] = pair
        pair[0].inc()
        pair[1].observe(seconds)


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
