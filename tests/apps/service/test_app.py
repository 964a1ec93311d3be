"""What the service answers, and what it refuses."""

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from dgn import Selector
from dgn.apps.service import ServiceLimits, create_app

QUERY = "The bridge was designed by Clara Voss, and trains have crossed it since 1911."
PASSAGES = [
    "The Corran Bridge stands on four piers of grey granite.",
    "The bridge was designed by the engineer Clara Voss.",
    "Voss, who designed the bridge, also designed two smaller bridges.",
    "In 1911 the first train crossed the river.",
    "Ice damaged a pier in 1947.",
]
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def selector() -> Selector:
    return Selector.from_pretrained()


@pytest.fixture(scope="module")
def client(selector: Selector) -> Iterator[TestClient]:
    with TestClient(create_app(selector), base_url="http://localhost") as client:
        yield client


def refused(client: TestClient, status: int, body: object, path: str = "/v1/select") -> str:
    """The detail of a refusal, after all that every problem document must have."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    content = content.replace(b"Infinity", b"1e999")
    answer = client.post(path, content=content, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["request_id"] == answer.headers["x-request-id"]
    return problem["detail"]


def test_one_query(client: TestClient, selector: Selector) -> None:
    answer = client.post("/v1/select", json={"query": QUERY, "passages": PASSAGES, "k": 2})
    wanted = selector.select(QUERY, PASSAGES, k=2)
    assert answer.json() == wanted.to_dict()
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_many_queries_keep_their_order_and_ids(client: TestClient, selector: Selector) -> None:
    queries = [
        {"query": QUERY, "passages": PASSAGES, "id": "first"},
        {"query": "Who swims?", "documents": [{"title": "A", "text": "Ada swims. Bo runs."}]},
    ]
    answer = client.post("/v1/select", json={"queries": queries, "k": 1}).json()["selections"]
    assert answer[0] == {"id": "first"} | selector.select(QUERY, PASSAGES, k=1).to_dict()
    documents = queries[1]["documents"]
    assert answer[1] == selector.select("Who swims?", documents=documents, k=1).to_dict()


def test_options_reach_the_selector(client: TestClient, selector: Selector) -> None:
    options = {"max_tokens": 25, "min_relevance": 0.1, "k": 4}
    answer = client.post("/v1/select", json={"query": QUERY, "passages": PASSAGES, **options})
    assert answer.json() == selector.select(QUERY, PASSAGES, **options).to_dict()
    covered = client.post(
        "/v1/select", json={"query": QUERY, "passages": PASSAGES, "stop_at": 0.5}
    ).json()
    assert len(covered["selected"]) == 1


def test_what_a_passage_carries_comes_back(client: TestClient) -> None:
    passage = {"text": "Ada swims.", "title": "Ada", "id": "a1", "metadata": {"page": [1, None]}}
    answer = client.post("/v1/select", json={"query": "Who swims?", "passages": [passage]}).json()
    found = answer["selected"][0]
    assert {name: found[name] for name in passage} == passage


def test_a_passage_without_a_score_counts_as_the_worst(
    client: TestClient, selector: Selector
) -> None:
    given = [{"text": "Bo runs.", "score": 3.0}, "Cy runs.", {"text": "Di runs.", "score": 1.0}]
    body = {"query": "Who runs?", "passages": given, "k": 3, "score_weight": 2}
    texts = ["Bo runs.", "Cy runs.", "Di runs."]
    wanted = selector.select("Who runs?", texts, scores=[3, 1, 1], k=3, score_weight=2)
    assert client.post("/v1/select", json=body).json() == wanted.to_dict()


def test_explain(client: TestClient, selector: Selector) -> None:
    body = {"query": QUERY, "passages": PASSAGES, "k": 2}
    answer = client.post("/v1/explain", json=body).json()
    selection = selector.select(QUERY, PASSAGES, k=2)
    assert answer["text"] == str(selection.explain())
    assert answer["selection"] == json.loads(json.dumps(selection.to_dict(reasons=True)))
    assert [one["text"] for one in answer["passages"]] == PASSAGES
    reports = answer["selection"]["passages"]
    assert [len(reports[index]["gains"]) for index in selection.indices] == [1, 2]
    assert {w["word"] for w in answer["selection"]["words"] if not w["is_content"]} >= {"The", "it"}


def test_reasons_of_every_passage(client: TestClient) -> None:
    body = {"query": QUERY, "passages": PASSAGES, "k": 2, "min_relevance": 0.3, "reasons": True}
    reports = client.post("/v1/select", json=body).json()["passages"]
    assert {one["index"] for one in reports if one["reason"] == "irrelevant"} == {0, 4}


def test_compare(client: TestClient) -> None:
    body = {"query": QUERY, "passages": [*PASSAGES, PASSAGES[1]], "k": 3}
    methods = client.post("/v1/compare", json=body).json()["methods"]
    assert [one["method"] for one in methods] == ["dgn", "one by one", "BM25", "top-k", "MMR"]
    assert all(len(one["indices"]) == 3 for one in methods)
    assert all(0 <= one["coverage"] <= 1 for one in methods)


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_rerank(client: TestClient, path: str) -> None:
    documents = [*PASSAGES[:2], {"text": PASSAGES[3], "year": 1911}, PASSAGES[1]]
    body = {"model": "rerank-v3.5", "query": QUERY, "documents": documents, "max_tokens_per_doc": 9}
    answer = client.post(path, json=body | {"return_documents": True}).json()
    indices = [one["index"] for one in answer["results"]]
    scores = [one["relevance_score"] for one in answer["results"]]
    assert indices[:2] == [1, 2]
    assert sorted(indices) == [0, 1, 2, 3]
    assert indices[-1] == 3  # it repeats another one
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert answer["results"][1]["document"] == {"text": PASSAGES[3]}
    top = client.post(path, json=body | {"top_n": 2}).json()["results"]
    assert [one["index"] for one in top] == indices[:2]
    assert "document" not in top[0]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"{", "not JSON"),
        ('{"query": "a", "passages": ["b"]}'.encode("utf-16"), "expected value"),
        (b'{"query": "a", "passages": ["\xed\xa0\x80"]}', "invalid unicode code point"),
        (b'{"query": "a", "passages": [{"text": "b", "metadata": {"x": NaN}}]}', "expected value"),
        (b'{"query": "a", "passages": ["\\ud800"]}', "unexpected end of hex escape"),
        (b"[" * 100_000, "recursion limit exceeded"),
        (b'{"query": "\xff", "passages": ["b"]}', "invalid unicode code point"),
    ],
)
def test_what_is_not_json(client: TestClient, body: bytes, detail: str) -> None:
    assert detail in refused(client, 400, body)


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"max_per_document": 1, "max_per_group": 1}, "max_per_group cannot be combined"),
        ({"x" * 1000: 1}, "/" + "x" * 40 + ": this field"),
        ({"query": "?!"}, "/query: it must contain a letter or a digit"),
        ({"query": 3}, "/query: it must be a string"),
        (
            {"passages": [{"text": "b", "metadata": {"x": math.inf}}]},
            "/passages/0/metadata: it contains a number that is too large",
        ),
        ({"k": 0}, "/k: it must be at least 1"),
        ({"k": 1000}, "/k: it must be at most 100"),
        ({"k": True}, "/k: it must be an integer"),
        ({"passages": []}, "/passages: it must have at least 1 entry"),
        ({"passages": [{"text": "a", "colour": 1}]}, "/passages/0/colour: this field is not known"),
        ({"model": "../../etc"}, "/model: this field is not known"),
    ],
)
def test_what_the_schema_refuses(
    client: TestClient, change: dict[str, object], detail: str
) -> None:
    assert detail in refused(client, 422, {"query": "a", "passages": ["b"]} | change)


def test_all_mistakes_are_listed(client: TestClient) -> None:
    answer = client.post("/v1/select", json={"query": "a", "passages": ["b"], "k": 0, "x": 1})
    assert {one["at"] for one in answer.json()["errors"]} == {"/k", "/x"}


def test_documents_must_contain_something(client: TestClient) -> None:
    detail = refused(client, 422, {"query": "a", "documents": [{"text": " \n"}]})
    assert "visible character" in detail
    body = {"queries": [{"query": "a", "passages": ["b"]}, {"query": "a", "documents": [{}]}]}
    assert "/queries/1/documents/0: it must have text or sentences" in refused(client, 422, body)


def test_paths_and_methods(client: TestClient) -> None:
    assert client.get("/nowhere").status_code == 404
    head = client.head("/healthz")
    assert (head.status_code, head.content) == (200, b"")
    wrong = client.get("/v1/select")
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "POST"
    assert wrong.json()["title"] == "Method Not Allowed"
    assert client.post("/v1/select", content="a=1").status_code == 415
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/page/app.py"):
        assert client.get(path).status_code == 404


def test_page_is_complete_and_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    names = ("page", "docs", "explanation", "link", "reasons", "picture", "rounds", "service")
    scripts = [client.get(f"/page/{name}.js").text for name in (*names, "text")]
    for text in (page.text, client.get("/page/page.css").text, *scripts):
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert "https://" not in text
    for sample in client.get("/page/samples.json").json():
        assert {"name", "query", "text", "unit", "k", "max_tokens", "parts"} == set(sample)


def test_health_and_metrics(client: TestClient) -> None:
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").json()["status"] == "ready"
    client.post("/v1/select", json={"query": "a", "passages": ["b", "c"]})
    text = client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    labels = [sample.labels for sample in families["dgn_requests"].samples]
    assert {"path": "/v1/select", "status": "200"} in labels
    assert families["dgn_passages"].samples[0].value >= 2


def test_request_ids(client: TestClient) -> None:
    kept = client.get("/healthz", headers={"x-request-id": "my-id.7"})
    assert kept.headers["x-request-id"] == "my-id.7"
    replaced = client.get("/healthz", headers={"x-request-id": "not an id" * 20})
    assert len(replaced.headers["x-request-id"]) == 32


def test_limits_are_named(selector: Selector) -> None:
    limits = ServiceLimits(body_bytes=2000, queries=2, passages=3, tokens=100, k=4, query_words=20)
    with TestClient(create_app(selector, limits), base_url="http://localhost") as client:
        long = {"query": "a", "passages": ["x" * 3000]}
        assert "2,000 bytes" in refused(client, 413, long)
        assert "at most 3 entries" in refused(client, 422, {"query": "a", "passages": ["b"] * 4})
        assert "at most 4" in refused(client, 422, {"query": "a", "passages": ["b"], "k": 5})
        many = {"queries": [{"query": "a", "passages": ["b"]}] * 3}
        assert "at most 2 entries" in refused(client, 422, many)
        sentences = {"query": "a", "documents": [{"text": "One is red. Two is blue. " * 2}]}
        assert "4 sentences; the limit is 3" in refused(client, 422, sentences)
        words = {"query": "a", "passages": ["one two three four " * 40]}
        assert "the limit is 100" in refused(client, 422, words)
        characters = {"query": "桥" * 30, "passages": ["one"]}
        assert "The query has 30 words; the limit is 20" in refused(client, 422, characters)
        refusals = client.get("/metrics").text
        assert 'dgn_refused_total{reason="bytes"} 1.0' in refusals
        schema = json.dumps(client.get("/openapi.json").json())
        assert '"maximum": 4' in schema


def test_a_busy_service_refuses_quickly(selector: Selector) -> None:
    limits = ServiceLimits(waiting_requests=0)
    with TestClient(create_app(selector, limits), base_url="http://localhost") as client:
        answer = client.post("/v1/select", json={"query": "a", "passages": ["b"]})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
    limits = ServiceLimits(waiting_bytes=10)
    with TestClient(create_app(selector, limits), base_url="http://localhost") as client:
        assert "too large together" in refused(client, 503, {"query": "a", "passages": ["b"]})


def test_bytes_count_until_a_request_is_answered(selector: Selector) -> None:
    body = {"query": "a", "passages": ["b" * 900]}
    limits = ServiceLimits(waiting_bytes=1500)
    with (
        TestClient(create_app(selector, limits), base_url="http://localhost") as client,
        ThreadPoolExecutor(10) as pool,
    ):
        found = list(pool.map(lambda _: client.post("/v1/select", json=body), range(40)))
        assert {answer.status_code for answer in found} <= {200, 503}
        assert client.post("/v1/select", json=body).status_code == 200, "they are released"


def test_token(selector: Selector) -> None:
    token = "a-token-of-this-test"  # noqa: S105
    app = create_app(selector, token=token)
    body = {"query": "a", "passages": ["b"]}
    with TestClient(app, base_url="http://localhost") as client:
        for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {token}"}):
            answer = client.post("/v1/select", json=body, headers=header)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/metrics").status_code == 401
        assert client.get("/").status_code == 200  # the page asks for the token
        assert client.get("/readyz").status_code == 200
        right = {"authorization": f"Bearer {token}"}
        assert client.post("/v1/select", json=body, headers=right).status_code == 200


def test_other_host_names_are_refused(selector: Selector) -> None:
    app = create_app(selector, hosts=("localhost",))
    with TestClient(app, base_url="http://evil.example") as client:
        assert client.get("/healthz").status_code == 421
        for host in ("", "localhost:evil.com", "localhost, evil.com", "a b", "localhost:1:2"):
            assert client.get("/healthz", headers={"host": host}).status_code == 400
        two = [("host", "localhost"), ("host", "evil.example")]
        assert client.get("/healthz", headers=two).status_code == 400
        for host in ("localhost:8000", "LOCALHOST", "[::1]:8000", "10.1.2.3:80"):
            assert client.get("/healthz", headers={"host": host}).status_code == 200


def test_a_stopping_service_is_not_ready(selector: Selector) -> None:
    app = create_app(selector)
    with TestClient(app, base_url="http://localhost") as client:
        app.state.is_draining = True
        assert client.get("/readyz").status_code == 503
        answer = client.post("/v1/select", json={"query": "a", "passages": ["b"]})
        assert answer.status_code == 200
        assert answer.headers["connection"] == "close"


def test_a_failure_is_a_problem_document_and_is_logged(
    selector: Selector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    with TestClient(create_app(selector), base_url="http://localhost") as client:
        monkeypatch.setattr(Selector, "select_queries", fail)
        with caplog.at_level("INFO", logger="dgn.apps.service"):
            detail = refused(client, 500, {"query": "a secret", "passages": ["b"]})
        assert "broken on purpose" not in detail
        assert "broken on purpose" in caplog.text
        assert "a secret" not in caplog.text
