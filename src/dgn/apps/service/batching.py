"""Requests that wait together are selected together.

One thread selects; while it works on a batch, new requests gather and become the next one. A single
client therefore never waits for others, and many clients share the work. The results are those of
one query at a time: no result of a Selector depends on the batch.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from dgn.apps.service.refusals import busy
from dgn.selector import Limits, PassageSelection, Selector
from dgn.text.query import Query

Finish = Callable[[list[PassageSelection]], bytes]
"""From the selections of a request to the body of its answer; it runs in the thread, too."""


@dataclass(eq=False)
class _Job:
    queries: Sequence[Query]
    limits: Limits
    finish: Finish
    deadline: float
    answer: asyncio.Future[bytes]
    result: bytes | BaseException = field(default=b"")


class Batcher:
    """Selects for concurrent requests in batches.

    Args:
        selector: Selects for every request.
        batch_queries: The most queries of a batch, unless a single request has more.
        seconds: How long a request may wait for its answer.
        observe: Told the number of queries of every batch.
    """

    def __init__(
        self,
        selector: Selector,
        batch_queries: int,
        seconds: float,
        observe: Callable[[int], Any] = lambda _: None,
    ) -> None:
        self._selector, self._most, self._seconds = selector, batch_queries, seconds
        self._observe = observe
        self._waiting: deque[_Job] = deque()
        self._has_work = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dgn-select")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to answer; in the event loop that `select` is called from."""
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Stop; requests are answered before this is called."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown()

    async def select(self, queries: Sequence[Query], limits: Limits, finish: Finish) -> bytes:
        """Wait for the answer to some queries.

        Args:
            queries: The queries of one request.
            limits: How much to select.
            finish: Makes the body of the answer.

        Raises:
            Refused: The answer took too long.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        deadline = time.monotonic() + self._seconds
        self._waiting.append(_Job(queries, limits, finish, deadline, answer))
        self._has_work.set()
        try:
            return await asyncio.wait_for(answer, self._seconds)
        except TimeoutError:
            raise busy(
                f"The answer took longer than the limit of {self._seconds:g} seconds; send fewer "
                "queries or passages, or try again later.",
                "time",
            ) from None

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._waiting:
                self._has_work.clear()
                await self._has_work.wait()
            if not (jobs := self._next_jobs()):
                continue
            self._observe(sum(len(job.queries) for job in jobs))
            await loop.run_in_executor(self._thread, self._answer, jobs)
            for job in jobs:
                if job.answer.done():  # the client has gone, or the time is over
                    continue
                if isinstance(job.result, BaseException):
                    job.answer.set_exception(job.result)
                else:
                    job.answer.set_result(job.result)

    def _next_jobs(self) -> list[_Job]:
        jobs: list[_Job] = []
        count, now = 0, time.monotonic()
        while self._waiting:
            job = self._waiting[0]
            if jobs and count + len(job.queries) > self._most:
                break
            self._waiting.popleft()
            if not job.answer.done() and now < job.deadline:
                jobs.append(job)
                count += len(job.queries)
        return jobs

    def _answer(self, jobs: list[_Job]) -> None:
        """Give every job its result; in the thread."""
        alike: dict[Limits, list[_Job]] = {}
        for job in jobs:
            alike.setdefault(job.limits, []).append(job)
        for limits, some in alike.items():
            queries = [query for job in some for query in job.queries]
            try:
                found = iter(self._selector.select_queries(queries, limits))
            except Exception:  # one of them is at fault; the others are answered all the same
                found = None
            for job in some:
                try:
                    own = (
                        self._selector.select_queries(job.queries, limits)
                        if found is None
                        else [next(found) for _ in job.queries]
                    )
                    job.result = job.finish(own)
                except Exception as error:  # the one whose request it is gets it
                    job.result = error
