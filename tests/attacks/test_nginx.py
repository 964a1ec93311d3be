"""Clients that misbehave on their connection, with nginx in front as docs/service.md says.

Every request goes to 127.0.0.1, to an nginx and a service that the test has started.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from running_service import Running, memory_of, started

pytest.importorskip("fastapi", reason="dgn[serve] is not installed")
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.skipif(
        NGINX is None, reason="nginx is not installed (Debian: apt-get install nginx)"
    ),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system has no /proc"),
]
PAGE = Path(__file__).parents[2] / "docs" / "service.md"
HEAD = b"POST /v1/select HTTP/1.1\r\nHost: dgn\r\nContent-Type: application/json\r\n"
SMALL = json.dumps({"query": "Who swims?", "passages": ["Ada swims.", "Bo runs."]}).encode()
OTHER = "127.0.0.2"
"""The address of those who misbehave; limits count by address."""

SECONDS = 2
"""Of the timeouts, which are ten in the page."""


@contextlib.contextmanager
def proxied(folder: Path, service: Running) -> Iterator[Running]:
    """An nginx with the lines of the page, in front of a service."""
    (lines,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = lines.replace("listen 80;", f"listen 127.0.0.1:{port};")
    lines = lines.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")
    lines, count = re.subn(r"timeout 10s;", f"timeout {SECONDS}s;", lines)
    assert count == 3
    temporary = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{name}_temp_path {folder}/{name};\n" for name in temporary)
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; worker_processes 1; pid {folder}/nginx.pid;\n"
        f"error_log {folder}/error.log; events {{ worker_connections 4096; }}\n"
        f"http {{ access_log off;\n{places}{lines} }}\n"
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "error.log"]
    with subprocess.Popen(command) as process:
        running = Running(process, port, folder / "error.log")
        try:
            deadline = time.monotonic() + 10
            while not is_answering(running):
                assert time.monotonic() < deadline, running.log.read_text()
                time.sleep(0.02)
            yield running
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory, service: Running) -> Iterator[Running]:
    with proxied(tmp_path_factory.mktemp("nginx"), service) as running:
        yield running


def is_answering(running: Running) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    try:
        connection.request("POST", "/v1/select", SMALL, {"Content-Type": "application/json"})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def connections(running: Running, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Clients that have sent something and then do nothing."""
    clients: list[socket.socket] = []
    try:
        for _ in range(count):
            address = ("127.0.0.1", running.port)
            clients.append(socket.create_connection(address, 10, source_address=(OTHER, 0)))
            with contextlib.suppress(OSError):
                clients[-1].sendall(sent)
        yield clients
    finally:
        for client in clients:
            client.close()


def test_endless_trailers_hold_no_memory(nginx: Running, service: Running) -> None:
    before = memory_of(nginx.process.pid) + memory_of(service.process.pid)
    start = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    with connections(nginx, 1, start) as (client,), contextlib.suppress(OSError):
        for _ in range(1_000):  # 80 MB
            client.sendall(b"X-A: a\r\n" * 10_000)
    assert memory_of(nginx.process.pid) + memory_of(service.process.pid) - before < 50e6
    assert is_answering(nginx)


@pytest.mark.parametrize(
    "sent",
    [b"", HEAD[:30], HEAD + b"Content-Length: 100\r\n\r\n{"],
    ids=["silent", "half a head", "half a body"],
)
def test_clients_that_wait_are_closed_and_disturb_nobody(nginx: Running, sent: bytes) -> None:
    with connections(nginx, 120, sent) as clients:
        assert is_answering(nginx)
        clients[0].settimeout(SECONDS + 5)
        with contextlib.suppress(ConnectionResetError):
            while clients[0].recv(4096):  # an answer, or nothing
                pass
        assert is_answering(nginx)


@pytest.mark.parametrize("sent", [HEAD, HEAD + b"Content-Length: 100\r\n\r\n{"])
def test_200_half_requests_of_an_address_leave_others_alone(nginx: Running, sent: bytes) -> None:
    with connections(nginx, 200, sent):
        for _ in range(5):
            assert is_answering(nginx)


def test_a_slow_client_is_closed(nginx: Running) -> None:
    with connections(nginx, 1, b"") as (client,):
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            for byte in HEAD * 10:
                client.sendall(bytes([byte]))
                time.sleep(0.1)
        assert time.monotonic() - begun < 10 * SECONDS
    assert is_answering(nginx)


def test_answers_that_are_not_read_hold_little(nginx: Running, service: Running) -> None:
    passages = [f"{number} " + "is as long as it is " * 50 for number in range(1_500)]
    body = json.dumps({"query": "as long as 7?", "passages": passages, "k": 100}).encode()
    assert len(body) > 1_500_000
    before = memory_of(nginx.process.pid) + memory_of(service.process.pid)
    request = HEAD.replace(b"/v1/select", b"/v1/explain")
    request += b"Content-Length: %d\r\n\r\n" % len(body) + body
    with connections(nginx, 12, request):
        time.sleep(1)
        assert is_answering(nginx)
        after = memory_of(nginx.process.pid) + memory_of(service.process.pid)
        assert after - before < 400e6  # what answering takes; d973326 held 824 MB


def test_half_a_body_does_not_delay_the_end(tmp_path: Path) -> None:
    (tmp_path / "nginx").mkdir()
    half = HEAD + b"Content-Length: 100\r\n\r\n{"
    with (
        started(tmp_path) as service,
        proxied(tmp_path / "nginx", service) as nginx,
        connections(nginx, 5, half),
    ):
        time.sleep(0.2)
        service.process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert service.process.wait(20) == 0
        assert time.monotonic() - begun < 5
