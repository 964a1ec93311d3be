"""A real service under real load: concurrency, signals, slow clients, other people's clients."""

import asyncio
import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dgn import Selector
from dgn.apps.cli.main import main

httpx = pytest.importorskip("httpx")

SAMPLES = Path(__file__).parents[3] / "samples" / "claims.jsonl"


def claims(count: int) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in SAMPLES.read_text(encoding="utf-8").splitlines()[:count]]
    return [
        {"query": row["claim"], "documents": [{"sentences": d["sentences"], "title": d["title"]}
                                              for d in row["documents"]]}
        for row in rows
    ]  # fmt: skip


async def ask_all(url: str, bodies: list[dict[str, Any]], clients: int) -> list[Any]:
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as client:
        tasks = [client.post("/v1/select", json=body) for body in bodies]
        return [answer.json() for answer in await asyncio.gather(*tasks)]


def test_concurrent_requests_get_what_single_ones_get(service: Any) -> None:
    bodies = [body | {"k": 1 + number % 3} for number, body in enumerate(claims(60))]
    selector = Selector.from_pretrained()
    wanted = [
        selector.select(body["query"], documents=body["documents"], k=body["k"]).to_dict()
        for body in bodies
    ]
    assert asyncio.run(ask_all(service.url, bodies, 30)) == wanted


def test_log_is_json_without_texts(service: Any) -> None:
    body = {"query": "Confidential matter", "passages": ["Nobody may read this."]}
    httpx.post(f"{service.url}/v1/select", json=body, headers={"x-request-id": "log-test"})
    deadline = time.monotonic() + 5
    while "log-test" not in service.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    found = next(line for line in lines if line.get("request_id") == "log-test")
    assert found["path"] == "/v1/select"
    assert found["status"] == 200
    assert "onfidential" not in service.log.read_text()


def test_sigterm_loses_no_request(start: Callable[..., Any]) -> None:
    bodies = claims(40)

    async def load(running: Any) -> tuple[int, list[str]]:
        answered, problems = 0, []

        async def client(number: int) -> None:
            nonlocal answered
            async with httpx.AsyncClient(base_url=running.url, timeout=30) as own:
                for place in range(400):
                    body = bodies[(number + place) % len(bodies)]
                    try:
                        answer = await own.post("/v1/select", json=body)
                    except httpx.ConnectError:
                        return  # not accepted any more
                    except httpx.HTTPError as error:
                        problems.append(repr(error))
                        return
                    answered += answer.status_code == 200

        async def stop() -> None:
            await asyncio.sleep(0.5)
            running.process.send_signal(signal.SIGTERM)

        await asyncio.gather(stop(), *(client(number) for number in range(12)))
        return answered, problems

    with start() as running:
        answered, problems = asyncio.run(load(running))
        assert running.process.wait(timeout=30) == 0
        log = running.log.read_text()
    assert problems == []
    assert answered > 0
    assert log.count('"event": "request"') == answered
    assert '"event": "stopped"' in log


def test_slow_and_broken_clients_do_not_block_others(start: Callable[..., Any]) -> None:
    with start("--timeout", "0.5") as running:
        head = b"POST /v1/select HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", running.port)) as slow:
            slow.sendall(head + b"Content-Length: 100\r\n\r\n{")
            quick = {"query": "a", "passages": ["b"]}
            assert httpx.post(f"{running.url}/v1/select", json=quick).status_code == 200
            slow.settimeout(5)
            answer = slow.recv(4096)
            assert b" 408 " in answer.splitlines()[0]
        with socket.create_connection(("127.0.0.1", running.port)) as large:
            large.sendall(head + b"Content-Length: 99999999\r\n\r\n{")
            large.settimeout(5)
            assert b" 413 " in large.recv(4096).splitlines()[0]


def test_token_from_a_file_and_from_the_environment(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("a-token-from-a-file\n")
    for options, variables, token in (
        (("--token-file", str(file)), {}, "a-token-from-a-file"),
        ((), {"DGN_TOKEN": "a-token-from-the-environment"}, "a-token-from-the-environment"),
    ):
        with start(*options, **variables) as running:
            url, body = f"{running.url}/v1/select", {"query": "a", "passages": ["b"]}
            assert httpx.post(url, json=body).status_code == 401
            header = {"authorization": f"Bearer {token}"}
            assert httpx.post(url, json=body, headers=header).status_code == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--port", "99999"), "Cannot listen on 127.0.0.1, port 99999"),
        (("--host", "nowhere.invalid"), "Cannot listen on nowhere.invalid"),
        (("--timeout", "0"), "--timeout must be above 0 and at most 3600; got 0."),
        (("--token-file", "missing"), "missing: the token cannot be read"),
        (("--model", "missing"), "missing"),
    ],
)
def test_bad_options_are_explained(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *options]) in {1, 2}
    assert message in capsys.readouterr().err


def test_a_short_token_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DGN_TOKEN", "short")
    assert main(["serve"]) == 2
    assert "16 to 4,096 printable characters" in capsys.readouterr().err


def test_a_port_in_use_is_explained(service: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", str(service.port)]) == 2
    assert "Address already in use" in capsys.readouterr().err


def test_client_of_cohere(service: Any) -> None:
    cohere = pytest.importorskip("cohere", reason="the client of Cohere is not installed")
    documents = ["Bo runs.", "Ada swims in the lake.", "Cy sings."]
    for kind in (cohere.ClientV2, cohere.Client):
        with httpx.Client() as connection:
            client = kind("any-key", base_url=service.url, httpx_client=connection)
            answer = client.rerank(
                model="rerank-v3.5", query="Who swims?", documents=documents, top_n=2
            )
        assert answer.results[0].index == 1
        assert len(answer.results) == 2
        assert answer.results[0].relevance_score >= answer.results[1].relevance_score
