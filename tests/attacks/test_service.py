"""Attacks on a running service: what blocks, what fills up, what breaks off, what is beyond limits.

Every request goes to 127.0.0.1, to a service that the test has started.
"""

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from running_service import Running, memory_of, started

pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="this system has no /proc"
)

JSON = {"Content-Type": "application/json"}
HEAD = b"POST /v1/select HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SMALL = {"query": "Who swims?", "passages": ["Ada swims.", "Bo runs."]}


def ask(running: Running, body: Any, path: str = "/v1/select") -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, content, JSON)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def is_healthy(running: Running) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def slowest_health_check(running: Running, work: Callable[[], object]) -> float:
    """The longest time that /healthz took while something was going on."""
    slowest, is_over = [0.0], threading.Event()

    def check() -> None:
        while not is_over.is_set():
            before = time.perf_counter()
            assert is_healthy(running)
            slowest.append(time.perf_counter() - before)

    checking = threading.Thread(target=check)
    checking.start()
    try:
        work()
    finally:
        is_over.set()
        checking.join()
    return max(slowest)


@pytest.mark.parametrize(
    "body",
    [
        {"query": "x", "documents": [{"text": "“x " * 125_000}]},
        {"query": "x", "documents": [{"text": "\"'(" * 900_000}]},
        {"query": "x", "documents": [{"text": "{'a': 'b', " * 36_000}]},
        {"query": "x", "passages": ["word " * 800_000]},
        {"query": "x", "passages": ["a"], **{f"key{n}": 1 for n in range(200_000)}},
        {"query": "x", "passages": [{"text": "a", **{f"k{n}": 1 for n in range(30)}}] * 2000},
        {"query": "word " * 3_000, "passages": ["a"]},
    ],
    ids=["quotes", "brackets", "dictionaries", "4 MB", "keys", "nested keys", "query"],
)
def test_no_request_blocks_the_others(service: Running, body: dict[str, Any]) -> None:
    content, found = json.dumps(body).encode(), []
    seconds = slowest_health_check(service, lambda: found.append(ask(service, content)))
    assert found[0][0] == 422
    assert "\n" not in found[0][1]["detail"]
    assert seconds < 2, "a health check waited for a request"


SYLLABLES = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES][:1000]
LARGEST = {
    "words": {
        "query": " ".join(WORDS),
        "passages": [" ".join(WORDS[n * m % 1000] for n in range(1, 25)) for m in range(2000)],
        "k": 100,
    },
    "documents": {
        "query": " ".join(WORDS[:30]),
        "documents": [
            {"text": " ".join(f"One {WORDS[n % 1000]} is {WORDS[n % 77]}." for n in range(2000))}
        ],
        "k": 100,
    },
    "embeddings": {
        "query": "x",
        "query_embedding": [0.5] * 800,
        "embeddings": [[0.5] * 800] * 800,
        "passages": ["a b"] * 800,
    },
}
"""Requests just within the limits."""


@pytest.mark.parametrize("kind", LARGEST)
def test_the_largest_requests_are_answered_and_block_nobody(service: Running, kind: str) -> None:
    found: list[int] = []
    content = json.dumps(LARGEST[kind]).encode()

    def work() -> None:
        threads = [
            threading.Thread(target=lambda: found.append(ask(service, content)[0]))
            for _ in range(2)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    seconds = slowest_health_check(service, work)
    assert found == [200, 200]
    assert seconds < 1, "a health check waited for a request"  # quiet machines: below .05


@needs_proc
def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "1") as running:
        (worker,) = workers_of(running)
        os.kill(int(worker), signal.SIGKILL)
        deadline = time.monotonic() + 30
        while not (workers_of(running) and set(workers_of(running)) - {worker}):
            assert time.monotonic() < deadline, "the worker is not replaced"
            time.sleep(0.05)
        assert ask(running, SMALL)[0] == 200


def test_bodies_that_are_announced_hold_nothing(service: Running) -> None:
    idle = []
    try:
        for _ in range(80):
            idle.append(socket.create_connection(("127.0.0.1", service.port)))
            idle[-1].sendall(HEAD + b"Content-Length: 4000000\r\n\r\n{")
        assert ask(service, SMALL)[0] == 200
    finally:
        for one in idle:
            one.close()


@pytest.mark.parametrize("is_one", [True, False])
def test_headers_have_a_size(service: Running, is_one: bool) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.settimeout(5)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        lines = b"X-A: " + b"a" * 60_000 if is_one else b"X-A: a\r\n" * 6_000
        client.sendall(lines)
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")


@needs_proc
def test_trailers_have_a_size(service: Running) -> None:
    before = memory_of(service.process.pid)
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.settimeout(10)
        client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        with contextlib.suppress(OSError):  # the connection is closed
            for _ in range(2_000):
                client.sendall(b"X-A: a\r\n" * 10_000)
    assert memory_of(service.process.pid) - before < 50e6
    assert is_healthy(service)


def test_a_body_over_the_limit_gets_its_answer(service: Running) -> None:
    for _ in range(5):
        status, found = ask(service, b"x" * 6_000_000)
        assert (status, "4,194,304 bytes" in found["detail"]) == (413, True)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"Host: evil.com\r\n", b"421"),
        (b"Host: localhost:evil.com\r\n", b"400"),
        (b"Host: localhost\r\nHost: evil.com\r\n", b"400"),
        (b"", b"400"),
        (b"Host: 127.0.0.1\r\n", b"404"),
    ],
)
def test_other_names_are_refused_and_nothing_redirects(
    service: Running, host: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.settimeout(5)
        client.sendall(b"GET /v1/select/ HTTP/1.1\r\n" + host + b"\r\n")
        assert client.recv(4096).split(b" ")[1] == status


def test_a_service_for_others_checks_names_too(tmp_path: Path) -> None:
    with started(tmp_path, "--host", "0.0.0.0", "--workers", "1") as running:  # noqa: S104
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
        for host, status in (("evil.com", 421), ("localhost", 200), ("10.0.0.1", 200)):
            connection.request("GET", "/healthz", headers={"Host": host})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
        connection.close()


@needs_proc
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    with started(tmp_path, "--workers", "2") as running:
        workers = workers_of(running)
        assert len(workers) == 2
        running.process.kill()
        running.process.wait()
        deadline = time.monotonic() + 10
        while any(map(is_running, workers)):
            assert time.monotonic() < deadline, "a worker is left"
            time.sleep(0.05)


def workers_of(running: Running) -> list[str]:
    """The processes that answer; Python's resource tracker is none of them."""
    number = running.process.pid
    children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return [one for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def is_running(process: str) -> bool:
    """Whether a process works; one that has ended may wait for its new parent to notice."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
