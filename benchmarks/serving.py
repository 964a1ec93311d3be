"""The HTTP service on loopback: 1, 16 and 256 clients, a soak, and SIGTERM under load.

The clients are one process of their own, so that two cores are shared by the service and its load.
Every answer is compared with that of `Selector.select`. Next to it, the same number of selections
without HTTP. DGN_SOAK_SECONDS sets the length of the soak (default 20).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import print_table
from dgn.data import read_rows
from dgn.selector import Selector

SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
K, PASSAGES, WORKERS = 5, 30, 2
SECONDS = 8.0
CLIENTS = (1, 16, 256)


@dataclass
class Load:
    """What some clients have seen.

    Attributes:
        seconds: The time of every answered request.
        wrong: Answers that differ from those of the selector.
        refused: Answers with another status than 200.
        lost: Connections that broke after a request was sent and before its answer was complete.
    """

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    refused: int = 0
    lost: int = 0


def run() -> None:
    bodies, answers = requests()
    with service() as (process, port):
        rows: list[tuple[str, ...]] = []
        for clients in CLIENTS:
            asyncio.run(load(port, bodies, answers, clients, 1.0))  # warm
            started = time.perf_counter()
            seen = asyncio.run(load(port, bodies, answers, clients, SECONDS))
            rows.append(row(f"{clients} clients", seen, time.perf_counter() - started))
        print_table(
            f"POST /v1/select, 100 queries of {PASSAGES} passages, k = {K}, {SECONDS:g} s each, "
            f"{WORKERS} workers, service and clients on 2 cores",
            ("load", "requests/s", "p50 ms", "p99 ms", "refused", "wrong", "lost"),
            rows,
        )
        print_soak(port, bodies, answers)
        print_stop(process, port, bodies, answers)


def requests() -> tuple[list[bytes], list[tuple[int, ...]]]:
    """The bodies of the requests, and the passages that they must get."""
    bodies: list[bytes] = []
    answers: list[tuple[int, ...]] = []
    selector = Selector.from_pretrained()
    queries = [example.query for example in read_rows(SAMPLES)]
    pages = [[{"text": p.text, "title": p.title} for p in query.passages] for query in queries]
    for number, query in enumerate(queries):
        # Its own page, and as many passages of the pages after it as are missing.
        others = (one for page in pages[number + 1 :] + pages[:number] for one in page)
        passages = [*pages[number], *others][:PASSAGES]
        bodies.append(json.dumps({"query": query.text, "passages": passages, "k": K}).encode())
        answers.append(selector.select(query.text, passages, k=K).indices)
    return bodies, answers


@contextlib.contextmanager
def service() -> Generator[tuple[subprocess.Popen[str], int]]:
    """`dgn serve` on a free port."""
    command = [sys.executable, "-m", "dgn", "serve", "--port", "0", "--workers", str(WORKERS)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield process, int(line.rpartition(":")[2].split()[0])
    finally:
        process.kill()
        process.wait()


async def load(
    port: int,
    bodies: list[bytes],
    answers: list[tuple[int, ...]],
    clients: int,
    seconds: float,
) -> Load:
    """Send requests from some clients, each one after the other, for some seconds."""
    seen = Load()
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        place = number
        while time.perf_counter() < end:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return  # the service has stopped
            is_open = True
            while is_open and time.perf_counter() < end:
                place = (place + 1) % len(bodies)
                is_open = await ask(reader, writer, bodies[place], answers[place], seen)
            writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return seen


async def ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    body: bytes,
    answer: tuple[int, ...],
    seen: Load,
) -> bool:
    """Send one request; whether the connection is still open."""
    head = b"POST /v1/select HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    started = time.perf_counter()
    try:
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        headers = await reader.readuntil(b"\r\n\r\n")
        lower = headers.lower()
        length = int(lower.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        content = await reader.readexactly(length)
    except (OSError, asyncio.IncompleteReadError):
        seen.lost += 1
        return False
    seen.seconds.append(time.perf_counter() - started)
    if headers.split(b" ", 2)[1] != b"200":
        seen.refused += 1
    elif tuple(one["index"] for one in json.loads(content)["selected"]) != answer:
        seen.wrong += 1
    return b"connection: close" not in lower


def row(name: str, seen: Load, seconds: float) -> tuple[str, ...]:
    times = sorted(seen.seconds)
    middle, high = (1000 * times[int(share * (len(times) - 1))] for share in (0.5, 0.99))
    counts = (f"{n}" for n in (seen.refused, seen.wrong, seen.lost))
    return name, f"{len(times) / seconds:,.0f}", f"{middle:.2f}", f"{high:.2f}", *counts


def metric(port: int, name: str) -> float:
    """A value of /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    raise KeyError(name)


def print_soak(port: int, bodies: list[bytes], answers: list[tuple[int, ...]]) -> None:
    seconds = float(os.environ.get("DGN_SOAK_SECONDS", "20"))
    memory, count, wrong = [], 0, 0
    parts = 10
    for _ in range(parts):
        seen = asyncio.run(load(port, bodies, answers, 16, seconds / parts))
        count += len(seen.seconds)
        wrong += seen.wrong + seen.refused + seen.lost
        memory.append(metric(port, "process_resident_memory_bytes") / 2**20)
    print_table(
        f"Soak, 16 clients, {seconds:g} s: {count:,} requests, {wrong} failed",
        ("after", *(f"{place * 10} %" for place in range(1, parts + 1))),
        [("resident MiB", *(f"{size:.1f}" for size in memory))],
    )


def print_stop(
    process: subprocess.Popen[str], port: int, bodies: list[bytes], answers: list[tuple[int, ...]]
) -> None:
    async def stop_under_load() -> Load:
        loading = asyncio.create_task(load(port, bodies, answers, 64, 10.0))
        await asyncio.sleep(2)
        process.send_signal(signal.SIGTERM)
        return await loading

    seen = asyncio.run(stop_under_load())
    code = process.wait(timeout=30)
    print_table(
        "SIGTERM after 2 s of load by 64 clients",
        ("answered", "refused", "wrong", "lost", "exit code"),
        [(f"{len(seen.seconds):,}", *map(str, (seen.refused, seen.wrong, seen.lost, code)))],
    )
