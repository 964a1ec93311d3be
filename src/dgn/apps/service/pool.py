"""Who answers requests: worker processes that can be ended, or a thread of this process.

A pool has lanes. A lane answers one batch at a time; while it works, new requests gather and become
the next one. A single client therefore never waits for others, and many clients share the work.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, final

from dgn.apps.service.answering import Answered, Answerer, Asked
from dgn.apps.service.metrics import log_event
from dgn.apps.service.refusals import ServiceLimits, busy
from dgn.apps.service.worker import LENGTHS, divided, to_message
from dgn.errors import DGNError, InvalidInput
from dgn.parallel import available_cores
from dgn.selector import Selector

_BATCH_BYTES = 256 * 1024
"""Of a batch with several requests, so that small requests do not wait for large ones."""

_LOADING_SECONDS = 120.0
_WORKER = "import sys; from dgn.apps.service.worker import main; main(int(sys.argv[1]))"


@dataclass(eq=False)
class _Waiting:
    """A request that waits for its answer.

    Attributes:
        asked: The request.
        deadline: When its time is over.
        answer: What its client waits for.
        is_suspect: Whether it was in a batch that took too long; it is then answered alone.
    """

    asked: Asked
    deadline: float
    answer: asyncio.Future[Answered]
    is_suspect: bool = False


class Lane(ABC):
    """Answers one batch at a time."""

    @abstractmethod
    async def start(self) -> None:
        """Load what is needed; after it, the lane answers quickly."""

    @abstractmethod
    async def answer(self, batch: Sequence[Asked]) -> list[Answered]:
        """The answers to some requests.

        Raises:
            ConnectionError: The lane has broken, and must be ended and started again.
        """

    @abstractmethod
    async def end(self) -> bool:
        """End what is in progress; whether that is possible, so that the lane may be started."""


class Pool:
    """Requests that wait, and the lanes that answer them.

    Args:
        lanes: The lanes.
        limits: How long a request may take, and how many are answered together.
        observe: Told the number of requests of every batch.
    """

    def __init__(
        self,
        lanes: Sequence[Lane],
        limits: ServiceLimits,
        observe: Callable[[int], Any] = lambda _: None,
    ) -> None:
        self._lanes, self._limits, self._observe = lanes, limits, observe
        self._waiting: deque[_Waiting] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._ready = 0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_ready(self) -> bool:
        """Whether some lane can answer at once."""
        return self._ready > 0

    async def start(self) -> None:
        """Start all lanes, and wait until each of them is ready.

        Raises:
            InvalidInput: The model cannot be loaded.
        """
        await asyncio.gather(*(lane.start() for lane in self._lanes))
        self._ready = len(self._lanes)
        self._tasks = [asyncio.create_task(self._serve(lane)) for lane in self._lanes]

    async def stop(self) -> None:
        """End all lanes; requests are answered before this is called."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(lane.end() for lane in self._lanes))

    async def ask(self, asked: Asked) -> Answered:
        """Wait for the answer to a request.

        Raises:
            Refused: The answer took too long.
        """
        loop, seconds = asyncio.get_running_loop(), self._limits.seconds
        one = _Waiting(asked, time.monotonic() + seconds, loop.create_future())
        self._waiting.append(one)
        self._wake()
        timer = loop.call_later(seconds, _fail, one, TimeoutError())
        try:
            return await one.answer
        except TimeoutError:
            raise busy(
                f"The answer took longer than the limit of {seconds:g} seconds; send fewer "
                "queries or passages, or try again later.",
                "time",
            ) from None
        except ConnectionError:
            raise busy("The worker that answered this request has ended.", "worker") from None
        finally:
            timer.cancel()

    def _wake(self) -> None:
        while self._idle:
            lane = self._idle.popleft()
            if not lane.done():
                lane.set_result(None)
                return

    async def _serve(self, lane: Lane) -> None:
        while True:
            batch = self._next_batch()
            if not batch:
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
                continue
            self._observe(len(batch))
            working = asyncio.ensure_future(lane.answer([one.asked for one in batch]))
            # From now on: a request that has waited for long is no reason to end its worker.
            done, _ = await asyncio.wait([working], timeout=self._limits.seconds)
            if done and working.exception() is None:
                for one, answered in zip(batch, working.result(), strict=True):
                    if not one.answer.done():  # otherwise its time is over
                        one.answer.set_result(answered)
                continue
            await self._recover(lane, batch, working)

    async def _recover(
        self, lane: Lane, batch: Sequence[_Waiting], working: asyncio.Future[Any]
    ) -> None:
        """End a lane whose batch takes too long, or that has ended; start it again."""
        self._ready -= 1
        has_broken = working.done()
        log_event("worker ended", reason="it broke" if has_broken else "a request took too long")
        for one in batch:
            if one.deadline <= time.monotonic():
                _fail(one, TimeoutError())
            elif has_broken and one.is_suspect:
                _fail(one, ConnectionError())  # it was alone: it is the one that breaks workers
            elif not one.answer.done():
                one.is_suspect = True
                self._waiting.appendleft(one)
        self._wake()
        if await lane.end():
            working.cancel()
            await self._start_again(lane)
        else:
            await asyncio.wait([working])
        self._ready += 1

    async def _start_again(self, lane: Lane) -> None:
        while True:
            try:
                return await lane.start()
            except (DGNError, OSError) as error:
                log_event("worker does not start", reason=str(error))
                await asyncio.sleep(1.0)

    def _next_batch(self) -> list[_Waiting]:
        """What is answered next: a share of what waits, and a large or suspect request alone."""
        batch: list[_Waiting] = []
        share = -(-len(self._waiting) // len(self._lanes))
        most, size = min(share, self._limits.batch_requests), 0
        while self._waiting and len(batch) < max(1, most):
            one = self._waiting[0]
            size += len(one.asked.body)
            if batch and (one.is_suspect or size > _BATCH_BYTES):
                break
            self._waiting.popleft()
            if one.answer.done():
                size -= len(one.asked.body)
                continue
            batch.append(one)
            if one.is_suspect:
                break
        return batch


def _fail(one: _Waiting, error: Exception) -> None:
    if not one.answer.done():
        one.answer.set_exception(error)


@final
class ThreadLane(Lane):
    """A thread of this process. What it works on cannot be ended: it goes on after its time.

    Args:
        selector: Selects for every request.
        limits: How much a request may be.
    """

    def __init__(self, selector: Selector, limits: ServiceLimits) -> None:
        self._answerer = Answerer(selector, limits)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dgn-select")

    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._answerer.warm)

    async def answer(self, batch: Sequence[Asked]) -> list[Answered]:
        loop = asyncio.get_running_loop()
        return await asyncio.shield(
            loop.run_in_executor(self._thread, self._answerer.answer, batch)
        )

    async def end(self) -> bool:
        return False


@final
class ProcessLane(Lane):
    """A worker process, which can be ended in the middle of its work.

    Args:
        model: As in `Selector.from_pretrained`.
        limits: How much a request may be.
        threads: The threads of numerical libraries in the process.
    """

    def __init__(self, model: str | None, limits: ServiceLimits, threads: int) -> None:
        self._model, self._limits, self._threads = model, limits, threads
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            descriptor = theirs.fileno()
            # A session of its own: Ctrl-C in a terminal is for the parent, which ends its workers.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _WORKER, str(descriptor)],
                stdin=subprocess.DEVNULL,
                pass_fds=[descriptor],
                start_new_session=True,
                env={"OMP_NUM_THREADS": str(self._threads), **os.environ},
            )
        ours.setblocking(False)
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        options = {"model": self._model, "limits": asdict(self._limits)}
        self._writer.write(to_message(options))
        try:
            async with asyncio.timeout(_LOADING_SECONDS):
                header, _ = await self._receive()
        except (ConnectionError, TimeoutError):
            header = {"problem": "A worker ended while it loaded the model."}
        if problem := header.get("problem"):
            await self.end()
            raise InvalidInput("model", message=str(problem))

    async def answer(self, batch: Sequence[Asked]) -> list[Answered]:
        assert self._writer is not None  # noqa: S101
        rows = [
            {"path": one.path, "request_id": one.request_id, "size": len(one.body)} for one in batch
        ]
        self._writer.write(to_message(rows, [one.body for one in batch]))
        await self._writer.drain()
        header, content = await self._receive()
        bodies = divided(content, [row.pop("size") for row in header])
        return [Answered(body=body, **row) for row, body in zip(header, bodies, strict=True)]

    async def end(self) -> bool:
        if self._writer is not None:
            self._writer.close()
        if self._process is not None:
            self._process.kill()
            while self._process.poll() is None:
                await asyncio.sleep(0.005)
        return True

    async def _receive(self) -> tuple[Any, bytes]:
        assert self._reader is not None  # noqa: S101
        try:
            header, bodies = LENGTHS.unpack(await self._reader.readexactly(LENGTHS.size))
            content = await self._reader.readexactly(header)
            return json.loads(content), await self._reader.readexactly(bodies)
        except asyncio.IncompleteReadError:
            raise ConnectionResetError("the worker has ended") from None


def processes(model: str | None, limits: ServiceLimits, workers: int) -> list[Lane]:
    """Lanes that are worker processes; on Windows, which cannot pass them a socket, a thread."""
    if sys.platform == "win32":
        return [ThreadLane(Selector.from_pretrained(model), limits)]
    threads = max(1, available_cores() // workers)
    return [ProcessLane(model, limits, threads) for _ in range(workers)]
